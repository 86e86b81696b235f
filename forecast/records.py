"""What a run is: frozen, closed, finite records with their units."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, PlainSerializer, model_validator

from forecast.files import canonical_json, sha256_hex

__all__ = [
    "LEVELS",
    "Counters",
    "Design",
    "Evaluation",
    "LossCurve",
    "Metric",
    "Prediction",
    "Provenance",
    "Run",
    "Scalar",
    "Settings",
    "Sha256",
    "Target",
    "TargetId",
]

Scalar = bool | int | FiniteFloat | str | None


def _freeze(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(dict(value))


Frozen = (AfterValidator(_freeze), PlainSerializer(dict))
Settings = Annotated[Mapping[str, Scalar], *Frozen]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
TargetId = Annotated[str, Field(pattern=r"^[a-z0-9-]+$", max_length=80)]


class Record(BaseModel):
    """Base of all records: no field can be changed, added or be NaN or infinite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Design(Record):
    """Everything that defines a run but its seed, test items and reference features included.

    settings: flat names ("good_view_fraction", "n_samples", "encoder.width") to scalars.
    good_view_fraction, where present, lies in [0, 1] or is null (next-token); n_samples is > 0.
    """

    settings: Settings

    @model_validator(mode="after")
    def _known_names_keep_their_rules(self) -> Design:
        if not self.settings:
            raise ValueError("a design needs at least one setting")
        share = self.settings.get("good_view_fraction")
        if share is not None and (isinstance(share, (bool, str)) or not 0 <= share <= 1):
            raise ValueError(f"good_view_fraction must lie in [0, 1] or be null, got {share!r}")
        if "n_samples" in self.settings:
            count = self.settings["n_samples"]
            if count is None or isinstance(count, (bool, str)) or not count > 0:
                raise ValueError(f"n_samples must be a number > 0, got {count!r}")
        return self

    @property
    def hash(self) -> str:
        """Lower-case hex sha256 of the settings' RFC 8785 bytes."""
        return sha256_hex(canonical_json(dict(self.settings)))


class Metric(Record):
    """What a number measures.

    chance: expected value of a code that knows nothing, same unit as the value.
    lower, upper: the values that the metric can take at all; null where unbounded.
    items_hash: sha256 of the test items and reference features, null for imported runs.
    """

    name: Annotated[str, Field(min_length=1)]
    higher_is_better: bool = True
    chance: FiniteFloat | None = None
    lower: FiniteFloat | None = None
    upper: FiniteFloat | None = None
    items_hash: Sha256 | None = None


class Evaluation(Record):
    """One metric's value on one run.

    hits: per test item, how many of `trials` succeeded; value = sum(hits) / (len(hits) * trials).
    checkpoint: which state of the run was scored; null is the last. code_hash: of the code that scored it.
    """

    metric: Metric
    value: FiniteFloat
    hits: tuple[int, ...] | None = None
    trials: Annotated[int, Field(gt=0)] | None = None
    checkpoint: Annotated[str, Field(min_length=1)] | None = None
    code_hash: Sha256 | None = None

    @model_validator(mode="after")
    def _value_within_bounds(self) -> Evaluation:
        for bound, wrong in ((self.metric.lower, "below"), (self.metric.upper, "above")):
            if bound is not None and (self.value < bound if wrong == "below" else self.value > bound):
                raise ValueError(f"{self.metric.name} = {self.value} lies {wrong} its bound {bound}")
        if (self.hits is None) != (self.trials is None):
            raise ValueError("hits and trials go together")
        if self.hits is not None and self.trials is not None:
            if not self.hits or not 0 <= min(self.hits) <= max(self.hits) <= self.trials:
                raise ValueError(f"hits must lie in 0 .. {self.trials} for at least one item")
            share = sum(self.hits) / (len(self.hits) * self.trials)
            if abs(share - self.value) > 1e-6:
                raise ValueError(f"{self.metric.name} = {self.value} is not what its hits give, {share:.9g}")
        return self


class Counters(Record):
    """What a run consumed, each counted on its own. Integers count things; seconds and bytes say so.

    samples: items of the corpus presented (a scene with its views; for next-token one text).
    gpu_s: GPU-seconds allocated, idle ones included; gpu_used_s: GPU-seconds in which they computed, as sampled.
    test_set_uses: how often this run scored the test items, the final evaluation included.
    """

    samples_planned: int | None = None
    samples_seen: int | None = None
    steps: int | None = None
    scenes: int | None = None
    unique_texts: int | None = None
    good_pairs: int | None = None
    bad_pairs: int | None = None
    tokens_unique: int | None = None
    tokens_processed: int | None = None
    tokens_padded: int | None = None
    flops: int | None = None
    wall_s: FiniteFloat | None = None
    cpu_s: FiniteFloat | None = None
    gpu_s: FiniteFloat | None = None
    gpu_used_s: FiniteFloat | None = None
    peak_memory_bytes: int | None = None
    peak_gpu_memory_bytes: int | None = None
    test_set_uses: int | None = None


