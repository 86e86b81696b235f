"""Coverage by simulation: how often an interval holds the truth, for the design at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from forecast.engine import Loss, minimise, project_linear, starts
from forecast.errors import ForecastError
from forecast.fitted import Coverage, Fit
from forecast.intervals import METHODS, Spread, confidence, spread
from forecast.laws.law import Columns, Law
from forecast.profile import profile_predictions

__all__ = ["World", "calibrated", "measure_coverage", "simulated_runs"]

Array = npt.NDArray[np.float64]

STARTS = 16


@dataclass(frozen=True)
class World:
    """A simulated study: a law that is fitted, the true curve at its designs and targets, and the noise.

    truth, target_truth: (designs,), (targets,). tau: SD of a deviation drawn anew per design and world (lack of fit).
    labels: what to call each target. low, high: ends of the metric.
    """

    name: str
    law: Law
    columns: Columns
    counts: Array
    truth: Array
    targets: Columns
    target_truth: Array
    labels: Sequence[str]
    sigma: float
    tau: float = 0.0
    low: float = -np.inf
    high: float = np.inf
    remarks: Mapping[str, str] = field(default_factory=dict)


def measure_coverage(
    world: World,
    *,
    worlds: int,
    rng: np.random.Generator,
    methods: Sequence[str] = ("profile", "delta"),
    levels: Sequence[float] = (0.9, 0.95),
    draws: int = 200,
    runs: Array | None = None,
) -> list[Coverage]:
    """The share of simulated studies whose interval for the curve holds the truth, per method, target and level.

    runs: the studies' outcomes (worlds, designs, replicates), as `simulated_runs` draws them; default fresh ones.
    """
    means, pure, pure_df = _simulate(world, worlds, rng) if runs is None else _pooled(runs)
    counts = np.broadcast_to(world.counts, means.shape)
    inner = _fitted(world, means, rng)
    sure = spread(world.law, world.columns, means, counts, inner, loss=Loss(), pure=pure, pure_df=pure_df)
    out = []
    for method in methods:
        for level in levels:
            ends = np.array([0.5 - level / 2, 0.5 + level / 2])
            low, high = _ends(world, method, means, inner, sure, ends, draws, rng)
            low, high = np.clip(low, world.low, world.high), np.clip(high, world.low, world.high)
            inside = (low <= world.target_truth) & (world.target_truth <= high)
            for i, label in enumerate(world.labels):
                out.append(
                    Coverage(
                        world=world.name,
                        method=method,
                        target=label,
                        nominal=level,
                        coverage=float(inside[:, i].mean()),
                        width=float(np.median(high[:, i] - low[:, i])),
                        worlds=len(means),
                    )
                )
    return out


def calibrated(fit: Fit, *, rng: np.random.Generator, worlds: int = 400) -> Fit:
    """The fit with its intervals' coverage, simulated for its own designs as if its chosen law were the truth.

    Targets are 4 and 10 times beyond the data in the first positive column, at the ends of g. The choice between laws
    is not simulated: where the truth is none of them, coverage is lower.
    """
    component = fit.chosen
    law, inner = component.rebuilt(), component.inner
    columns, _, counts = fit.table()
    order = "n" if "n" in columns else next((k for k, v in columns.items() if v.min() > 0), None)
    if order is None:
        raise ForecastError("calibration needs a positive column to extrapolate in")
    ends = sorted({float(columns["g"].min()), float(columns["g"].max())}) if "g" in columns else [None]
    asked = [(factor, g) for factor in (4.0, 10.0) for g in ends]
    targets = {k: np.full(len(asked), float(v.max())) for k, v in columns.items()}
    targets[order] = np.array([columns[order].max() * factor for factor, _ in asked])
    if "g" in columns:
        targets["g"] = np.array([g for _, g in asked], dtype=np.float64)
    world = World(
        name=law.name,
        law=law,
        columns=columns,
        counts=counts,
        truth=law.value(columns, inner)[0],
        targets=targets,
        target_truth=law.value(targets, inner)[0],
        labels=[f"{factor:g}x" + ("" if g is None else f", g={g:g}") for factor, g in asked],
        sigma=fit.noise.sigma if fit.noise.sigma else component.sigma,
        tau=component.tau,
    )
    rows = measure_coverage(world, worlds=worlds, rng=rng, methods=(fit.interval_method,))
    return fit.model_copy(update={"calibration": tuple(rows)})


def simulated_runs(world: World, worlds: int, rng: np.random.Generator) -> Array:
    """Outcomes (worlds, designs, replicates) of studies in which every design has as many runs as the first."""
    shape = (worlds, len(world.truth), int(world.counts[0]))
    means = world.truth + world.tau * rng.standard_normal(shape[:2])
    return np.asarray(means[..., None] + world.sigma * rng.standard_normal(shape))


def _pooled(runs: Array) -> tuple[Array, Array | None, int]:
    """Design means (worlds, designs), seed noise per world, and its degrees of freedom."""
    means, df = runs.mean(axis=2), runs.shape[1] * (runs.shape[2] - 1)
    within = np.sum((runs - means[..., None]) ** 2, axis=(1, 2))
    return means, np.sqrt(within / df) if df > 0 else None, df


def _simulate(world: World, worlds: int, rng: np.random.Generator) -> tuple[Array, Array | None, int]:
    """Design means (worlds, designs), seed noise per world, and its degrees of freedom."""
    shape = (worlds, len(world.truth))
    means = world.truth + world.sigma / np.sqrt(world.counts) * rng.standard_normal(shape)
    means = means + world.tau * rng.standard_normal(shape)
    df = int(np.sum(world.counts - 1))
    pure = world.sigma * np.sqrt(rng.chisquare(df, size=worlds) / df) if df > 0 else None
    return means, pure, df


def _fitted(world: World, means: Array, rng: np.random.Generator) -> Array:
    """The best fit of each world (worlds, p), out of the same starts for all."""
    law, worlds = world.law, len(means)
    first = np.tile(starts(law, STARTS, rng), (worlds, 1))
    outcome = np.repeat(means, STARTS, axis=0)
    weight = np.broadcast_to(world.counts, outcome.shape)
    first = project_linear(law, world.columns, outcome, weight, first)
    minima = minimise(law, world.columns, outcome, weight, first, loss=Loss(), iterations=60, tolerance=1e-12)
    best = np.argmin(minima.loss.reshape(worlds, STARTS), axis=1) + STARTS * np.arange(worlds)
    return np.asarray(minima.inner[best])


def _ends(
    world: World,
    method: str,
    means: Array,
    inner: Array,
    sure: Spread,
    ends: Array,
    draws: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """The interval's ends (worlds, targets) in every world."""
    assert method in METHODS
    targets, worlds = len(world.target_truth), len(means)
    if method == "profile":
        _, jacobian = world.law.value_and_jacobian(world.targets, inner)
        j = np.where(np.isfinite(jacobian), jacobian, 0.0)
        error = np.sqrt(np.maximum(np.einsum("bti,bij,btj->bt", j, sure.covariance, j), 0.0))
        span = np.ptp(means, axis=1)[:, None]
        guess = np.clip(error, 1e-2 * sure.sigma[:, None], 0.5 * span + sure.sigma[:, None])
        curve = profile_predictions(
            world.law,
            world.columns,
            np.repeat(means, targets, axis=0),
            np.broadcast_to(world.counts, (worlds * targets, means.shape[1])),
            np.repeat(inner, targets, axis=0),
            {k: np.tile(v, worlds) for k, v in world.targets.items()},
            sigma=np.repeat(sure.sigma, targets),
            df=np.repeat(sure.df, targets).astype(np.float64),
            loss=Loss(),
            spread=guess.ravel(),
        )
        both = curve.quantiles(ends).reshape(2, worlds, targets)
        return both[0], both[1]
    parts = [
        confidence(
            world.law,
            world.columns,
            means[i],
            world.counts,
            inner[i],
            world.targets,
            method=method,
            covariance=sure.covariance[i],
            sigma=float(sure.sigma[i]),
            df=int(sure.df[i]),
            loss=Loss(),
            rng=rng,
            draws=draws,
        ).quantiles(ends)
        for i in range(worlds)
    ]
    both = np.stack(parts, axis=1)
    return both[0], both[1]
