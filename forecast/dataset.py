"""From runs to what a law is fitted on: one outcome per run, one mean per design, named columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from forecast.errors import ForecastError
from forecast.files import canonical_json, sha256_hex
from forecast.independence import refuse_repeated, remarks_on_checkpoints
from forecast.laws.law import Scale
from forecast.laws.links import LINKS, LinkName
from forecast.noise import Noise, seed_noise
from forecast.records import Design, Metric, Run

__all__ = ["ALIASES", "Dataset", "build", "columns_of"]

Array = npt.NDArray[np.float64]
ALIASES: Mapping[str, str] = {"n": "n_samples", "g": "good_view_fraction"}


@dataclass(frozen=True)
class Dataset:
    """Runs with an outcome, sorted by design and run id, and their design means.

    columns: per design, shape (designs,); means, counts, runs: per design; values, owner, weights: per run.
    means and values are on the link's scale; plain: design means in the outcome's own unit.
    weights: 1 on average, or 1 each. counts: what a design mean is worth in runs of noise sigma: its runs' weights
    added up, over the square of the design's `factor` (the SD of its runs over sigma).
    """

    metric: Metric
    mapping: Mapping[str, str]
    columns: Mapping[str, Array]
    means: Array
    counts: Array
    runs: npt.NDArray[np.int64]
    values: Array
    owner: npt.NDArray[np.int64]
    weights: Array
    factor: Array
    run_ids: tuple[str, ...]
    design_hashes: tuple[str, ...]
    data_hash: str
    remarks: tuple[str, ...]
    plain: Array
    link: LinkName = "identity"

    def with_factor(self, factor: Array) -> Dataset:
        """The same data where the SD of a run is `factor` (designs,) times sigma."""
        return replace(self, counts=self.counts * self.factor**2 / factor**2, factor=factor)

    @property
    def even(self) -> Dataset:
        """The same data with a constant SD: on it baselines are fitted, since a law that fails must not lean on the
        designs with the least noise."""
        return self.with_factor(np.ones(len(self.factor)))

    @property
    def noise(self) -> Noise:
        """Seed noise: sigma, pooled over designs, each run's deviation over its weight and its design's factor."""
        return seed_noise(self.values.tolist(), self.owner.tolist(), self.weights / self.factor[self.owner] ** 2)

    @property
    def scale(self) -> Scale:
        """What the laws may know of the data."""
        return Scale(
            low=float(self.plain.min()),
            high=float(self.plain.max()),
            chance=self.metric.chance,
            metric_lower=self.metric.lower,
            metric_upper=self.metric.upper,
            higher_is_better=self.metric.higher_is_better,
            ranges={name: (float(v.min()), float(v.max())) for name, v in self.columns.items()},
        )


def columns_of(designs: Sequence[Design], mapping: Mapping[str, str]) -> dict[str, Array]:
    """The columns of `mapping` (law's name -> setting's name) for each design.

    Raises ForecastError for a setting that a design lacks or that is no number.
    """
    out: dict[str, Array] = {}
    for name, setting in mapping.items():
        values: list[float] = []
        for design in designs:
            value = design.settings.get(setting)
            if value is None or isinstance(value, (bool, str)):
                has = ", ".join(sorted(design.settings))
                raise ForecastError(
                    f"column {name!r} needs the setting {setting!r} as a number, a design has {value!r}; "
                    f"it has the settings {has}; name another with --column {name}=SETTING"
                )
            values.append(float(value))
        out[name] = np.array(values)
    return out


def build(
    runs: Sequence[Run],
    metric: str,
    mapping: Mapping[str, str],
    link: LinkName = "identity",
    *,
    weights: str | None = None,
) -> Dataset:
    """The dataset of one metric over the finished runs that have every setting of `mapping` as a number.

    weights: a setting with the weight of each run. Raises ForecastError.
    """
    remarks: list[str] = []
    refuse_repeated(runs)
    failed = sum(run.status == "failed" for run in runs)
    if failed:
        remarks.append(f"{failed} failed run(s) carry no outcome and are left out")
    usable: list[Run] = []
    silent = incomplete = 0
    for run in runs:
        if run.status == "failed":
            continue
        if run.evaluation(metric) is None:
            silent += 1
        elif any(run.design.settings.get(s) is None for s in mapping.values()):
            incomplete += 1
        else:
            usable.append(run)
    if silent:
        remarks.append(f"{silent} run(s) without {metric!r} are left out")
    if incomplete:
        wanted = ", ".join(mapping.values())
        remarks.append(f"{incomplete} run(s) without a value for {wanted} are left out (next-token runs have no g)")
    if not usable:
        raise ForecastError(_nothing(runs, metric, mapping))
    keyed = sorted((_without(run.design, weights).hash, run.run_id, run) for run in usable)
    usable = [run for *_, run in keyed]
    remarks += remarks_on_checkpoints(usable, mapping)
    return _assemble(usable, [key for key, *_ in keyed], metric, mapping, remarks, link, weights)


def _assemble(
    usable: list[Run],
    key: list[str],
    metric: str,
    mapping: Mapping[str, str],
    remarks: list[str],
    link: LinkName,
    weights: str | None,
) -> Dataset:
    """The dataset of the usable runs; key: of each run's design, apart from its weight."""
    weight = _weights(usable, weights)
    full = key if weights is None else [run.design.hash for run in usable]
    hashes = list(dict.fromkeys(key))
    index = {digest: i for i, digest in enumerate(hashes)}
    owner = np.array([index[digest] for digest in key])
    evaluations = [run.evaluation(metric) for run in usable]
    plain = np.array([e.value for e in evaluations if e is not None])
    values = _linked(plain, metric, link)
    counts = np.bincount(owner, weights=weight).astype(np.float64)
    means = np.bincount(owner, weights=values * weight) / counts
    designs = dict(zip(key, (run.design for run in usable), strict=True))
    columns = columns_of([designs[digest] for digest in hashes], mapping)
    rows = sorted(
        [run.run_id, digest, run.seed, float(value)] for run, digest, value in zip(usable, full, plain, strict=True)
    )
    return Dataset(
        metric=_one_metric(usable, metric),
        mapping=dict(mapping),
        columns=columns,
        means=means,
        counts=counts,
        runs=np.bincount(owner),
        values=values,
        owner=owner,
        weights=weight,
        factor=np.ones(len(counts)),
        run_ids=tuple(run.run_id for run in usable),
        design_hashes=tuple(dict.fromkeys(full)),
        data_hash=sha256_hex(canonical_json(rows)),
        remarks=(*remarks, *_other_settings([designs[d] for d in hashes], {*mapping.values(), weights})),
        plain=np.bincount(owner, weights=plain * weight) / counts,
        link=link,
    )


