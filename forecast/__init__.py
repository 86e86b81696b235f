"""From runs to a forecast."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forecast.fitted import Fit
    from forecast.fitting import fit
    from forecast.frames import frame_of, runs_of
    from forecast.laws.function import use_function
    from forecast.ledger import append_runs, read_ledger
    from forecast.noise import Noise, seed_noise
    from forecast.prediction import baseline_predictions, predict, predict_joint
    from forecast.reading import read_runs
    from forecast.records import Design, Evaluation, Metric, Prediction, Run, Target
    from forecast.showing import charts_of

_HOMES = {
    "Design": "records",
    "Evaluation": "records",
    "Fit": "fitted",
    "Metric": "records",
    "Noise": "noise",
    "Prediction": "records",
    "Run": "records",
    "Target": "records",
    "append_runs": "ledger",
    "baseline_predictions": "prediction",
    "charts_of": "showing",
    "fit": "fitting",
    "frame_of": "frames",
    "predict": "prediction",
    "predict_joint": "prediction",
    "read_ledger": "ledger",
    "read_runs": "reading",
    "runs_of": "frames",
    "seed_noise": "noise",
    "use_function": "laws.function",
}
__all__ = [
    "Design",
    "Evaluation",
    "Fit",
    "Metric",
    "Noise",
    "Prediction",
    "Run",
    "Target",
    "append_runs",
    "baseline_predictions",
    "charts_of",
    "fit",
    "frame_of",
    "predict",
    "predict_joint",
    "read_ledger",
    "read_runs",
    "runs_of",
    "seed_noise",
    "use_function",
]


def __getattr__(name: str) -> Any:
    """The public name, imported from its home on first use: the command stays fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'forecast' has no attribute {name!r}")
    return getattr(import_module(f"forecast.{_HOMES[name]}"), name)
