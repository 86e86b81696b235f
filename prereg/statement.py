"""What a registration claims: one closed record, written once and signed as bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, FiniteFloat, ValidationError, model_validator

from forecast.errors import CheckFailed
from forecast.records import LEVELS, Design, Frozen, Record, Settings, Sha256, TargetId
from prereg.log import SignedEntry, find_entry
from prereg.seeds import SEED_RULE

__all__ = [
    "Access",
    "ExclusionRule",
    "FitClaim",
    "LaunchClaim",
    "MetricClaim",
    "NoiseClaim",
    "ParameterClaim",
    "PowerPoint",
    "PrimaryRule",
    "Registration",
    "Rules",
    "SignedRegistration",
    "TargetClaim",
    "find_registration",
]

Text = Annotated[str, Field(min_length=1, max_length=4000)]
Positive = Annotated[FiniteFloat, Field(gt=0)]
NotNegative = Annotated[FiniteFloat, Field(ge=0)]


def _number(text: str) -> str:
    if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", text) or not math.isfinite(float(text)):
        raise ValueError(f"must be a finite decimal number as text, got {text!r}")
    return text


def _day(text: str) -> str:
    date.fromisoformat(text)
    return text


NumberText = Annotated[str, Field(max_length=40), AfterValidator(_number)]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$"), AfterValidator(_day)]


class Access(Record):
    """What the author had seen when this was written. level: none of the outcomes, pilots, or some outcomes."""

    level: Literal["none", "pilot", "outcomes"]
    seen: tuple[Text, ...] = ()


class MetricClaim(Record):
    """The one score that counts, and how it comes about.

    checkpoint: which state of a run is scored. evaluation_code_hash: of the code that scores it, null if not stated.
    """

    name: Annotated[str, Field(min_length=1)]
    higher_is_better: bool
    chance: FiniteFloat | None = None
    lower: FiniteFloat | None = None
    upper: FiniteFloat | None = None
    items_hash: Sha256 | None = None
    checkpoint: Annotated[str, Field(min_length=1, max_length=100)] = "last"
    checkpoint_rule: Text = "the last state of the run, after all its planned samples"
    preprocessing: Text = "as in the evaluation code"
    evaluation_code_hash: Sha256 | None = None


class ParameterClaim(Record):
    """One parameter of the law. status: free, fixed, at a bound, not identified."""

    name: str
    value: FiniteFloat
    standard_error: NotNegative | None = None
    lower: FiniteFloat | None = None
    upper: FiniteFloat | None = None
    status: str | None = None


class FitClaim(Record):
    """The law and exactly the data that it was fitted to.

    settings: what `fit` was called with, enough to repeat it.
    data_hash: of the sorted (run_id, design_hash, seed, value) rows; rows: how many.
    file_hash: sha256 of the fit's own file.
    """

    law: Text
    settings: Settings
    data_hash: Sha256
    rows: Annotated[int, Field(gt=0)]
    run_ids: tuple[str, ...]
    design_hashes: tuple[Sha256, ...]
    exclusions: tuple[Text, ...] = ()
    parameters: tuple[ParameterClaim, ...]
    covariance: tuple[tuple[FiniteFloat, ...], ...] | None = None
    file_hash: Sha256
    code_hash: Sha256 | None = None
    lock_hash: Sha256 | None = None


class NoiseClaim(Record):
    """Seed noise: within-design SD of the metric, in its unit. sigma is null where no design was repeated.

    model: "constant", or how the SD depends on a design's mean; then sigma is that at the centre of the fit's data,
    and each target's own is its `noise_sd`.
    """

    definition: Text = "SD between seeds of one design, pooled over designs (ddof 1), on one fixed test set"
    sigma: Positive | None
    degrees_of_freedom: Annotated[int, Field(ge=0)]
    source_runs: tuple[str, ...] = ()
    model: Text = "constant"


class TargetClaim(Record):
    """The forecast of one design.

    point, quantiles, curve_sd, noise_sd: metric units. quantiles: levels and values as text.
    quantity: what the quantiles are of. curve_sd: how much of the width is the law's own error; noise_sd:
    how much is seed noise. curve_factor, curve_own_sd: this target's row of F and own SD, where
    F F' + diag(own^2) is the covariance of the law's error between targets.
    """

    target: TargetId
    design: Design
    design_hash: Sha256
    replicates: Annotated[int, Field(gt=0, le=10_000)]
    quantity: Annotated[str, Field(pattern=r"^(one new run|mean of [1-9][0-9]{0,3})$")] = "one new run"
    point: FiniteFloat
    quantiles: Annotated[Mapping[str, NumberText], *Frozen]
    curve_sd: NotNegative
    noise_sd: NotNegative
    curve_factor: tuple[FiniteFloat, ...] = ()
    curve_own_sd: NotNegative = 0.0
    extrapolation_factor: Annotated[FiniteFloat, Field(ge=1)] = 1.0

    @model_validator(mode="after")
    def _says_one_thing(self) -> TargetClaim:
        if self.design.hash != self.design_hash:
            raise ValueError(f"design_hash of {self.target} is not that of its design ({self.design.hash})")
        seeds = [name for name in self.design.settings if _is_run_seed(name)]
        if seeds or "seed" in self.target.split("-"):
            raise ValueError(f"{self.target}: no seed belongs in a target's id or design; seeds are derived")
        if tuple(self.quantiles) != LEVELS:
            raise ValueError(f"{self.target}: quantile levels must be {', '.join(LEVELS)} in this order")
        values = [float(value) for value in self.quantiles.values()]
        if values != sorted(values):
            raise ValueError(f"{self.target}: quantiles must not decrease with their level")
        return self

    @property
    def runs_in_quantity(self) -> int:
        """Over how many runs one outcome of the quantiles is averaged."""
        return 1 if self.quantity == "one new run" else int(self.quantity.split()[-1])

    def quantile(self, level: str) -> float:
        """The registered quantile at `level`, e.g. "0.975"."""
        return float(self.quantiles[level])


def _is_run_seed(setting: str) -> bool:
    """Whether a setting is a seed of the run; the draw of test items (evaluation.seed) belongs to the design."""
    *parts, last = setting.split(".")
    return last == "seed" and parts[:1] != ["evaluation"]


class ExclusionRule(Record):
    """A reason, declared before, for which a run may be left out."""

    id: TargetId
    rule: Text


class PrimaryRule(Record):
    """The one test that decides. delta: margin in units of seed noise; 1 is worth one rerun.

    replicates: over the targets that are run at least twice. single runs: over all runs, against the registered sigma.
    """

    test: Literal["replicates", "single runs"]
    delta: Positive = 1.0
    alpha: Annotated[FiniteFloat, Field(gt=0, lt=0.5)] = 0.05


class Rules(Record):
    """What happens in each case, decided before. deadline: the day, UTC, by which it is resolved.

    looks: how often the primary test is made, each time at alpha / looks; where it is 1, only when all runs are in.
    """

    exclusions: tuple[ExclusionRule, ...] = ()
    requeue: Text = "a job that is preempted or requeued goes on or starts again with the same seed"
    divergence: Text = "a diverged run counts as a registered outcome without a number: INCOMPLETE"
    missing_runs: Text = "a missing run is not replaced: INCOMPLETE"
    looks: Annotated[int, Field(ge=1)] = 1
    deadline: Day
    primary: PrimaryRule
    secondary: tuple[Text, ...] = ("coverage", "weighted interval score", "crps", "skill against baselines")
    multiplicity: Text = "one primary test; secondary scores carry no verdict"
    exploratory: tuple[Text, ...] = ()


class LaunchClaim(Record):
    """With which code the runs are made and how their jobs are called.

    code_hash: of the three packages, pyproject.toml and constraints.txt alone.
    """

    code_hash: Sha256 | None = None
    job_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9{}_.-]+$")] = "pc-{digest16}-{target}-{replicate}"

    @model_validator(mode="after")
    def _names_the_digest(self) -> LaunchClaim:
        if "{digest16}" not in self.job_name:
            raise ValueError("job_name must contain {digest16}, so that a job names the registration it is for")
        return self

    def name(self, digest: str, target: str, replicate: int) -> str:
        """The job's name for one replicate."""
        parts = {"{digest16}": digest[:16], "{target}": target, "{replicate}": str(replicate)}
        return re.sub(r"\{digest16\}|\{target\}|\{replicate\}", lambda match: parts[match[0]], self.job_name)


