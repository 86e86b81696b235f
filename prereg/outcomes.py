"""Which registered run became what: every replicate is finished, failed, excluded or missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from pydantic import FiniteFloat

from forecast.errors import ForecastError
from forecast.records import Record, Run
from prereg.finding import Finding
from prereg.seeds import derived_seed
from prereg.statement import MetricClaim, SignedRegistration, TargetClaim

__all__ = ["Outcome", "gather"]


VALUES = "the values themselves are what the ledger says; to examine one, run its job again with the derived seed"


class Outcome(Record):
    """One registered replicate. value, error (outcome minus point): metric unit, null unless finished.

    rule: the id of the declared exclusion rule under which it is left out.
    early: the run itself says that it was submitted before the registration says that it was written.
    """

    target: str
    replicate: int
    run_id: str | None = None
    status: Literal["finished", "failed", "missing"]
    value: FiniteFloat | None = None
    error: FiniteFloat | None = None
    rule: str | None = None
    reason: str | None = None
    early: bool = False


def gather(
    registration: SignedRegistration, runs: Sequence[Run], exclusions: Mapping[str, str] | None = None
) -> tuple[list[Outcome], list[Finding]]:
    """Per registered replicate its outcome, and what is wrong with the runs.

    exclusions: run id -> declared rule id. Raises ForecastError for a rule or run that is not there.
    """
    statement, digest = registration.statement, registration.digest
    excluded = _declared(registration, runs, exclusions or {})
    mine = [run for run in runs if run.registration == digest]
    found: dict[tuple[str, int], list[Run]] = defaultdict(list)
    for run in mine:
        found[(run.target or "", -1 if run.replicate is None else run.replicate)].append(run)
    outcomes, findings = [], []
    for claim in statement.targets:
        for replicate in range(claim.replicates):
            candidates = found.pop((claim.target, replicate), [])
            finished = [run for run in candidates if run.status == "finished"]
            if len(finished) > 1:
                ids = ", ".join(run.run_id for run in finished)
                findings.append(_failed("replicate twice", f"{claim.target}/{replicate} has several outcomes: {ids}"))
            chosen = next(iter(finished), next(iter(candidates), None))
            for run in candidates:
                findings += _examine(registration, claim, replicate, run)
            outcome = _outcome(statement.metric, claim, replicate, chosen, excluded)
            early = chosen is not None and _early(chosen, registration.signed.entry.written)
            outcomes.append(outcome.model_copy(update={"early": True}) if early else outcome)
    unregistered = [run.run_id for group in found.values() for run in group]
    findings += _counts(registration, outcomes, unregistered, runs)
    if mine:
        findings.append(Finding(level="not examined", code="values", text=VALUES))
    return outcomes, findings


def _declared(
    registration: SignedRegistration, runs: Sequence[Run], exclusions: Mapping[str, str]
) -> Mapping[str, str]:
    rules = {rule.id for rule in registration.statement.rules.exclusions}
    ids = {run.run_id for run in runs if run.registration == registration.digest}
    for run_id, rule in exclusions.items():
        if rule not in rules:
            declared = ", ".join(sorted(rules)) or "none"
            raise ForecastError(f"exclusion rule {rule!r} was not registered; declared are: {declared}")
        if run_id not in ids:
            raise ForecastError(f"run {run_id!r} is to be excluded but is no outcome of this registration")
    return exclusions


def _examine(registration: SignedRegistration, claim: TargetClaim, replicate: int, run: Run) -> list[Finding]:
    findings = []
    seed = derived_seed(registration.digest, claim.target, replicate)
    if run.seed != seed:
        findings.append(_failed("seed not derived", f"{run.run_id}: seed not derived: {run.seed}, expected {seed}"))
    if run.design.hash != claim.design_hash:
        changed = _differences(claim.design.settings, run.design.settings)
        findings.append(_failed("OUTCOME SWITCHED", f"{run.run_id}: OUTCOME SWITCHED: design differs in {changed}"))
    if run.status == "finished":
        findings += _examine_metric(registration.statement.metric, run)
    code = run.provenance.code_hash if run.provenance else None
    registered = registration.statement.launch.code_hash
    if registered and code and code != registered:
        findings.append(
            _failed("CODE CHANGED", f"{run.run_id}: CODE CHANGED: ran {code[:12]}, registered {registered[:12]}")
        )
    return findings


def _examine_metric(claim: MetricClaim, run: Run) -> list[Finding]:
    evaluation = run.evaluation(claim.name)
    if evaluation is None:
        names = ", ".join(e.metric.name for e in run.evaluations) or "nothing"
        text = f"{run.run_id}: OUTCOME SWITCHED: {claim.name} was registered, the run has {names}"
        return [_failed("OUTCOME SWITCHED", text)]
    wrong = [
        f"{name} {getattr(evaluation.metric, name)!r} instead of {getattr(claim, name)!r}"
        for name in ("higher_is_better", "chance", "lower", "upper", "items_hash")
        if getattr(evaluation.metric, name) != getattr(claim, name)
    ]
    scored, code = evaluation.checkpoint or "last", evaluation.code_hash
    if scored != claim.checkpoint:
        wrong.append(f"checkpoint {scored!r} instead of {claim.checkpoint!r}")
    if code and claim.evaluation_code_hash and code != claim.evaluation_code_hash:
        wrong.append(f"evaluation code {code[:12]} instead of {claim.evaluation_code_hash[:12]}")
    seen, planned = (run.counters.samples_seen, run.counters.samples_planned) if run.counters else (None, None)
    if claim.checkpoint == "last" and None not in (seen, planned) and seen != planned:
        wrong.append(f"{seen} samples of {planned} planned")
    text = f"{run.run_id}: OUTCOME SWITCHED: {claim.name} has {'; '.join(wrong)}"
    return [_failed("OUTCOME SWITCHED", text)] if wrong else []


def _outcome(
    metric: MetricClaim, claim: TargetClaim, replicate: int, run: Run | None, excluded: Mapping[str, str]
) -> Outcome:
    if run is None:
        return Outcome(target=claim.target, replicate=replicate, status="missing")
    evaluation = run.evaluation(metric.name)
    if run.status == "failed" or evaluation is None:
        reason = run.failure or f"has no {metric.name}"
        return Outcome(target=claim.target, replicate=replicate, run_id=run.run_id, status="failed", reason=reason)
    return Outcome(
        target=claim.target,
        replicate=replicate,
        run_id=run.run_id,
        status="finished",
        value=evaluation.value,
        error=evaluation.value - claim.point,
        rule=excluded.get(run.run_id),
    )


def _early(run: Run, written: str) -> bool:
    stated = run.provenance.submitted or run.provenance.started if run.provenance else None
    try:
        moment = datetime.fromisoformat(stated) if stated else None
        bound = datetime.fromisoformat(written)
    except ValueError:
        return False
    return moment is not None and (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) < bound


def _counts(
    registration: SignedRegistration, outcomes: Sequence[Outcome], unregistered: Sequence[str], runs: Sequence[Run]
) -> list[Finding]:
    findings, expected = [], len(outcomes)
    missing = sum(outcome.status == "missing" for outcome in outcomes)
    if unregistered:
        text = f"{missing} of {expected} missing, {len(unregistered)} unregistered ({', '.join(unregistered[:5])})"
        findings.append(_failed("unregistered", text))
    elif missing:
        findings.append(Finding(level="warning", code="missing", text=f"{missing} of {expected} missing"))
    early = sum(outcome.early for outcome in outcomes)
    if early:
        written = registration.signed.entry.written
        text = f"{early} runs say that they were submitted before the registration says it was written ({written})"
        findings.append(Finding(level="warning", code="early", text=text))
    hashes = {claim.design_hash for claim in registration.statement.targets}
    others = [run.run_id for run in runs if run.registration != registration.digest and run.design.hash in hashes]
    if others:
        text = (
            f"{len(others)} runs of registered designs do not belong to this registration ({', '.join(others[:5])}); "
            "they are not used; if they are older, the outcome was known"
        )
        findings.append(Finding(level="warning", code="other runs", text=text))
    in_fit = [c.target for c in registration.statement.targets if c.design_hash in _fitted(registration)]
    if in_fit:
        text = f"{len(in_fit)} targets are in the fit data ({', '.join(in_fit[:5])})"
        findings.append(_failed("targets in fit", text))
    return findings


def _fitted(registration: SignedRegistration) -> set[str]:
    return set(registration.statement.fit.design_hashes)


def _differences(registered: Mapping[str, object], ran: Mapping[str, object]) -> str:
    names = sorted(name for name in registered.keys() | ran.keys() if registered.get(name) != ran.get(name))
    return ", ".join(f"{name} ({registered.get(name)!r} -> {ran.get(name)!r})" for name in names[:5])


def _failed(code: str, text: str) -> Finding:
    return Finding(level="failed", code=code, text=text)
