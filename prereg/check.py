"""A registration's claim against what happened: one verdict against seed noise, and what stands beside it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import FiniteFloat, ValidationError

from forecast.errors import ForecastError
from forecast.files import write_atomically
from forecast.records import Record, Run, Sha256
from prereg.finding import Finding
from prereg.outcomes import Outcome, gather
from prereg.secondary import Scores, item_sampling_error, score
from prereg.statement import Registration, SignedRegistration

__all__ = ["BaselineTest", "Check", "PrimaryResult", "check"]

AS_GOOD, WORSE, INCONCLUSIVE = "AS GOOD AS SEED NOISE", "WORSE THAN SEED NOISE", "INCONCLUSIVE"
ONE_LOOK = "one look is registered, when the last run is there"
_LABELS = {"as good": AS_GOOD, "worse": WORSE, "inconclusive": INCONCLUSIVE}


class PrimaryResult(Record):
    """The noise-aware test's result; fields as in forecast.noise_test.NoiseTest.

    seeds_needed: replicates per target for an 80 % chance of AS GOOD, null where none up to 64 would do.
    """

    test: Literal["replicates", "single runs"]
    label: str
    bias_detected: bool
    quantity: str
    estimate: FiniteFloat
    lower: FiniteFloat
    upper: FiniteFloat
    margin: FiniteFloat
    rmse: FiniteFloat
    sigma: FiniteFloat
    degrees_of_freedom: int
    targets: int
    curve_error: FiniteFloat
    f: FiniteFloat | None = None
    p_value: FiniteFloat | None = None
    excess_kurtosis: FiniteFloat | None = None
    kurtosis_high: bool = False
    seeds_needed: int | None = None


class BaselineTest(Record):
    """A registered baseline under the primary test; label is null where the test could not be made."""

    baseline: str
    label: str | None
    rmse: FiniteFloat | None


class Check(Record):
    """What came of a registration. value units: the metric's.

    ok: no examination of the outcomes failed (a verdict such as WORSE is a result, not a failure).
    rmse, sigma, rerun: RMSE of outcomes about their points, seed noise, and sqrt(2) seed noise.
    sigma_source: where sigma comes from. item_error: SE from the test set's own sampling.
    all_runs: the primary test with nothing excluded, where runs were excluded.
    """

    format: Literal["platocast-check-1"] = "platocast-check-1"
    registration: Sha256
    seq: int
    claim: str
    metric: str
    as_of: str
    headline: str
    ok: bool
    expected: int
    finished: int
    missing: int
    failed: int
    excluded: int
    order: str
    findings: tuple[Finding, ...]
    primary: PrimaryResult | None
    primary_absent: str | None = None
    all_runs: PrimaryResult | None = None
    baselines: tuple[BaselineTest, ...]
    rmse: FiniteFloat | None
    sigma: FiniteFloat | None
    sigma_source: str
    rerun: FiniteFloat | None
    item_error: FiniteFloat | None
    about: str
    scores: Scores | None
    outcomes: tuple[Outcome, ...]

    def save(self, path: Path | str) -> None:
        """Write the check as JSON, whole or not at all."""
        write_atomically(Path(path), (self.model_dump_json(indent=1) + "\n").encode())

    @classmethod
    def load(cls, path: Path | str) -> Check:
        """The check saved at `path`; ForecastError where it is none."""
        try:
            return cls.model_validate_json(Path(path).read_bytes())
        except OSError as error:
            raise ForecastError(f"{path}: cannot be read ({error.strerror}); give a file that `check` wrote") from error
        except ValidationError as error:
            raise ForecastError(f"{path}: no check of this version: {error.errors()[0]['msg']}") from error


def check(
    registration: SignedRegistration,
    runs: Sequence[Run],
    *,
    rng: np.random.Generator,
    as_of: date,
    exclusions: Mapping[str, str] | None = None,
    order: Finding | None = None,
    notes: Sequence[Finding] = (),
    final: bool = False,
) -> Check:
    """The check of `registration` against `runs`, on the day `as_of` (UTC).

    exclusions: run id -> id of a declared rule. order: what shows that runs are later than the registration.
    final: this look is the last (--resolve), so what is missing is INCOMPLETE, not INTERIM.
    Raises ForecastError where there is no outcome at all.
    """
    statement = registration.statement
    outcomes, findings = gather(registration, runs, exclusions)
    findings = [*notes, *([order] if order else []), *findings]
    used = [outcome for outcome in outcomes if outcome.status == "finished" and outcome.rule is None]
    if not any(outcome.run_id for outcome in outcomes):
        raise ForecastError(
            f"no run belongs to registration {registration.digest[:16]}; give the ledger that its runs are in"
        )
    interim = _interim(statement, outcomes, as_of, final)
    early = interim and statement.rules.looks == 1
    primary, absent = (None, ONE_LOOK) if early else _test(statement, _errors(used), rng)
    with_excluded = [outcome for outcome in outcomes if outcome.status == "finished"]
    some_excluded = len(with_excluded) > len(used) and not early
    all_runs = _test(statement, _errors(with_excluded), None)[0] if some_excluded else None
    baselines = tuple(_baseline(statement, name, used, early) for name in statement.baselines)
    sigma, source = _sigma(statement, used)
    return Check(
        registration=registration.digest,
        seq=registration.signed.seq,
        claim=statement.claim,
        metric=statement.metric.name,
        as_of=as_of.isoformat(),
        headline=_headline(statement, outcomes, findings, primary, absent, baselines, interim),
        ok=not any(finding.level == "failed" for finding in findings),
        expected=len(outcomes),
        finished=len(with_excluded),
        missing=sum(outcome.status == "missing" for outcome in outcomes),
        failed=sum(outcome.status == "failed" for outcome in outcomes),
        excluded=len(with_excluded) - len(used),
        order=order.text if order else "not examined",
        findings=tuple(findings),
        primary=primary,
        primary_absent=absent,
        all_runs=all_runs,
        baselines=baselines,
        rmse=_rmse([e for group in _errors(used).values() for e in group]),
        sigma=sigma,
        sigma_source=source,
        rerun=None if sigma is None else math.sqrt(2) * sigma,
        item_error=_item_error(registration, runs),
        about="this test set; item_error says how far a score on the population of items may lie from it",
        scores=score(statement, used, rng) if used else None,
        outcomes=tuple(outcomes),
    )


def _errors(outcomes: Sequence[Outcome]) -> dict[str, list[float]]:
    groups: dict[str, list[float]] = {}
    for outcome in outcomes:
        if outcome.error is not None:
            groups.setdefault(outcome.target, []).append(outcome.error)
    return groups


def _test(
    statement: Registration, errors: Mapping[str, Sequence[float]], rng: np.random.Generator | None
) -> tuple[PrimaryResult | None, str | None]:
    """The registered primary test on `errors` per target; None and the reason where it cannot be made.

    Where several looks are registered, each is made at alpha / looks (Bonferroni).
    rng: to simulate how many seeds would decide; None leaves that out.
    """
    from forecast.noise_test import replicate_test, seeds_needed, single_run_test

    rule, alpha = statement.rules.primary, statement.rules.primary.alpha / statement.rules.looks
    repeated = [np.array(group) for group in errors.values() if len(group) >= 2]
    if repeated and all(float(np.ptp(group)) == 0.0 for group in repeated):
        return None, "seed had no effect: the replicates of every target are identical"
    try:
        if rule.test == "replicates":
            result = replicate_test(repeated, delta=rule.delta, alpha=alpha)
        else:
            df, noise = statement.noise.degrees_of_freedom, statement.noise_sds()
            if statement.noise.sigma is None or df < 1:
                return None, "no replicates and no registered sigma: nothing to compare with seed noise"
            problem = _inflated(statement.noise.sigma, df, repeated)
            if problem:
                return None, problem
            own = np.array([max(noise[target], 1e-300) for target, group in errors.items() for _ in group])
            sigma = math.sqrt(float(np.mean(own**2)))
            values = np.array([error for group in errors.values() for error in group]) * sigma / own
            result = single_run_test(values, sigma=sigma, df=df, delta=rule.delta, alpha=alpha)
    except ValueError as error:
        return None, str(error)
    needed = seeds_needed(result, rng=rng, alpha=alpha) if rng and result.label == "inconclusive" else None
    fields = dataclasses.asdict(result) | {"label": _LABELS[result.label], "seeds_needed": needed}
    return PrimaryResult.model_validate(fields), None


def _inflated(sigma: float, df: int, groups: Sequence[np.ndarray[Any, Any]]) -> str | None:
    """Whether the registered seed noise is larger than the outcomes' own seeds allow; None where it is not.

    A one-sided F test at 1 %: with too large a sigma every forecast would be as good as seed noise.
    """
    own_df = sum(len(group) - 1 for group in groups)
    if own_df < 3:
        return None
    from scipy.stats import f

    own = math.sqrt(sum(float(np.sum((group - group.mean()) ** 2)) for group in groups) / own_df)
    p = float(f.sf((sigma / max(own, 1e-300)) ** 2, df, own_df))
    if p >= 0.01:
        return None
    stated = f"the registered seed noise {sigma:.4g} is more than the outcomes' own seeds show, {own:.4g}"
    return f"{stated} (F test, p = {p:.2g})"


def _baseline(statement: Registration, name: str, used: Sequence[Outcome], early: bool) -> BaselineTest:
    points = statement.baselines[name]
    groups: dict[str, list[float]] = {}
    for outcome in used:
        if outcome.value is not None:
            groups.setdefault(outcome.target, []).append(outcome.value - points[outcome.target])
    result = None if early else _test(statement, groups, None)[0]
    errors = [error for group in groups.values() for error in group]
    return BaselineTest(baseline=name, label=result.label if result else None, rmse=_rmse(errors))


def _sigma(statement: Registration, used: Sequence[Outcome]) -> tuple[float | None, str]:
    """Pooled within-target SD of the outcomes where targets are repeated, otherwise the registered sigma."""
    groups = [np.array(group) for group in _errors(used).values() if len(group) >= 2]
    df = sum(len(group) - 1 for group in groups)
    if df:
        variance = sum(float(np.sum((group - group.mean()) ** 2)) for group in groups) / df
        return math.sqrt(variance), f"between seeds of the outcomes, {df} degrees of freedom"
    if statement.noise.sigma is not None:
        own, noise = [outcome.target for outcome in used] or list(statement.noise_sds()), statement.noise_sds()
        sigma = math.sqrt(float(np.mean([noise[target] ** 2 for target in own])))
        return sigma, f"as registered, {statement.noise.degrees_of_freedom} degrees of freedom"
    return None, "unknown: no target is repeated and no sigma was registered"


def _rmse(errors: Sequence[float]) -> float | None:
    return math.sqrt(float(np.mean(np.square(errors)))) if errors else None


def _item_error(registration: SignedRegistration, runs: Sequence[Run]) -> float | None:
    mine = [run for run in runs if run.registration == registration.digest and run.status == "finished"]
    return item_sampling_error(mine, registration.statement.metric.name)


def _in_words(label: str, statement: Registration) -> str:
    """The label, with the registered margin and level where they are not the usual ones."""
    rule = statement.rules.primary
    if label == AS_GOOD and rule.delta != 1:
        label = f"AS GOOD AS {rule.delta:g} x SEED NOISE"
    return label if rule.alpha <= 0.05 else f"{label} (alpha = {rule.alpha:g})"


def _used(outcomes: Sequence[Outcome]) -> int:
    return sum(outcome.status == "finished" and outcome.rule is None for outcome in outcomes)


def _interim(statement: Registration, outcomes: Sequence[Outcome], as_of: date, final: bool) -> bool:
    """Whether runs are still awaited: some are missing, none is lost otherwise, and the deadline is not past."""
    missing = sum(outcome.status == "missing" for outcome in outcomes)
    waiting = 0 < missing == len(outcomes) - _used(outcomes)
    return waiting and not final and as_of <= date.fromisoformat(statement.rules.deadline)


def _headline(
    statement: Registration,
    outcomes: Sequence[Outcome],
    findings: Sequence[Finding],
    primary: PrimaryResult | None,
    absent: str | None,
    baselines: Sequence[BaselineTest],
    interim: bool,
) -> str:
    expected, used = len(outcomes), _used(outcomes)
    parts = []
    if any(finding.level == "failed" for finding in findings):
        parts.append("VERIFICATION FAILED:")
    if any(finding.code == "withdrawn" for finding in findings):
        parts.append("WITHDRAWN:")
    if used < expected:
        parts.append(f"INTERIM {used} of {expected}:" if interim else f"INCOMPLETE ({used} of {expected}):")
    if primary is None:
        parts.append(f"NO VERDICT: {absent}")
        return " ".join(parts)
    parts.append(_in_words(primary.label, statement))
    if primary.bias_detected and primary.label != WORSE:
        parts.append("BUT BIAS DETECTED")
    if primary.label == INCONCLUSIVE:
        seeds = primary.seeds_needed
        parts.append(f"(about {seeds} seeds a target would decide)" if seeds else "(more seeds alone will not decide)")
    passing = [row.baseline for row in baselines if row.label == AS_GOOD]
    if passing and primary.label == AS_GOOD:
        parts.append(f"BUT SO DOES BASELINE {', '.join(passing)}")
    return " ".join(parts)
