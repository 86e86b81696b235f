"""The report of a fit: what law, how sure, against what, and where not to trust it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from forecast import charts
from forecast.chart_data import Axis, Observations, axes_of, curve_data, observations, observed_rows, surface_data
from forecast.fitted import CLEAR, Candidate, Fit
from forecast.page import Fact, Page, commands, formula, number, pair, record, sentences
from forecast.records import Run

__all__ = ["fit_page", "report_fit"]

_COLUMNS = (
    "CRPS, RMSE and coverage of the 95 % interval: on held-out designs. RMSE inside: on the designs of the fit. "
    "Free: parameters that were estimated. Weight: share in the averaged prediction."
)


def report_fit(
    fit: Fit, runs: Sequence[Run] | None = None, *, rng: np.random.Generator, source: str = "fit.json"
) -> str:
    """The HTML report of `fit`. Arguments as of `fit_page`."""
    return fit_page(fit, runs, rng=rng, source=source).html()


def fit_page(
    fit: Fit, runs: Sequence[Run] | None = None, *, rng: np.random.Generator, source: str = "fit.json"
) -> Page:
    """The report of `fit` as a page, with its charts (Altair) and tables (rows) by name.

    runs: the runs it was fitted to; without them design means are shown. rng: draws the bands.
    source: the fit's file, for the commands that are shown.
    """
    seen, axes = observations(fit, runs, rng), axes_of(fit)
    page = Page(
        title=f"{fit.law} on {fit.metric.name}",
        kicker="platocast · fit report",
        verdict=_verdict(fit),
        mark=fit.law,
        lead=_lead(fit, seen),
        facts=_facts(fit),
    )
    if axes:
        _law_section(page, fit, seen, axes, rng)
    _parameters_section(page, fit)
    _comparison_section(page, fit)
    _residual_section(page, fit, seen, axes)
    if fit.warnings:
        page.section("What to keep in mind", sentences(fit.warnings))
    page.section("The data, design by design", page.table("designs", _design_rows(fit)))
    _provenance_section(page, fit, source)
    return page


def _verdict(fit: Fit) -> str:
    mine = next((row for row in fit.candidates if row.law == fit.law), None)
    best = _best_baseline(fit)
    if mine is None or mine.backtest_crps is None:
        return f"{fit.law} describes {fit.metric.name}, but no design was held out: nothing says how well it predicts."
    if best is None or best.backtest_crps is None:
        return f"{fit.law} predicts {fit.metric.name} of held-out designs with a CRPS of {number(mine.backtest_crps)}."
    behind = 0.0 if best.behind is None else best.behind
    if abs(behind) <= CLEAR:
        return f"{fit.law} and the baseline {best.law} cannot be told apart on held-out designs of {fit.metric.name}."
    if behind < 0:
        return f"The baseline {best.law} predicts {fit.metric.name} of held-out designs better than {fit.law}."
    ratio = mine.backtest_crps / best.backtest_crps if best.backtest_crps > 0 else math.inf
    return (
        f"{fit.law} predicts {fit.metric.name} of held-out designs with {ratio:.0%} of the error (CRPS) of the best "
        f"baseline, {best.law}."
    )


def _lead(fit: Fit, seen: Observations) -> str:
    noise = fit.noise
    if noise.sigma is None:
        return "No design was run with two seeds, so seed noise is unknown and no error can be compared with it."
    off = float(np.sqrt(np.average((seen.values - seen.points) ** 2, weights=seen.weights)))
    return (
        f"In the data the law misses a run by {number(off)} (root mean square); two seeds of one design differ with an "
        f"SD of {number(noise.sigma)}."
    )


def _facts(fit: Fit) -> list[Fact]:
    noise = fit.noise
    bounds = "" if noise.lower is None or noise.upper is None else f"95 %: {noise.lower:.3g} to {noise.upper:.3g}, "
    mine = next((row for row in fit.candidates if row.law == fit.law), None)
    facts = [
        Fact("Runs", number(noise.runs), f"of {noise.designs} designs, {noise.replicated} with several seeds"),
        Fact("Seed noise (SD)", number(noise.sigma), f"{bounds}{noise.degrees_of_freedom} degrees of freedom"),
    ]
    if mine is not None and mine.backtest_crps is not None:
        facts.append(Fact("CRPS, held out", number(mine.backtest_crps), f"on {mine.held_out} design means"))
        covered = "" if mine.coverage is None else f"{mine.coverage:.0%}"
        facts.append(Fact("95 % intervals held", covered or "–", "of held-out design means"))
    lack = fit.chosen.lack_of_fit
    if lack is not None:
        word = "more than seed noise" if lack.p_value < 0.05 else "no more than seed noise"
        facts.append(Fact("Lack of fit", f"p = {lack.p_value:.2g}", f"the means stray {word} explains"))
    return facts


def _law_section(page: Page, fit: Fit, seen: Observations, axes: list[Axis], rng: np.random.Generator) -> None:
    data = curve_data(fit, seen, axes, rng)
    parts = [
        formula(f"{fit.metric.name} = {fit.chosen.formula}"),
        page.chart(
            "curves",
            charts.curves(data, fit.metric.name),
            f"Lines: {_drawn(fit)}; bands: 95 % for the curve itself, without seed noise; dotted: beyond the data. "
            f"Points: {'single runs' if len(seen.names) == fit.noise.runs else 'design means'}.",
        ),
    ]
    if len(axes) >= 2:
        tiles, dots = surface_data(fit, seen, axes[0], axes[-1])
        caption = (
            "The same law as a map. A dot marks a design of the data, filled with what its runs scored: "
            "where dots vanish into the map, the law agrees."
        )
        parts.append(page.chart("surface", charts.surface(tiles, dots, axes[0], axes[-1], fit.metric.name), caption))
    page.section("The law and the runs", *parts)


def _drawn(fit: Fit) -> str:
    shares = sorted((c.weight for c in fit.components if c.weight >= 0.005), reverse=True)
    if len(shares) < 2:
        return "the law"
    return (
        f"the average of {len(shares)} laws, weighted by how well they extrapolate ({fit.law} {fit.chosen.weight:.0%})"
    )


def _parameters_section(page: Page, fit: Fit) -> None:
    rows = [
        {
            "parameter": p.name,
            "value": p.value,
            "standard error": p.standard_error,
            "lower 95 %": p.lower,
            "upper 95 %": p.upper,
            "status": p.status,
        }
        for p in fit.parameters
    ]
    note = f"Intervals by {fit.interval_method}. Source of the law: {fit.chosen.source}"
    page.section("Its parameters", page.table("parameters", rows), note=note)


def _comparison_section(page: Page, fit: Fit) -> None:
    rows: list[dict[str, Any]] = [
        {
            "law": c.law,
            "kind": c.kind,
            "CRPS": c.backtest_crps,
            "RMSE": c.backtest_rmse,
            "coverage": c.coverage,
            "RMSE inside": c.rmse,
            "free": c.parameters,
            "weight": round(c.weight, 4),
            "status": c.status,
        }
        for c in sorted(fit.candidates, key=lambda c: math.inf if c.backtest_crps is None else c.backtest_crps)
    ]
    chosen = next((i for i, row in enumerate(rows) if row["law"] == fit.law), None)
    drawn = [
        {"law": r["law"], "kind": r["kind"], "zero": 0, "crps": r["CRPS"], "RMSE": r["RMSE"]}
        for r in rows
        if r["CRPS"] is not None
    ]
    parts = []
    if drawn:
        floor = None if fit.noise.sigma is None else fit.noise.sigma / math.sqrt(math.pi)
        caption = (
            "Continuous ranked probability score on designs that were held out, smaller is better; it rewards a "
            "narrow interval only if it is honest."
        )
        if floor is not None:
            caption += " The rule: what a perfect law would still score for single runs, from seed noise alone."
        parts.append(page.chart("comparison", charts.comparison(drawn, floor, fit.metric.name), caption))
    page.section(
        "Against other laws and baselines",
        sentences(fit.reasons),
        *parts,
        page.table("candidates", rows, chosen=chosen),
    )


def _residual_section(page: Page, fit: Fit, seen: Observations, axes: list[Axis]) -> None:
    group = axes[-1] if len(axes) > 1 else None
    rows = observed_rows(fit, seen, group)
    sigma = fit.noise.sigma
    band = "Grey: one seed noise on each side." if sigma else "Seed noise is unknown: no design has two seeds."
    caption = f"Bars: 95 % interval of one new run. {band}"
    shown = ("group", "group_title")
    page.tables["observed"] = [{k: v for k, v in row.items() if k not in shown} for row in rows]
    left = page.chart("observed", charts.observed(rows, fit.metric.name, sigma), caption)
    right = []
    for axis in (axes[0], axes[-1]) if len(axes) > 1 else axes[:1]:
        moved = [{**row, "x": row[axis.setting]} for row in rows]
        chart = charts.residuals(moved, axis.within_data(), fit.metric.name, sigma)
        text = f"Residuals along {axis.title}." + (" Grey: one and two seed noises." if sigma else "")
        right.append(page.chart(f"residuals-{axis.name}", chart, text))
    page.section("Where it is off", pair(left, f"<div>{''.join(right)}</div>") if right else left)


def _design_rows(fit: Fit) -> list[dict[str, Any]]:
    columns = {name: fit.columns.get(name, name) for name in fit.designs[0].columns}
    return [
        {**{setting: d.columns[name] for name, setting in columns.items()}, "runs": d.runs, "mean": d.mean}
        for d in sorted(fit.designs, key=lambda d: [d.columns[name] for name in columns])
    ]


def _provenance_section(page: Page, fit: Fit, source: str) -> None:
    facts: dict[str, object] = {
        "data (sha256)": fit.data_hash,
        "runs": len(fit.run_ids),
        "designs": len(fit.design_hashes),
        "loss": fit.loss if fit.delta is None else f"{fit.loss}, delta {number(fit.delta)}",
        "link": fit.link,
        "columns": ", ".join(f"{name} = {setting}" for name, setting in fit.columns.items()),
        "seed of starts and draws": "not recorded" if fit.seed is None else fit.seed,
    }
    law = f"--law {fit.law} --loss {fit.loss}" + ("" if fit.seed is None else f" --seed {fit.seed}")
    lines = [
        f"platocast fit RUNS.jsonl --metric {fit.metric.name} {law} --out {source}",
        f"platocast report {source} --runs RUNS.jsonl --out index.html",
    ]
    page.section("How to reproduce it", record(facts), commands(lines))


def _best_baseline(fit: Fit) -> Candidate | None:
    rows = [row for row in fit.baselines if row.backtest_crps is not None]
    return min(rows, key=lambda row: row.backtest_crps or 0.0, default=None)
