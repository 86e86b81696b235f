"""A log against the world outside it: the runs that came of it, and the data that it says it was fitted to."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np

from forecast.errors import ForecastError
from forecast.records import Run, Target
from prereg.finding import Finding
from prereg.log import SignedEntry
from prereg.outcomes import gather
from prereg.seeds import derived_seed
from prereg.statement import Registration, SignedRegistration

__all__ = ["examine_launch", "examine_outcomes", "examine_refit", "examine_resolution", "lenience", "widths"]

REPRODUCED = 1e-6


def examine_outcomes(registration: SignedRegistration, runs: Sequence[Run]) -> list[Finding]:
    """The runs of one registration: seeds, designs, metric, code, what is missing and what is too many."""
    seq = registration.signed.seq
    outcomes, findings = gather(registration, runs)
    found = sum(outcome.run_id is not None for outcome in outcomes)
    findings = [f.model_copy(update={"seq": seq, "text": f"entry {seq}: {f.text}"}) for f in findings]
    if 0 < found < len(outcomes):
        findings.append(_finding("warning", "INTERIM", f"INTERIM {found} of {len(outcomes)}", seq))
    if found and not any(finding.level == "failed" for finding in findings):
        text = f"{found} of {len(outcomes)} runs have derived seeds, the registered designs and the registered metric"
        findings.append(_finding("verified", "outcomes", text, seq))
    return findings


def examine_launch(registration: SignedRegistration, launch: SignedEntry) -> list[Finding]:
    """A `launch` entry: its jobs are registered replicates with derived seeds, its code the registered one."""
    statement, body = registration.statement, launch.body
    sizes = {claim.target: claim.replicates for claim in statement.targets}
    jobs, problems = body.get("jobs"), []
    for job in jobs if isinstance(jobs, list) else []:
        target, replicate, seed = (job.get(name) if isinstance(job, dict) else None for name in _JOB)
        if not isinstance(target, str) or not isinstance(replicate, int) or not 0 <= replicate < sizes.get(target, 0):
            problems.append(f"{target}/{replicate} is not registered")
        elif seed != derived_seed(registration.digest, target, replicate):
            problems.append(f"{target}/{replicate}: seed not derived: {seed}")
    code, registered = body.get("code_hash"), statement.launch.code_hash
    if registered is not None and code != registered:
        problems.append(f"CODE CHANGED: launched {str(code)[:12]}, registered {registered[:12]}")
    if not isinstance(jobs, list) or not jobs:
        problems.append("it launches nothing")
    return [_finding("failed", "launch", problem, launch.seq) for problem in problems[:20]]


_JOB = ("target", "replicate", "seed")


def examine_resolution(registration: SignedRegistration, resolution: SignedEntry, runs: Sequence[Run]) -> list[Finding]:
    """The outcomes that a `resolve` entry signed against those in `runs`."""
    check = resolution.body.get("check")
    rows = check.get("outcomes") if isinstance(check, dict) else None
    if not isinstance(check, dict) or not isinstance(rows, list):
        return [_finding("failed", "resolve", "holds no outcomes", resolution.seq)]
    now = {(o.target, o.replicate): (o.status, o.value) for o in gather(registration, runs)[0]}
    signed = {_key(row): (row.get("status"), row.get("value")) for row in rows if isinstance(row, dict)}
    changed = sorted(str(key) for key in now.keys() | signed.keys() if now.get(key) != signed.get(key))
    if changed:
        text = f"EDITED: {len(changed)} outcomes are not those that were signed ({', '.join(changed[:5])})"
        return [_finding("failed", "EDITED", text, resolution.seq)]
    stated = resolution.body.get("headline")
    problem = (
        f"the entry's headline is {stated!r}, that of its check {check.get('headline')!r}"
        if stated != check.get("headline")
        else _other_result(registration, check, rows, runs)
    )
    if problem:
        return [_finding("failed", "RESULT", f"RESULT NOT REPRODUCED: {problem}", resolution.seq)]
    return [_finding("verified", "resolve", f"all {len(now)} outcomes are those that were signed", resolution.seq)]


_SEEDS = re.compile(r" \((about \d+ seeds a target would decide|more seeds alone will not decide)\)")


def _other_result(
    registration: SignedRegistration, signed: Mapping[str, Any], rows: Sequence[Any], runs: Sequence[Run]
) -> str | None:
    """How the signed headline and numbers differ from what the check gives for the signed outcomes; None if not."""
    from prereg.check import check

    try:
        again = check(
            registration,
            runs,
            rng=np.random.default_rng(int(registration.digest[:16], 16)),
            as_of=date.fromisoformat(str(signed.get("as_of"))),
            exclusions={str(row["run_id"]): str(row["rule"]) for row in rows if row.get("rule")},
            final=True,
        )
    except (ForecastError, ValueError) as error:
        return f"the check cannot be made again: {error}"
    stated, found = (_SEEDS.sub("", text) for text in (str(signed.get("headline")), again.headline))
    if stated.removeprefix("WITHDRAWN: ") != found:
        return f"signed is {stated!r}, the runs give {found!r}"
    for name in ("rmse", "sigma"):
        was, now = signed.get(name), getattr(again, name)
        if (was is None) != (now is None) or (now is not None and not math.isclose(float(str(was)), now, rel_tol=1e-9)):
            return f"{name} signed is {was}, the runs give {now}"
    return None


def examine_refit(registration: SignedRegistration, data: Sequence[Run]) -> Finding:
    """Fit again to the declared data and compare the points; the data must have the declared hash."""
    statement, seq = registration.statement, registration.signed.seq
    wanted = set(statement.fit.run_ids)
    chosen = [run for run in data if run.run_id in wanted]
    if len(chosen) != len(wanted):
        text = f"{len(wanted) - len(chosen)} of {len(wanted)} fitted runs are not in the data given; not refitted"
        return _finding("failed", "refit", text, seq)
    registered = np.array([claim.point for claim in statement.targets])
    scale = max(float(np.max(np.abs(registered))), np.finfo(float).tiny)
    differences = []
    for law in (statement.fit.law, "auto"):  # as fitted by name, or as chosen and averaged among the laws
        try:
            points, data_hash = _refit(statement, chosen, law)
        except ForecastError as error:
            return _finding("failed", "refit", f"the declared data cannot be fitted: {error}", seq)
        if data_hash != statement.fit.data_hash:
            text = f"data differ: hash {data_hash[:12]}, registered {statement.fit.data_hash[:12]}"
            return _finding("failed", "refit", text, seq)
        differences.append(float(np.max(np.abs(registered - points))))
        if differences[-1] <= REPRODUCED * scale:
            text = f"predictions follow from the declared data (max diff {differences[-1]:.1g})"
            return _finding("verified", "refit", text, seq)
    return _finding("failed", "refit", f"predictions do not follow (max diff {min(differences):.3g})", seq)


def _refit(statement: Registration, runs: Sequence[Run], law: str) -> tuple[Any, str]:
    """The targets' points by `law` fitted to `runs` with the registered settings, and the data's hash."""
    from forecast.fitting import fit
    from forecast.prediction import predict

    settings = statement.fit.settings
    seed, delta = settings.get("seed"), settings.get("delta")
    columns = {name[7:]: str(value) for name, value in settings.items() if name.startswith("column.")}
    targets = [Target(target=c.target, design=c.design, replicates=c.replicates) for c in statement.targets]
    fitted = fit(
        runs,
        metric=statement.metric.name,
        law=law,
        loss=str(settings.get("loss", "squared")),
        delta=float(delta) if isinstance(delta, (int, float)) else None,
        columns=columns or None,
        rng=np.random.default_rng(None if seed is None else int(str(seed))),
    )
    predictions = predict(fitted, targets, rng=np.random.default_rng(0))
    return np.array([prediction.point for prediction in predictions]), fitted.data_hash


def lenience(registration: SignedRegistration) -> list[Finding]:
    """Warnings of what makes the primary test easier to pass than the usual margin, level and baselines do."""
    statement, seq = registration.statement, registration.signed.seq
    rule, found = statement.rules.primary, []
    if rule.delta > 1:
        found.append(f"the margin is {rule.delta:g} x seed noise: a law that errs by more than a rerun may pass")
    if rule.alpha > 0.05:
        found.append(f"alpha is {rule.alpha:g}: the test says AS GOOD of a law at the margin that often")
    if not statement.baselines:
        found.append("no baseline is registered: nothing shows whether a trivial forecast would pass as well")
    if rule.test == "single runs":
        found.append("the primary test is of single runs: it takes the registered seed noise at its word")
    return [_finding("warning", "lenient", text, seq) for text in found]


def widths(registration: SignedRegistration) -> Finding | None:
    """A warning where the median 95 % interval is more than 4 times what seed noise alone makes it."""
    statement, seq = registration.statement, registration.signed.seq
    if statement.noise.sigma is None:
        return None
    noise = statement.noise_sds()
    spans = [
        (claim.quantile("0.975") - claim.quantile("0.025")) / max(noise[claim.target], np.finfo(float).tiny)
        for claim in statement.targets
    ]
    ratio = float(np.median(spans)) / (2 * 1.959963984540054)
    if ratio <= 4:
        return None
    text = f"intervals are {ratio:.1f} times as wide as seed noise: nearly too wide to fail; judge by the primary test"
    return _finding("warning", "wide", text, seq)


def _key(row: dict[str, Any]) -> tuple[Any, Any]:
    return row.get("target"), row.get("replicate")


def _finding(level: Any, code: str, text: str, seq: int) -> Finding:
    return Finding(level=level, code=code, seq=seq, text=f"entry {seq}: {text}")