class PowerPoint(Record):
    """Chance that the primary test says AS GOOD when the law's RMS error is curve_error x seed noise."""

    curve_error: NotNegative
    probability: Annotated[FiniteFloat, Field(ge=0, le=1)]


class Registration(Record):
    """A forecast, its reasons and its rules, before the runs exist."""

    format: Literal["platocast-registration-1"] = "platocast-registration-1"
    claim: Text
    refuted_by: Text
    access: Access
    metric: MetricClaim
    fit: FitClaim
    noise: NoiseClaim
    seed_rule: Annotated[str, Field(pattern=re.escape(SEED_RULE))] = SEED_RULE
    targets: Annotated[tuple[TargetClaim, ...], Field(min_length=1)]
    baselines: Annotated[Mapping[str, Mapping[TargetId, FiniteFloat]], *Frozen]
    rules: Rules
    launch: LaunchClaim
    power: tuple[PowerPoint, ...] = ()

    @model_validator(mode="after")
    def _targets_fit_together(self) -> Registration:
        ids = [claim.target for claim in self.targets]
        if len(set(ids)) != len(ids):
            raise ValueError(f"a target id stands twice: {sorted({i for i in ids if ids.count(i) > 1})}")
        hashes = [claim.design_hash for claim in self.targets]
        if len(set(hashes)) != len(hashes):
            raise ValueError("two targets have one design; raise the replicates of one instead")
        for name, points in self.baselines.items():
            if set(points) != set(ids):
                raise ValueError(f"baseline {name} must predict exactly the registered targets")
        if len({len(claim.curve_factor) for claim in self.targets}) != 1:
            raise ValueError("curve_factor must have one length on all targets")
        if self.rules.primary.test == "replicates" and sum(claim.replicates >= 2 for claim in self.targets) < 2:
            raise ValueError("the primary test 'replicates' needs at least 2 targets with at least 2 replicates")
        return self

    def noise_sds(self) -> Mapping[str, float]:
        """Seed noise (SD of one run) per target: the registered sigma, or the target's own where it is not constant."""
        sigma, constant = self.noise.sigma, self.noise.model == "constant"
        return {c.target: sigma if constant and sigma is not None else c.noise_sd for c in self.targets}

    @property
    def runs(self) -> int:
        """How many runs are registered."""
        return sum(claim.replicates for claim in self.targets)


@dataclass(frozen=True)
class SignedRegistration:
    """A registration whose signature matches its bytes; digest: sha256 of them."""

    digest: str
    statement: Registration
    signed: SignedEntry


def read_registration(signed: SignedEntry) -> SignedRegistration:
    """The registration in the entry `signed`; CheckFailed if it holds none."""
    if signed.kind != "register":
        raise CheckFailed(f"{signed.path.name} is a {signed.kind} entry, not a registration")
    try:
        statement = Registration.model_validate(signed.body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise CheckFailed(f"{signed.path.name} is no valid registration: {where}: {first['msg']}") from error
    return SignedRegistration(signed.digest, statement, signed)


def find_registration(reference: Path | str, *, log: Path | str | None = None) -> SignedRegistration:
    """The registration in a file LOG/NNNN-register.json, or in `log` by number or digest, signature verified."""
    return read_registration(find_entry(reference, log=log))
