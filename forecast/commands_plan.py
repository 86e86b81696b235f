"""The commands that use a fit to compare arms and to plan runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from forecast.console import JsonFlag, note, show_table
from forecast.errors import ForecastError

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Register `ratio` and `plan` on `app`."""
    app.command("ratio")(ratio_command)
    app.command("plan")(plan_command)


def ratio_command(
    runs: Annotated[Path, typer.Argument(help="Runs: a ledger (.jsonl), a store (.duckdb) or a table (.csv ...).")],
    metric: Annotated[str, typer.Option("--metric", help="The outcome to compare.")],
    target: Annotated[float, typer.Option("--target", help="The outcome that both arms are to reach.")],
    a: Annotated[str, typer.Option("--a", help="First arm: the value of a setting, or SETTING=VALUE.")],
    b: Annotated[str, typer.Option("--b", help="Second arm, likewise.")],
    law: Annotated[str, typer.Option("--law", help="A law in samples n, or auto.")] = "auto",
    seed: Annotated[int, typer.Option("--seed", help="Seed of starts and draws.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """How many times more samples, tokens, FLOPs and GPU-hours arm b needs than arm a for the same outcome."""
    import numpy as np

    from forecast.ratio import RESOURCES, ratio, split_arms
    from forecast.reading import read_runs

    first, second = split_arms(read_runs(runs), a, b)
    factors = ratio(first, second, metric=metric, target=target, rng=np.random.default_rng(seed), law=law)
    if as_json:
        show_table([f.model_dump() for f in factors], title="", as_json=True)
        return
    signs = {"factor": "", "at least": "> ", "at most": "< "}
    rows: list[dict[str, Any]] = [
        {
            "resource": f.resource,
            "factor": f"{signs[f.kind]}{f.value:.3g}x",
            "lower": f.lower,
            "upper": f.upper,
            "a": f.a,
            "b": f.b,
        }
        for f in factors
    ]
    show_table(rows, title=f"{b} over {a} at {metric} = {target:g} (lower, upper: 95 %)", as_json=False)
    missing = [name for name in RESOURCES if name not in {f.resource for f in factors}]
    if missing:
        note(f"not counted in both arms: {', '.join(missing)}")


def plan_command(
    fit_file: Annotated[Path, typer.Argument(metavar="FIT", help="A fit that `fit --out` wrote.")],
    budget: Annotated[
        str, typer.Option("--budget", help="A number with its unit: 50gpuh, 10cpuh, 8h, 1e18flops, 30runs.")
    ],
    runs: Annotated[
        Path | None, typer.Option("--runs", help="The runs that were fitted: they say what a run costs.")
    ] = None,
    n: Annotated[list[float] | None, typer.Option("--n", help="Samples to forecast; default 4 times the data.")] = None,
    g: Annotated[
        list[float] | None, typer.Option("--g", help="Good-view fractions to forecast; default those seen.")
    ] = None,
    largest: Annotated[
        float | None,
        typer.Option("--largest", help="Most samples that a planned run may have; default twice the data."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the power simulation.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Which designs to run next within a budget, and the seeds per target that give the check 80 % power."""
    import numpy as np

    from forecast.fitted import Fit
    from forecast.plan import cost_of, plan, seeds_for_check
    from forecast.prediction import look_ahead
    from forecast.reading import read_runs
    from forecast.records import Design, Target

    words = re.fullmatch(r"\s*([0-9.eE+]+)\s*([a-z]+)\s*", budget)
    if not words:
        raise ForecastError(f"--budget needs a number with its unit, such as 50gpuh or 30runs, got {budget!r}")
    fitted = Fit.load(fit_file)
    seen = fitted.table()[0]
    if "n" not in seen:
        raise ForecastError("plan needs a fit in n (samples)")
    unit = words[2]
    if runs is None and unit != "runs":
        raise ForecastError(f"a budget in {unit} needs --runs RUNS to know what a run costs; or give --budget 30runs")
    cost = cost_of(read_runs(runs) if runs is not None else [], unit)
    top = seen["n"].max()
    sizes = np.geomspace(seen["n"].min(), largest or 2 * top, 12)
    shares = np.unique(seen["g"]) if "g" in seen else np.array([1.0])
    spots = np.array([(s, x) for s in n or [4 * top] for x in (g or shares.tolist())])
    grid = np.array([(s, x) for s in sizes for x in shares])
    candidates, targets = ({"n": m[:, 0], "g": m[:, 1]} for m in (grid, spots))
    if "g" not in seen:
        candidates, targets = {"n": candidates["n"]}, {"n": targets["n"]}
    planned = plan(fitted, candidates, targets, budget=float(words[1]), cost=cost)
    rows = [
        {**{k: float(f"{v:.4g}") for k, v in p.columns.items()}, "runs": p.runs, f"cost_{unit}": p.cost,
         "forecast_sd_after": p.curve_sd_after}
        for p in planned
    ]  # fmt: skip
    show_table(rows, title=f"Next runs within {budget}", as_json=as_json)
    asked = [
        Target(target=f"t{i}", design=Design(settings={fitted.columns[k]: float(v[i]) for k, v in targets.items()}))
        for i in range(len(spots))
    ]
    rng = np.random.default_rng(seed)
    spread = np.std(look_ahead(fitted, asked, rng).joint(rng, 2000), axis=0)
    if fitted.noise.sigma and len(asked) > 1:
        seeds = seeds_for_check(spread, fitted.noise.sigma, rng=rng)
        said = f"{seeds} seeds per target give" if seeds else "no more than 32 seeds per target do not give"
        note(f"{said} the check an 80 % chance of finding a true forecast as good as seed noise")
