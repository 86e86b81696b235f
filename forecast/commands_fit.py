"""The commands that fit a law and predict from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forecast.console import JsonFlag, note, show_record, show_table, working
from forecast.errors import ForecastError

if TYPE_CHECKING:
    from forecast.fitted import Fit
    from forecast.records import Prediction, Target

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Register `fit` and `predict` on `app`."""
    app.command("fit")(fit_command)
    app.command("predict")(predict_command)


def fit_command(
    runs: Annotated[Path, typer.Argument(help="Runs: a ledger (.jsonl), a store (.duckdb) or a table (.csv ...).")],
    metric: Annotated[str, typer.Option("--metric", help="The outcome to fit, by its name in the runs.")],
    law: Annotated[
        str, typer.Option("--law", help="A law's name, a formula over columns, or auto: choose by extrapolation.")
    ] = "auto",
    bounds: Annotated[
        list[str] | None, typer.Option("--bounds", help="NAME=LOW:HIGH of a formula's parameter; repeat or use commas.")
    ] = None,
    fix: Annotated[list[str] | None, typer.Option("--fix", help="NAME=NUMBER: hold a parameter; repeat.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Where to write the fit (fit.json).")] = None,
    loss: Annotated[str, typer.Option("--loss", help="squared or huber.")] = "squared",
    delta: Annotated[
        float | None, typer.Option("--delta", help="Huber's threshold in the metric's unit; default 1.345 seed SDs.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", help="NAME=SETTING: where a law's variable lies; default n=n_samples."),
    ] = None,
    link: Annotated[
        str, typer.Option("--link", help="identity, log, logit, cloglog, or auto: by held-out density.")
    ] = "identity",
    intervals: Annotated[
        str, typer.Option("--intervals", help="profile, delta, residual, wild or cluster.")
    ] = "profile",
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Simulate the intervals' coverage for these designs (slow).")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="Seed of starts and draws; recorded in the fit.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Fit a law to runs: parameters with intervals, seed noise, laws against baselines, warnings."""
    import numpy as np

    from forecast.fitting import fit
    from forecast.laws.custom import read_bounds
    from forecast.reading import read_runs

    with working(f"fitting {metric}"):
        fitted = fit(
            read_runs(runs),
            metric=metric,
            law=law,
            loss=loss,
            delta=delta,
            link=link,
            intervals=intervals,
            columns=_pairs(column or [], "--column"),
            bounds=read_bounds(bounds or []),
            fixed=_numbers(fix or [], "--fix"),
            rng=np.random.default_rng(seed),
            seed=seed,
        )
    if calibrate:
        from forecast.calibration import calibrated

        with working("simulating studies of these designs"):
            fitted = calibrated(fitted, rng=np.random.default_rng([seed, 1]))
    if out is not None:
        fitted.save(out)
    if as_json:
        show_record(_summary(fitted), as_json=True)
    else:
        _print_fit(fitted)
    if out is not None:
        note(f"wrote {out}")


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

    from forecast.files import write_atomically
    from forecast.fitted import Fit
    from forecast.prediction import DRAWS, baseline_predictions, look_ahead, predict

    fitted = Fit.load(fit_file)
    wanted = _targets(fitted, g or [], n or [], at or [], targets)
    rng = np.random.default_rng(seed)
    ahead = look_ahead(fitted, wanted, rng)
    predictions = predict(fitted, wanted, rng=rng, replicates=replicates, outlook=ahead)
    low, high = np.quantile(ahead.joint(rng, DRAWS), [0.025, 0.975], axis=0)
    rows = [_prediction_row(p, float(low[i]), float(high[i]), fitted) for i, p in enumerate(predictions)]
    said = baseline_predictions(fitted, wanted)
    nulls = [{name: values[i] for name, values in said.items()} for i in range(len(wanted))]
    if out is not None:
        text = json.dumps([p.model_dump(mode="json") for p in predictions], indent=1)
        write_atomically(out, (text + "\n").encode())
    what = "one new run" if replicates == 1 else f"the mean of {replicates} new runs"
    if as_json:
        show_table([{**row, "baselines": null} for row, null in zip(rows, nulls, strict=True)], title="", as_json=True)
    else:
        title = f"{fitted.metric.name} by {fitted.law}; lower, upper: 95 % for {what}; factor: beyond the data"
        show_table([_rounded(row) for row in rows], title=title, as_json=False)
        shown = [{"target": row["target"], **_rounded(null)} for row, null in zip(rows, nulls, strict=True)]
        show_table(shown, title="\nBaselines", as_json=False)
    for row in fitted.calibration:
        if row.nominal == 0.95 and not as_json:
            note(
                f"{row.target}: the curve's 95 % interval covered {row.coverage:.1%} of {row.worlds} simulated studies"
            )
    far = [p for p in predictions if p.extrapolation_factor > 10]
    if far:
        note(f"{len(far)} target(s) lie more than a factor 10 outside the data; no interval is tested that far")


def _pairs(words: list[str], option: str) -> dict[str, str]:
    out: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise ForecastError(f"{option} needs NAME=VALUE, got {word!r}")
        out[name.strip()] = value.strip()
    return out


def _numbers(words: list[str], option: str) -> dict[str, float]:
    try:
        return {name: float(value) for name, value in _pairs(words, option).items()}
    except ValueError as error:
        raise ForecastError(f"{option} needs NAME=NUMBER, got {words!r}") from error


def _parameter_rows(fitted: Fit) -> list[dict[str, Any]]:
    names = ("name", "value", "standard_error", "lower", "upper", "status")
    return [{name: getattr(estimate, name) for name in names} for estimate in fitted.parameters]


def _candidate_rows(fitted: Fit) -> list[dict[str, Any]]:
    rows = []
    for row in fitted.candidates:
        shown = {
            "law": f"* {row.law}" if row.law == fitted.law else f"  {row.law}",
            "p": row.parameters,
            "RMSE": row.backtest_rmse,
            "CRPS": row.backtest_crps,
            "cover": row.coverage,
            "weight": round(row.weight, 2),
            "status": "baseline" if row.kind == "baseline" else row.status.partition(":")[0],
        }
        rows.append(_rounded(shown))
    return rows


def _summary(fitted: Fit) -> dict[str, Any]:
    """The fit and the chosen law's parameters, for `--json`."""
    return {**fitted.model_dump(mode="json"), "parameters": _parameter_rows(fitted)}


def _print_fit(fitted: Fit) -> None:
    chosen, noise = fitted.chosen, fitted.noise
    show_table(
        _parameter_rows(fitted),
        title=f"{fitted.law}: {fitted.metric.name} = {chosen.formula}  (lower, upper: 95 %)",
        as_json=False,
    )
    typer.echo("")
    facts: dict[str, Any] = {
        "runs": noise.runs,
        "designs": noise.designs,
        "seed_noise_sd": noise.sigma,
        "seed_noise_interval": "-" if noise.lower is None else f"{noise.lower:.3g} to {noise.upper:.3g}",
        "degrees_of_freedom": noise.degrees_of_freedom,
        "sd_about_the_law": chosen.sigma,
        "loss": f"{fitted.loss}" + ("" if fitted.delta is None else f", delta {fitted.delta:.3g}"),
        "link": fitted.link,
        "interval_method": fitted.interval_method,
    }
    lack = chosen.lack_of_fit
    if lack is not None:
        facts["lack_of_fit"] = f"F({lack.numerator}, {lack.denominator}) = {lack.f:.2f}, p = {lack.p_value:.2g}"
    show_record(facts, as_json=False)
    typer.echo("")
    show_table(
        _candidate_rows(fitted),
        title="Laws and baselines on held-out designs: RMSE, CRPS, coverage of 95 %",
        as_json=False,
    )
    typer.echo("")
    if fitted.calibration:
        names = ("target", "nominal", "coverage", "width", "worlds")
        rows = [{k: getattr(row, k) for k in names} for row in fitted.calibration]
        show_table(rows, title="Coverage of the curve's interval in simulated studies of these designs", as_json=False)
        typer.echo("")
    for reason in fitted.reasons:
        typer.echo(reason)
    if fitted.mechanism is not None:
        typer.echo(fitted.mechanism.sentence)
    for warning in fitted.warnings:
        typer.echo(f"warning: {warning}")


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
        designs.append(dict(_numbers(word.split(","), "--at")))
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


def _prediction_row(p: Prediction, curve_lower: float, curve_upper: float, fitted: Fit) -> dict[str, Any]:
    short = {setting: name for name, setting in fitted.columns.items()}
    return {
        "target": p.target,
        **{short[k]: v for k, v in p.design.settings.items() if k in short},
        "point": p.point,
        "lower": p.quantiles["0.025"],
        "upper": p.quantiles["0.975"],
        "curve_lower": curve_lower,
        "curve_upper": curve_upper,
        "factor": p.extrapolation_factor,
    }


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Floats to three figures, for a narrow terminal."""
    return {k: float(f"{v:.3g}") if isinstance(v, float) else v for k, v in row.items()}