def _without(design: Design, setting: str | None) -> Design:
    """A design without its weight, so that runs of one design are one design however they are weighed."""
    if setting is None:
        return design
    return Design(settings={name: value for name, value in design.settings.items() if name != setting})


def _weights(runs: Sequence[Run], setting: str | None) -> Array:
    """The weight of each run, 1 on average: only their ratios mean anything."""
    if setting is None:
        return np.ones(len(runs))
    found = []
    for run in runs:
        value = run.design.settings.get(setting)
        if value is None or isinstance(value, (bool, str)) or not value > 0:
            raise ForecastError(
                f"the weight {setting!r} of run {run.run_id} is {value!r}; a weight is a number > 0: "
                "correct it, leave the run out, or name another setting with --weights"
            )
        found.append(float(value))
    return np.asarray(np.array(found) / np.mean(found))


def _linked(values: Array, metric: str, link: LinkName) -> Array:
    rule = LINKS[link]
    outside = (values <= rule.low) | (values >= rule.high)
    if np.any(outside):
        raise ForecastError(
            f"the link {link} needs {metric} strictly between {rule.low:g} and {rule.high:g}, "
            f"{int(outside.sum())} run(s) are not, the first with {values[outside][0]:g}; use the link identity"
        )
    return np.asarray(rule.forward(values))


def _nothing(runs: Sequence[Run], metric: str, mapping: Mapping[str, str]) -> str:
    if not runs:
        return "there are no runs to fit; give a ledger with at least one finished run"
    names = sorted({e.metric.name for run in runs for e in run.evaluations})
    if metric not in names:
        return f"no run has the metric {metric!r}; the runs have {', '.join(names) or 'none'}"
    settings = sorted({name for run in runs for name in run.design.settings})
    return (
        f"no run with {metric!r} has the setting(s) {', '.join(mapping.values())}; "
        f"the runs have {', '.join(settings)}; name them with --column NAME=SETTING"
    )


def _one_metric(runs: Sequence[Run], name: str) -> Metric:
    found: Counter[str] = Counter()
    first: dict[str, Metric] = {}
    for run in runs:
        evaluation = run.evaluation(name)
        assert evaluation is not None
        key = evaluation.metric.model_dump_json()
        found[key] += 1
        first[key] = evaluation.metric
    if len(found) > 1:
        parts = "; ".join(f"{count} run(s) with {key}" for key, count in found.most_common(3))
        raise ForecastError(f"{name!r} is not one metric: {parts}; fit runs that were scored alike")
    return next(iter(first.values()))


def _other_settings(designs: Sequence[Design], used: Collection[str | None]) -> list[str]:
    seen: dict[str, set[str]] = {}
    for design in designs:
        for name, value in design.settings.items():
            if name not in used:
                seen.setdefault(name, set()).add(repr(value))
    varying = [f"{name} ({len(values)} values)" for name, values in sorted(seen.items()) if len(values) > 1]
    if not varying:
        return []
    return [f"designs differ in settings that the law does not use: {', '.join(varying[:6])}; it averages over them"]
