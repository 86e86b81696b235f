"""Which runs next: designs that narrow the forecasts most for their cost, and the seeds that a check needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pydantic import FiniteFloat

from forecast.errors import ForecastError
from forecast.fitted import Fit
from forecast.laws.law import Columns
from forecast.noise_test import replicate_power
from forecast.records import Record, Run

__all__ = ["Cost", "PlannedDesign", "cost_of", "plan", "seeds_for_check"]

Array = npt.NDArray[np.float64]

UNITS = {"gpuh": ("gpu_s", 3600.0), "cpuh": ("cpu_s", 3600.0), "h": ("wall_s", 3600.0), "flops": ("flops", 1.0)}
SEEDS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)


class PlannedDesign(Record):
    """One design to run: its columns, how many seeds, its cost, and the mean SD of the forecasts once it is in."""

    columns: dict[str, FiniteFloat]
    runs: int
    cost: FiniteFloat
    curve_sd_after: FiniteFloat


@dataclass(frozen=True)
class Cost:
    """Cost of one run in `unit` as a power of n, fitted to the ledger: exp(intercept) n^slope."""

    unit: str
    intercept: float
    slope: float

    def of(self, n: Array) -> Array:
        """Cost of one run of n samples."""
        return np.asarray(np.exp(self.intercept + self.slope * np.log(n)))


def cost_of(runs: Sequence[Run], unit: str) -> Cost:
    """The cost law of a ledger's own counters. unit: gpuh, cpuh, h, flops, or runs (each costs 1)."""
    if unit == "runs":
        return Cost("runs", 0.0, 0.0)
    if unit not in UNITS:
        raise ForecastError(f"there is no budget unit {unit!r}; the units are {', '.join(UNITS)} and runs")
    counter, divisor = UNITS[unit]
    pairs = []
    for run in runs:
        size = run.design.settings.get("n_samples")
        value = None if run.counters is None else getattr(run.counters, counter)
        if isinstance(size, (int, float)) and value:
            pairs.append((np.log(size), np.log(value / divisor)))
    if len({x for x, _ in pairs}) < 2:
        raise ForecastError(
            f"costs in {unit} need runs of at least 2 sizes with the counter {counter}; use --budget Nruns"
        )
    slope, intercept = np.polyfit([x for x, _ in pairs], [y for _, y in pairs], 1)
    return Cost(unit, float(intercept), float(slope))


def plan(fit: Fit, candidates: Columns, targets: Columns, *, budget: float, cost: Cost) -> list[PlannedDesign]:
    """Designs to run, by greedy I-optimality: each step takes the run that lowers the mean forecast variance at the
    targets most per cost, averaged over the fit's laws by weight, until the budget is spent.

    A design that no earlier run replicates is taken twice where the budget allows, for pure error. A law that fails
    its lack-of-fit test has more noise per design (sigma^2 + runs tau^2), so its runs spread over more designs.
    Raises ForecastError where not even the cheapest candidate can be paid.
    """
    prices = cost.of(candidates["n"]) if "n" in candidates else np.ones(len(next(iter(candidates.values()))))
    if not np.any(prices <= budget):
        raise ForecastError(
            f"the cheapest candidate costs {prices.min():.3g} {cost.unit}, the budget is {budget:g}; raise it"
        )
    states = [_state(fit, k, candidates, targets) for k in range(len(fit.components))]
    taken: dict[int, int] = {}
    left, after = budget, {}
    while True:
        gains = _gains(states, prices) * (prices <= left)
        best = int(np.argmax(gains))
        if gains[best] <= 0:
            break
        count = 2 if best not in taken and 2 * prices[best] <= left else 1
        taken[best] = taken.get(best, 0) + count
        left -= count * float(prices[best])
        for state in states:
            state.take(best, count)
        after[best] = _mean_sd(states)
        if sum(taken.values()) >= 500:
            break
    order = sorted(taken, key=lambda i: -after[i])
    return [
        PlannedDesign(
            columns={k: float(v[i]) for k, v in candidates.items()},
            runs=taken[i],
            cost=float(taken[i] * prices[i]),
            curve_sd_after=after[i],
        )
        for i in order
    ]


def seeds_for_check(curve_sd: Array, sigma: float, *, rng: np.random.Generator, power: float = 0.8) -> int | None:
    """Seeds per target for this chance that the check finds a true forecast as good as seed noise.

    curve_sd: the curve's SD at each target; the law's errors are taken as that large. None where 32 will not do.
    """
    if len(curve_sd) < 2 or not sigma > 0:
        raise ForecastError(f"power needs at least 2 targets and seed noise > 0, got {len(curve_sd)} and {sigma:g}")
    error = float(np.sqrt(np.mean(np.square(curve_sd)))) / sigma
    for count in SEEDS:
        if replicate_power([count] * len(curve_sd), curve_error=error, rng=rng, draws=400) >= power:
            return count
    return None


class _State:
    """One law's covariance as runs are added: rank-one updates."""

    def __init__(self, covariance: Array, at: Array, goal: Array, variance: float, tau: float, weight: float) -> None:
        self.covariance, self.at, self.goal = covariance, at, goal
        self.variance, self.tau, self.weight = variance, tau, weight

    def mean_variance(self) -> float:
        """Mean variance of the curve at the targets."""
        return float(np.mean(np.einsum("ti,ij,tj->t", self.goal, self.covariance, self.goal)))

    def drop(self) -> Array:
        """By how much one run of each candidate lowers the mean variance at the targets."""
        toward = self.at @ self.covariance
        own = np.einsum("ci,ci->c", toward, self.at)
        return np.asarray(np.mean((toward @ self.goal.T) ** 2, axis=1) / (self.variance + self.tau**2 + own))

    def take(self, index: int, count: int) -> None:
        """Add `count` runs of one candidate."""
        row = self.covariance @ self.at[index]
        noise = self.variance / count + self.tau**2
        self.covariance = self.covariance - np.outer(row, row) / (noise + float(self.at[index] @ row))


def _state(fit: Fit, k: int, candidates: Columns, targets: Columns) -> _State:
    component = fit.components[k]
    law, inner = component.rebuilt(), component.inner
    at, goal = (np.nan_to_num(law.value_and_jacobian(c, inner)[1][0]) for c in (candidates, targets))
    pure = fit.noise.sigma if fit.noise.sigma else component.sigma
    return _State(np.array(component.covariance), at, goal, pure**2, component.tau, component.weight)


def _gains(states: Sequence[_State], prices: Array) -> Array:
    return np.asarray(np.sum([s.weight * s.drop() for s in states], axis=0) / prices)


def _mean_sd(states: Sequence[_State]) -> float:
    return float(np.sqrt(sum(s.weight * s.mean_variance() for s in states)))
