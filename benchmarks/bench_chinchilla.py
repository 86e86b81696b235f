"""The Chinchilla table: one optimum out of 4,500 starts, and thousands of refits.

The published notebook (github.com/epoch-research/analyzing-chinchilla) runs SciPy's L-BFGS with finite differences
from each start, and SciPy's BFGS with autograd's gradients for each refit. Both are run here, on a few starts and
refits, and scaled up: their cost is proportional to the number. A start's cost varies, so those are drawn at random.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from measuring import Measure, interleaved, timed
from peers import use_peers
from scipy.optimize import minimize
from scipy.special import huber

from forecast.bootstrap import bootstrap, refitted
from forecast.engine import Loss, Minima, minimise, project_linear, starts
from forecast.laws.law import Law, Scale
from forecast.laws.registry import build_law

Array = npt.NDArray[np.float64]
HUBER = Loss("huber", 1e-3)
POLISHED = 6


@dataclass(frozen=True)
class Table:
    """The 240 rows as a problem: law, columns, log loss, the published starts, and unit weights."""

    law: Law
    columns: dict[str, Array]
    y: Array
    loss: Array
    plain: Array
    grid: Array
    ones: Array

    def optimum(self, begin: Array) -> Minima:
        """The best of these starts, all screened, a few polished."""
        total = HUBER.total(self.y - self.law.value(self.columns, begin), self.ones[None])
        kept = begin[np.argsort(total)[:POLISHED]]
        return minimise(self.law, self.columns, self.y, self.ones, kept, loss=HUBER, iterations=400)

    def objective(self, t: Array, weights: Array) -> float:
        """The notebook's objective in its own coordinates a, b, e, alpha, beta."""
        a, b, e, alpha, beta = t
        n, d = np.log(self.columns["N"]), np.log(self.columns["D"])
        parts = np.stack([a - alpha * n, b - beta * d, np.full(len(self.y), e)])
        return float(np.sum(weights * huber(HUBER.delta, self.y - np.logaddexp.reduce(parts))))


def read(tables: Path) -> Table:
    """The rows that the published fit kept."""
    frame = pd.read_csv(tables / "epoch_chinchilla" / "runs.csv")
    frame = frame[frame.kept_by_epoch == 1]
    columns = {name: frame[name].to_numpy(float) for name in ("N", "D")}
    ranges = {k: (float(v.min()), float(v.max())) for k, v in columns.items()}
    law = build_law("chinchilla", Scale(frame.loss.min(), frame.loss.max(), higher_is_better=False, ranges=ranges))
    law = replace(law, link="log")
    steps, shares = np.arange(0.0, 30.0, 5.0), np.arange(0.0, 2.5, 0.5)
    plain = np.array(list(itertools.product(steps, steps, np.arange(-1, 1.5, 0.5), shares, shares)))
    grid = plain.copy()
    grid[:, 3:] = np.log(np.maximum(grid[:, 3:], 1e-3))
    loss = frame.loss.to_numpy(float)
    return Table(law, columns, np.log(loss), loss, plain, np.clip(grid, law.lower, law.upper), np.ones(len(loss)))


def chinchilla_starts(tables: Path, small: bool) -> Measure:
    """The global optimum out of 4,500 starts, against L-BFGS with finite differences from each."""
    table = read(tables)
    rng = np.random.default_rng(0)
    peers, seeds, repeats = (2, 2, 1) if small else (10, 20, 3)
    sample = table.plain[rng.choice(len(table.plain), peers, replace=False)]
    mine, its = interleaved(
        repeats,
        lambda: table.optimum(table.grid),
        lambda: [minimize(table.objective, s, args=(table.ones,), method="L-BFGS-B") for s in sample],
    )
    drawn = [table.optimum(starts(table.law, 256, np.random.default_rng(seed))) for seed in range(seeds)]
    optima = np.array([HUBER.reported(float(found.loss.min())) for found in drawn])
    grid = HUBER.reported(float(table.optimum(table.grid).loss.min()))
    found = {"objective": grid, "seeds": seeds, "largest_relative_gap": float(np.max(np.abs(optima / grid - 1)))}
    return Measure(mine, its / peers * len(table.plain), "SciPy L-BFGS-B, finite differences", repeats, found)


def chinchilla_bootstrap(tables: Path, small: bool) -> Measure:
    """Robust refits from one warm start, against BFGS with autograd's gradients from the same."""
    return _refits(tables, small, 1)


