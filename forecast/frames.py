"""Runs as DataFrames, and DataFrames as runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from forecast.records import Run

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["frame_of"]


def frame_of(runs: Sequence[Run]) -> pd.DataFrame:
    """One row per run and metric (one without metric for a failed run), settings as columns of their own."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for run in runs:
        row: dict[str, Any] = {"run_id": run.run_id, "study": run.study, "design_hash": run.design.hash}
        row |= {"seed": run.seed, "status": run.status, **run.design.settings}
        pairs: list[tuple[str | None, float | None]] = [(e.metric.name, e.value) for e in run.evaluations]
        pairs = pairs or [(None, None)]
        rows += [{**row, "metric": metric, "value": value} for metric, value in pairs]
    return pd.DataFrame(rows)