class Provenance(Record):
    """Where a run comes from. Times are UTC, ISO 8601.

    code_hash: of the three packages, pyproject.toml and constraints.txt as they ran.
    code_diff_hash: of the checkout's difference from code_commit, null where there is none.
    training_hash: of the user's own training as it ran, as far as its files are known; training_launched: as launched.
    data_hash: of the world's manifest.
    seeds: of each random stream (init, order, views, slices), derived from the run's seed.
    text_authors: who wrote the texts; a captioner that saw the images is paired supervision by the back door.
    elsewhere: launched by another scheduler; what it says of itself was not seen by us.
    """

    code_hash: Sha256 | None = None
    code_commit: str | None = None
    code_dirty: bool | None = None
    code_diff_hash: Sha256 | None = None
    training_hash: Sha256 | None = None
    training_launched: Sha256 | None = None
    lock_hash: Sha256 | None = None
    data_hash: Sha256 | None = None
    hardware: str | None = None
    threads: int | None = None
    precision: str | None = None
    world_size: int | None = None
    seeds: Annotated[Mapping[str, int], *Frozen] | None = None
    text_authors: str | None = None
    submitted: str | None = None
    started: str | None = None
    ended: str | None = None
    job_id: str | None = None
    attempt: int | None = None
    source: str | None = None
    elsewhere: bool | None = None


class LossCurve(Record):
    """How the training loss fell: at most 64 steps of it, counted from 1, and the hash of the whole curve's file."""

    steps: tuple[int, ...]
    loss: tuple[FiniteFloat, ...]
    sha256: Sha256 | None = None

    @model_validator(mode="after")
    def _one_loss_a_step(self) -> LossCurve:
        if len(self.steps) != len(self.loss):
            raise ValueError(f"{len(self.steps)} steps and {len(self.loss)} losses; give one loss a step")
        return self


class Run(Record):
    """One training of a design with one seed. A failed run carries no number."""

    format: Literal["platocast-run-1"] = "platocast-run-1"
    run_id: Annotated[str, Field(min_length=1, max_length=200)]
    study: str | None = None
    registration: Sha256 | None = None
    target: TargetId | None = None
    replicate: Annotated[int, Field(ge=0)] | None = None
    design: Design
    seed: int | None = None
    status: Literal["finished", "failed"]
    failure: str | None = None
    evaluations: tuple[Evaluation, ...] = ()
    counters: Counters | None = None
    loss_curve: LossCurve | None = None
    provenance: Provenance | None = None

    @model_validator(mode="after")
    def _a_failed_run_has_no_number(self) -> Run:
        if self.status == "failed" and (self.evaluations or not self.failure):
            raise ValueError("a failed run states its failure and has no evaluations")
        if self.status == "finished" and self.failure:
            raise ValueError("a finished run has no failure")
        names = [evaluation.metric.name for evaluation in self.evaluations]
        if len(names) != len(set(names)):
            raise ValueError(f"a metric is evaluated twice: {sorted(names)}")
        return self

    def evaluation(self, metric: str) -> Evaluation | None:
        """The evaluation named `metric`, or None."""
        return next((e for e in self.evaluations if e.metric.name == metric), None)


LEVELS = ("0.025", "0.05", "0.1", "0.25", "0.5", "0.75", "0.9", "0.95", "0.975")


class Target(Record):
    """A design to be forecast, and how many new runs (seeds) of it are meant."""

    target: TargetId
    design: Design
    replicates: Annotated[int, Field(gt=0)] = 1


class Prediction(Record):
    """What the fit says of one target.

    point, quantiles: metric units; quantiles are of one new run, levels are text ("0.025").
    curve_sd: SD of the law's own error there; noise_sd: SD between seeds; same unit.
    extrapolation_factor: how far the target lies beyond the fit's data, 1 inside
    (the largest ratio by which a positive predictor leaves its range; inf is refused).
    """

    target: TargetId
    design: Design
    replicates: Annotated[int, Field(gt=0)] = 1
    point: FiniteFloat
    quantiles: Annotated[Mapping[str, FiniteFloat], *Frozen]
    curve_sd: Annotated[FiniteFloat, Field(ge=0)]
    noise_sd: Annotated[FiniteFloat, Field(ge=0)]
    extrapolation_factor: Annotated[FiniteFloat, Field(ge=1)] = 1.0