def chinchilla_bootstrap_several(tables: Path, small: bool) -> Measure:
    """Robust refits from three warm starts, against BFGS with autograd from one."""
    return _refits(tables, small, 3)


def _refits(tables: Path, small: bool, warm: int) -> Measure:
    table = read(tables)
    refits, peers, repeats = (40, 2, 1) if small else (4000, 10, 3)
    drawn = np.random.default_rng(0).multinomial(len(table.y), table.ones / len(table.y), size=refits).astype(float)
    optimum = table.optimum(table.grid)
    best = optimum.inner[optimum.best]
    errors = np.array([0.6, 0.6, 0.015, 0.04, 0.06])  # about one published standard error, engine coordinates
    away = np.array([best, best + errors, best - errors])[:warm]
    ended: list[Minima] = []

    def ours() -> None:
        ended[:] = [refitted(table.law, table.columns, table.y, drawn, away, loss=HUBER)]

    outer = best.copy()
    outer[3:] = np.exp(outer[3:])
    slope = _autograd(table)
    some = drawn[:peers]
    results: list[list[Any]] = []
    mine, its, plain = interleaved(
        repeats,
        ours,
        lambda: results.append([slope(outer, w) for w in some]),
        lambda: [minimize(table.objective, outer, args=(w,), method="BFGS") for w in some],
    )
    losses = np.array([r.fun for r in results[0]])
    outers = table.law.outer(ended[0].inner)
    found = {
        "refits": refits,
        "warm_starts": warm,
        "ratio_to_finite_differences": float(f"{plain / peers * refits / mine:.4g}"),
        "largest_excess_over_peer": float(np.max(ended[0].loss[:peers] / 2 / losses - 1)),
        "standard_errors": dict(zip(table.law.names, np.std(outers, axis=0, ddof=1).tolist(), strict=True)),
    }
    return Measure(mine, its / peers * refits, "SciPy BFGS with autograd", repeats, found)


def _autograd(table: Table) -> Any:
    """One refit as the notebook does it."""
    use_peers()
    import autograd.numpy as anp
    from autograd import grad

    n, d, y = np.log(table.columns["N"]), np.log(table.columns["D"]), table.y
    delta = HUBER.delta

    def objective(t: Any, weights: Array) -> Any:
        a, b, e, alpha, beta = t[0], t[1], t[2], t[3], t[4]
        parts = anp.stack([a - alpha * n, b - beta * d, e + 0 * n])
        top = anp.max(parts, axis=0)
        r = y - (top + anp.log(anp.sum(anp.exp(parts - top), axis=0)))
        size = anp.abs(r)
        return anp.sum(weights * anp.where(size <= delta, 0.5 * r**2, delta * (size - 0.5 * delta)))

    slope = grad(objective)
    return lambda begin, w: minimize(objective, begin, args=(w,), jac=slope, method="BFGS")


def peer_draws(tables: Path, small: bool) -> Measure:
    """A squared-error fit with 1,000 bootstrap draws, against simple-scaling-laws' of the same law and rows."""
    use_peers()
    import polars as pl
    from simple_scaling_laws import fit as peer_fit

    table, draws, repeats = read(tables), 40 if small else 1000, 1 if small else 3
    law = replace(table.law, link="identity")
    frame = pl.DataFrame(
        {
            "training_run_id": [str(i) for i in range(len(table.loss))],
            "model_size__N": table.columns["N"],
            "dataset_size__D": table.columns["D"],
            "test_loss__ce": table.loss,
        }
    )

    def ours() -> None:
        rng = np.random.default_rng(0)
        begin = project_linear(law, table.columns, table.loss, table.ones[None], starts(law, 64, rng))
        found = minimise(law, table.columns, table.loss, table.ones, begin, loss=Loss())
        best = found.inner[found.best]
        bootstrap(
            law, table.columns, table.loss, table.ones, best, kind="wild", draws=draws, loss=Loss(), rng=rng
        )  # fmt: skip

    mine, its = interleaved(repeats, ours, lambda: peer_fit(frame, law="separable-power", n_draws=draws, seed=0))
    return Measure(mine, its, "simple-scaling-laws 0.2.0, separable-power", repeats, {"draws": draws})


__all__ = ["chinchilla_bootstrap", "chinchilla_bootstrap_several", "chinchilla_starts", "peer_draws", "timed"]
