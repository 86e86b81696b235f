"""Simulated ledgers for the tests of the fitter: truths that are known outside the project's code."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from forecast.records import Design, Evaluation, Metric, Run

CHANCE = 10 / 299
KNN = Metric(name="mutual_knn", chance=CHANCE, lower=0.0, upper=1.0)
SIZES = tuple(8000 * 2**k for k in range(7))
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def hill_truth(n: float, g: float) -> float:
    """Chance to 0.12, half way at 300,000 good pairs, a bad pair worth a tenth of a good one."""
    effective = n * (g + 0.1 * (1 - g))
    return float(CHANCE + (0.12 - CHANCE) / (1 + (300_000 / effective) ** 0.9))


def ceiling_truth(n: float, g: float) -> float:
    """A ceiling from 0.05 to 0.12 in g, reached by one Hill curve in n."""
    top = 0.05 + 0.07 * (1 - (1 - g) ** 1.5)
    return float(CHANCE + (top - CHANCE) / (1 + (60_000 / n) ** 0.9))


def simulated_runs(
    truth: Callable[[float, float], float] = hill_truth,
    *,
    seed: int = 1,
    sizes: Sequence[int] = SIZES,
    shares: Sequence[float] = SHARES,
    noise: float = 0.002,
    replicates: int = 2,
    metric: Metric = KNN,
) -> list[Run]:
    """Runs on the grid, `replicates` of every second design, one of the others."""
    rng = np.random.default_rng(seed)
    runs = []
    for i, n in enumerate(sizes):
        for j, g in enumerate(shares):
            for s in range(replicates if (i + j) % 2 == 0 else 1):
                value = truth(n, g) + float(rng.normal(0, noise))
                runs.append(run(f"r{i}-{j}-{s}", n, g, value, seed=s, metric=metric))
    return runs


def run(name: str, n: float, g: float | None, value: float, *, seed: int = 0, metric: Metric = KNN) -> Run:
    """One finished run."""
    return Run(
        run_id=name,
        design=Design(settings={"n_samples": n, "good_view_fraction": g}),
        seed=seed,
        status="finished",
        evaluations=(Evaluation(metric=metric, value=value),),
    )
