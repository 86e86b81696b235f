"""The report of a check: what was claimed, when and by whom, how it is known, and whether it held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from forecast import charts
from forecast.chart_data import Axis, Observations, axis_over, curve_data
from forecast.fitted import Fit
from forecast.page import Fact, Page, commands, number, pair, record, sentences
from prereg.check import Check
from prereg.finding import Finding
from prereg.outcomes import Outcome
from prereg.statement import SignedRegistration, TargetClaim

__all__ = ["check_page", "report_check"]

_SHOWN = ("n_samples", "good_view_fraction")
Rows = list[dict[str, Any]]


def report_check(
    check: Check,
    registration: SignedRegistration,
    *,
    rng: np.random.Generator,
    fit: Fit | None = None,
    findings: Sequence[Finding] = (),
    source: str = "check.json",
) -> str:
    """The HTML report of `check`. Arguments as of `check_page`."""
    return check_page(check, registration, rng=rng, fit=fit, findings=findings, source=source).html()


def check_page(
    check: Check,
    registration: SignedRegistration,
    *,
    rng: np.random.Generator,
    fit: Fit | None = None,
    findings: Sequence[Finding] = (),
    source: str = "check.json",
) -> Page:
    """The report of `check` as a page, with its charts (Altair) and tables (rows) by name.

    fit: the registered fit, to draw its law; rng: draws the law's bands.
    findings: of verifying the log, beside those that the check holds. source: the check's file, for the commands.
    """
    page = Page(
        title=f"{check.headline}: {check.metric}",
        kicker=f"platocast · check of registration {check.registration[:16]} · {check.as_of}",
        verdict=_verdict(check),
        mark=check.headline,
        tone=_tone(check),
        lead=registration.statement.claim,
        facts=_facts(check),
    )
    _claim_section(page, check, registration)
    _verified_section(page, check, findings)
    _outcome_section(page, check, registration, fit, rng)
    _test_section(page, check)
    _score_section(page, check)
    _ledger_section(page, check, registration)
    _power_section(page, check, registration)
    _provenance_section(page, check, registration, source)
    return page


def _verdict(check: Check) -> str:
    if check.rmse is None:
        return f"{check.headline}: no registered run has an outcome that counts."
    runs = check.finished - check.excluded
    missed = f"{check.headline}: the forecast missed {runs} new run{'s' * (runs != 1)} by {number(check.rmse)}"
    if check.rerun is None:
        return f"{missed} (RMSE); seed noise is unknown."
    return f"{missed} (RMSE), where a rerun with another seed would have missed them by {number(check.rerun)}."


def _tone(check: Check) -> Any:
    if not check.ok or check.headline.startswith("WORSE"):
        return "bad"
    return "good" if check.headline == "AS GOOD AS SEED NOISE" else "doubt"


def _facts(check: Check) -> list[Fact]:
    facts = [
        Fact("Outcomes", f"{check.finished} of {check.expected}", _remainder(check)),
        Fact("RMSE of the forecast", number(check.rmse), check.metric),
        Fact("Seed noise (SD)", number(check.sigma), check.sigma_source),
    ]
    if check.rmse is not None and check.sigma:
        facts.append(Fact("RMSE / seed noise", number(check.rmse / check.sigma), "no law gets below 1"))
    scores = check.scores
    if scores is not None and scores.coverage:
        widest = max(scores.coverage, key=lambda row: row.level)
        facts.append(Fact(f"In the {widest.level:.0%} intervals", f"{widest.observed:.0%}", "of the outcomes"))
    return facts


def _remainder(check: Check) -> str:
    parts = {"missing": check.missing, "failed": check.failed, "excluded": check.excluded}
    early = sum(outcome.early for outcome in check.outcomes)
    found = [f"{count} {name}" for name, count in (parts | {"submitted early": early}).items() if count]
    return ", ".join(found) or "none missing, failed, excluded or early"


def _claim_section(page: Page, check: Check, registration: SignedRegistration) -> None:
    statement, signed = registration.statement, registration.signed
    facts: dict[str, object] = {
        "claim": statement.claim,
        "it would be refuted if": statement.refuted_by,
        "author": signed.entry.author,
        "signed with": f"{signed.key.kind} {signed.key.fingerprint}",
        "written (the author's own clock)": signed.entry.written,
        "before the runs?": check.order,
        "had been seen before": ", ".join([statement.access.level, *statement.access.seen]),
        "targets and runs": f"{len(statement.targets)} targets, {statement.runs} runs",
        "law and its data": f"{statement.fit.law}, fitted to {statement.fit.rows} runs",
        "to be resolved by": statement.rules.deadline,
    }
    page.section("What was claimed, by whom and when", record(facts))


def _verified_section(page: Page, check: Check, findings: Sequence[Finding]) -> None:
    order = {"failed": 0, "warning": 1, "not examined": 2, "verified": 3}
    every = list({(f.level, f.code, f.text): f for f in [*check.findings, *findings]}.values())
    rows = [
        {"result": f.level, "what was found": f.text, "about": f.code, "entry": "" if f.seq is None else str(f.seq)}
        for f in sorted(every, key=lambda f: order[f.level])
    ]
    page.section(
        "How it is known",
        page.table("findings", rows, tags="result"),
        note="What was not examined is listed, not passed.",
    )


def _outcome_section(
    page: Page, check: Check, registration: SignedRegistration, fit: Fit | None, rng: np.random.Generator
) -> None:
    claims = {claim.target: claim for claim in registration.statement.targets}
    used = [o for o in check.outcomes if o.value is not None and o.rule is None]
    if not used:
        return
    axes = _axes([claims[o.target] for o in used])
    group = next((axis for axis in reversed(axes) if axis.setting == "good_view_fraction"), None)
    rows = _rows(used, claims, axes, group)
    quantity = registration.statement.targets[0].quantity
    caption = f"Bars: the registered 95 % interval of {quantity}."
    caption += " Grey: one seed noise on each side." if check.sigma else ""
    left = page.chart("observed", charts.observed(rows, check.metric, check.sigma), caption)
    right = [_residuals(page, check, rows, axis) for axis in axes[:2]]
    parts = [pair(left, f"<div>{''.join(right)}</div>") if right else left]
    if fit is not None:
        parts.insert(0, _law(page, check, fit, used, claims, rng))
    page.section("Predicted and observed", *parts)


def _residuals(page: Page, check: Check, rows: Rows, axis: Axis) -> str:
    moved = [{**row, "x": row[axis.setting]} for row in rows if row[axis.setting] == row[axis.setting]]
    text = f"Errors along {axis.title}." + (" Grey: one and two seed noises." if check.sigma else "")
    return page.chart(f"residuals-{axis.name}", charts.residuals(moved, axis, check.metric, check.sigma), text)


def _law(
    page: Page,
    check: Check,
    fit: Fit,
    used: Sequence[Outcome],
    claims: dict[str, TargetClaim],
    rng: np.random.Generator,
) -> str:
    """The registered law with the new runs on it."""
    table_of_fit, _, _ = fit.table()
    columns = {
        name: np.array([_value(claims[o.target], setting) for o in used], dtype=np.float64)
        for name, setting in fit.columns.items()
        if name in table_of_fit
    }
    kept = np.all([np.isfinite(column) for column in columns.values()], axis=0)
    columns = {name: column[kept] for name, column in columns.items()}
    values = np.array([o.value for o in used], dtype=np.float64)[kept]
    names = [f"{o.target}-{o.replicate}" for o, keep in zip(used, kept, strict=True) if keep]
    seen = Observations(columns, values, names, np.ones(len(values)), values, values, values)
    axes = []
    for name in sorted(columns, key=lambda name: (name == "g", name != "n", name)):
        old = axis_over(name, fit.columns[name], table_of_fit[name].tolist())
        both = axis_over(name, fit.columns[name], [*table_of_fit[name].tolist(), *columns[name].tolist()], beyond=True)
        if both is not None:
            axes.append(Axis(both.name, both.setting, both.log, both.domain, old.data if old else both.data))
    chart = charts.curves(curve_data(fit, seen, axes, rng), check.metric)
    caption = (
        "The registered law with its 95 % band, dotted beyond the data that it was fitted to. Points: the new runs."
    )
    return page.chart("curves", chart, caption)


def _axes(claims: Sequence[TargetClaim]) -> list[Axis]:
    """The settings that vary over the targets and are numbers: samples and good-view fraction first."""
    names = {name for claim in claims for name in claim.design.settings}
    found = []
    for name in sorted(names, key=lambda name: (_SHOWN.index(name) if name in _SHOWN else 9, name)):
        values = [v for v in (_value(claim, name) for claim in claims) if v == v]
        axis = axis_over(name.replace(".", "-"), name, values) if values else None
        if axis is not None:
            found.append(axis)
    return found


def _rows(used: Sequence[Outcome], claims: dict[str, TargetClaim], axes: Sequence[Axis], group: Axis | None) -> Rows:
    rows: Rows = []
    for outcome in used:
        claim = claims[outcome.target]
        row: dict[str, Any] = {"run": outcome.run_id or f"{outcome.target}-{outcome.replicate}"}
        row |= dict(claim.design.settings) | {axis.setting: _value(claim, axis.setting) for axis in axes}
        row |= {"point": claim.point, "lower": claim.quantile("0.025"), "upper": claim.quantile("0.975")}
        row |= {"value": outcome.value, "error": outcome.error}
        shown = "new runs" if group is None else _level(claim.design.settings.get(group.setting))
        rows.append(row | {"group": shown, "group_title": group.title if group else ""})
    return rows


def _test_section(page: Page, check: Check) -> None:
    test = check.primary
    if test is None:
        page.section("The one test that decides", sentences([check.primary_absent or "it could not be made"]))
        return
    facts: dict[str, object] = {
        "test": test.test,
        "result": test.label,
        "quantity": test.quantity,
        "estimate": f"{number(test.estimate)}, interval {number(test.lower)} to {number(test.upper)}",
        "margin": number(test.margin),
        "seed noise": f"{number(test.sigma)} ({test.degrees_of_freedom} degrees of freedom)",
        "the law's own error (RMS)": f"{number(test.curve_error)} seed noises",
    }
    if test.f is not None and test.p_value is not None:
        facts["F test of no error at all"] = f"F = {test.f:.3g}, p = {test.p_value:.2g}"
    if test.seeds_needed is not None:
        facts["seeds for an 80 % chance of AS GOOD"] = test.seeds_needed
    if check.all_runs is not None:
        facts["with nothing excluded"] = check.all_runs.label
    skills = {row.baseline: row.skill for row in check.scores.skill} if check.scores else {}
    rows: Rows = [{"forecast": "this registration", "RMSE": check.rmse, "skill": None, "same test": test.label}]
    for b in check.baselines:
        row = {"forecast": b.baseline, "RMSE": b.rmse, "skill": skills.get(b.baseline), "same test": b.label or "–"}
        rows.append(row)
    note = "Skill: 1 minus the ratio of mean squared errors; above 0, the registered forecast is the better one."
    parts = [
        record(facts),
        "<h3>Baselines, same test</h3>",
        page.table("baselines", rows),
        f'<p class="note">{note}</p>',
    ]
    page.section("The one test that decides", *parts)


def _score_section(page: Page, check: Check) -> None:
    scores = check.scores
    if scores is None:
        return
    covered = [
        {"level": c.level, "observed": c.observed, "lower": c.band_lower, "upper": c.band_upper}
        for c in scores.coverage
    ]
    bars = [
        {"start": b.lower, "end": b.upper, "observed": b.observed, "lower": b.band_lower, "upper": b.band_upper}
        for b in scores.pit
    ]
    text = "Outcomes inside each central interval. Grey: where 95 % of such shares lie if the forecast is right."
    page.tables |= {"coverage": covered} | ({"pit": bars} if bars else {})
    figures = [page.chart("coverage", charts.coverage(covered), text)]
    if bars:
        text = "Where outcomes fell within their forecasts; flat and within the grey if the forecast is right."
        figures.append(page.chart("pit", charts.pit(bars), text))
    facts: dict[str, object] = {
        "mean error (observed minus predicted)": number(scores.mean_error),
        "CRPS": number(scores.crps),
        "weighted interval score": number(scores.wis),
    }
    if check.item_error is not None:
        facts["standard error from the test items"] = f"{number(check.item_error)} ({check.about})"
    strata = [
        {"setting": s.name, "value": s.value, "runs": s.runs, "mean error": s.mean_error, "RMSE": s.rmse}
        for s in scores.strata
    ]
    trends = sentences([trend.text for trend in scores.trends])
    parts = [pair(*figures), record(facts), trends, "<h3>Errors by group</h3>", page.table("strata", strata)]
    page.section("Calibration and errors", *parts, note="These carry no verdict.")


def _ledger_section(page: Page, check: Check, registration: SignedRegistration) -> None:
    claims = {claim.target: claim for claim in registration.statement.targets}
    rows = [
        {
            "target": o.target,
            "replicate": o.replicate,
            **{name: _number(claims[o.target], name) for name in _SHOWN},
            "status": o.status if o.rule is None else f"excluded: {o.rule}",
            "predicted": claims[o.target].point,
            "observed": o.value,
            "error": o.error,
            "remark": "; ".join(part for part in (o.reason, "submitted early" if o.early else None) if part),
        }
        for o in check.outcomes
    ]
    for name in (*_SHOWN, "remark"):
        if all(row[name] in (None, "") for row in rows):
            rows = [{k: v for k, v in row.items() if k != name} for row in rows]
    rules = [f"{rule.id}: {rule.rule}" for rule in registration.statement.rules.exclusions]
    lead = f"Declared before: a run may be left out for {'; '.join(rules)}." if rules else "No exclusion was declared."
    page.section("Every registered run", page.table("outcomes", rows), note=f"{_remainder(check).capitalize()}. {lead}")


def _power_section(page: Page, check: Check, registration: SignedRegistration) -> None:
    points = registration.statement.power
    if len(points) < 2:
        return
    rows = [{"curve_error": p.curve_error, "probability": p.probability} for p in points]
    text = "The chance of a good verdict, as it was registered: a test that could not fail would be flat."
    page.section("What the test could have shown", page.chart("power", charts.power(rows), text))


def _provenance_section(page: Page, check: Check, registration: SignedRegistration, source: str) -> None:
    statement = registration.statement
    facts: dict[str, object] = {
        "registration (sha256)": registration.digest,
        "data of the fit (sha256)": statement.fit.data_hash,
        "file of the fit (sha256)": statement.fit.file_hash,
        "code of the launch (sha256)": statement.launch.code_hash or "not registered",
        "test items (sha256)": statement.metric.items_hash or "not registered",
        "seed rule": statement.seed_rule,
    }
    entry = f"LOG/{registration.signed.path.name}"
    lines = [
        "platocast verify LOG",
        f"platocast check {entry} --ledger RUNS.jsonl --out {source}",
        f"platocast report {source} --log LOG --fit fit.json --out index.html",
    ]
    page.section("How to reproduce it", record(facts), commands(lines))


def _value(claim: TargetClaim, setting: str) -> float:
    value = claim.design.settings.get(setting)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else float("nan")


def _number(claim: TargetClaim, setting: str) -> Any:
    value = claim.design.settings.get(setting)
    return value if _is_number(value) else None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _level(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) else "none" if value is None else str(value)
