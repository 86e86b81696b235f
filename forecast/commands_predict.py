"""The command that predicts new runs from a fit, and says how far they lie from what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forecast.console import JsonFlag, note, rounded, show_table
from forecast.errors import ForecastError
from forecast.options import numbers_of

if TYPE_CHECKING:
    from forecast.extrapolation import Distance
    from forecast.fitted import Fit
    from forecast.records import Prediction, Target

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Register `predict` on `app`."""
    app.command("predict")(predict_command)


def predict_command(
    fit_file: Annotated[Path, typer.Argument(metavar="FIT", help="A fit that `fit --out` wrote.")],
    g: Annotated[list[float] | None, typer.Option("--g", help="Good-view fraction; repeat for several.")] = None,
    n: Annotated[
        list[float] | None, typer.Option("--n", help="Samples; repeat for several, each with each --g.")
    ] = None,
    at: Annotated[
        list[str] | None, typer.Option("--at", help="One design as SETTING=NUMBER,SETTING=NUMBER; repeat for several.")
    ] = None,
    targets: Annotated[Path | None, typer.Option("--targets", help="A JSON list of targets.")] = None,
    replicates: Annotated[int, typer.Option("--mean-of", min=1, help="Predict the mean of this many seeds.")] = 1,
    out: Annotated[Path | None, typer.Option("--out", help="Where to write the predictions as JSON.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draws.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Predict new runs from a fit: point, the curve's and the run's interval, the baselines, the distance."""
    import json

    import numpy as np

    from forecast.dataset import columns_of
    from forecast.extrapolation import distances
    from forecast.files import write_atomically
    from forecast.fitted import Fit
    from forecast.prediction import DRAWS, baseline_predictions, look_ahead, predict

    fitted = Fit.load(fit_file)
    wanted = _targets(fitted, g or [], n or [], at or [], targets)
    rng = np.random.default_rng(seed)
    ahead = look_ahead(fitted, wanted, rng)
    predictions = predict(fitted, wanted, rng=rng, replicates=replicates, outlook=ahead)
    low, high = np.quantile(ahead.joint(rng, DRAWS), [0.025, 0.975], axis=0)
    used = {k: v for k, v in fitted.columns.items() if all(v in t.design.settings for t in wanted)}
    far = distances(fitted, columns_of([t.design for t in wanted], used))
    rows = [
        _prediction_row(p, float(low[i]), float(high[i]), far[i].simulated, fitted) for i, p in enumerate(predictions)
    ]
    said = baseline_predictions(fitted, wanted)
    nulls = [{name: values[i] for name, values in said.items()} for i in range(len(wanted))]
    if out is not None:
        text = json.dumps([p.model_dump(mode="json") for p in predictions], indent=1)
        write_atomically(out, (text + "\n").encode())
    what = "one new run" if replicates == 1 else f"the mean of {replicates} new runs"
    if as_json:
        full = [
            {**row, "factor": d.factor, "distance": d.model_dump(mode="json"), "baselines": null}
            for row, d, null in zip(rows, far, nulls, strict=True)
        ]
        show_table(full, title="", as_json=True)
        return
    title = (
        f"{fitted.metric.name} by {fitted.law}; lower, upper: 95 % for {what}; held: how often the curve's 95 % "
        "interval held the truth in simulated studies"
    )
    show_table([rounded(row) for row in rows], title=title, as_json=False)
    names = [str(row["target"]) for row in rows]
    title = "\nDistance from the data, and the law on held-out designs about that far from what trained it"
    show_table([_distance_row(name, d) for name, d in zip(names, far, strict=True)], title=title, as_json=False)
    shown = [{"target": name, **rounded(null)} for name, null in zip(names, nulls, strict=True)]
    show_table(shown, title="\nBaselines", as_json=False)
    for sentence in _cautions(fitted, names, far):
        note(sentence)


def _prediction_row(
    p: Prediction, curve_lower: float, curve_upper: float, simulated: float | None, fitted: Fit
) -> dict[str, Any]:
    short = {setting: name for name, setting in fitted.columns.items()}
    return {
        "target": p.target,
        **{short[k]: v for k, v in p.design.settings.items() if k in short},
        "point": p.point,
        "lower": p.quantiles["0.025"],
        "upper": p.quantiles["0.975"],
        "curve_lower": curve_lower,
        "curve_upper": curve_upper,
        "held": simulated,
    }


def _distance_row(name: str, far: Distance) -> dict[str, Any]:
    where = "inside" if far.hull == 0 else f"beyond in {', '.join(far.outside)}" if far.outside else "between designs"
    return rounded(
        {
            "target": name,
            "factor": far.factor,
            "hull": where,
            "held_out": far.held_out,
            "RMSE": far.rmse,
            "cover": far.covered,
        }
    )


def _cautions(fitted: Fit, names: Sequence[str], far: Sequence[Distance]) -> list[str]:
    """What to beware of at these targets."""
    out = []
    if count := sum(d.factor > 10 for d in far):
        out.append(f"{count} target(s) lie more than a factor 10 outside the data; no interval is tested that far")
    untested = [name for name, d in zip(names, far, strict=True) if d.factor > 1 and not d.held_out]
    if untested:
        reach = max((row.factor for row in fitted.held_out), default=1.0)
        out.append(
            f"{_few(untested)}: no design was held out that far from what trained the law (the farthest: {reach:.3g}x)"
        )
    for column in sorted({k for d in far for k in d.outside if k == "g"}):
        some = [name for name, d in zip(names, far, strict=True) if column in d.outside]
        out.append(f"{_few(some)}: {column} lies outside the data; nothing was measured there")
    trend = [w for w in fitted.warnings if w.startswith("trained on smaller runs")]
    if any(d.factor > 1 for d in far):
        out += trend
    return out


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _targets(fitted: Fit, g: list[float], n: list[float], at: list[str], path: Path | None) -> list[Target]:
    from pydantic import TypeAdapter, ValidationError

    from forecast.records import Design, Target

    designs: list[dict[str, Any]] = []
    for count in n:
        for share in g or (None,):
            settings: dict[str, Any] = {fitted.columns.get("n", "n_samples"): count}
            if share is not None:
                settings[fitted.columns.get("g", "good_view_fraction")] = share
            designs.append(settings)
    if g and not n:
        raise ForecastError("--g needs --n: a target is a design; add --n SAMPLES")
    for word in at:
        designs.append(dict(numbers_of(word.split(","), "--at")))
    try:
        found = [Target(target=f"t{i + 1}", design=Design(settings=s)) for i, s in enumerate(designs)]
        if path is not None:
            found += TypeAdapter(list[Target]).validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        raise ForecastError(f"a target is not valid: {first['loc']}: {first['msg']}") from error
    except OSError as error:
        raise ForecastError(f"{path}: cannot be read ({error.strerror})") from error
    if not found:
        raise ForecastError("there is nothing to predict; give --n (and --g), --at or --targets")
    return found
