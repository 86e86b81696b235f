"""The command that fits a law."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forecast.console import JsonFlag, note, rounded, show_record, show_table, working
from forecast.options import numbers_of, pairs_of

if TYPE_CHECKING:
    from forecast.fitted import Fit

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Register `fit` on `app`."""
    app.command("fit")(fit_command)


def fit_command(
    runs: Annotated[Path, typer.Argument(help="Runs: a ledger (.jsonl), a store (.duckdb) or a table (.csv ...).")],
    metric: Annotated[str, typer.Option("--metric", help="The outcome to fit, by its name in the runs.")],
    law: Annotated[
        str,
        typer.Option(
            "--law",
            help="A law's name, a formula over columns, module:function (its code runs), or auto: by extrapolation.",
        ),
    ] = "auto",
    bounds: Annotated[
        list[str] | None, typer.Option("--bounds", help="NAME=LOW:HIGH of a formula's or function's parameter; repeat.")
    ] = None,
    fix: Annotated[list[str] | None, typer.Option("--fix", help="NAME=NUMBER: hold a parameter; repeat.")] = None,
    prior: Annotated[
        list[str] | None, typer.Option("--prior", help="NAME=MEAN:SD: a normal prior of a parameter; repeat.")
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option("--weights", help="The setting with each run's weight: its variance is sigma^2 / weight."),
    ] = None,
    noise: Annotated[
        str,
        typer.Option(
            "--noise",
            help="auto, constant, mean (the SD depends on the mean), or fresh-items=N (new test items a run).",
        ),
    ] = "auto",
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
    from forecast.laws.custom import read_bounds, read_priors
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
            columns=pairs_of(column or [], "--column"),
            bounds=read_bounds(bounds or []),
            fixed=numbers_of(fix or [], "--fix"),
            priors=read_priors(prior or []),
            weights=weights,
            noise=noise,
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
            "status": "baseline" if row.kind == "baseline" else row.status.partition(":")[0].replace("at a", "at"),
        }
        rows.append(rounded(shown))
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
