"""Which law: by ordered extrapolation, not by fit inside the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from forecast.baselines import Baseline
from forecast.dataset import Dataset
from forecast.engine import Loss, minimise, project_linear, starts
from forecast.intervals import spread
from forecast.laws.law import Columns, Law
from forecast.scoring import crps_student

__all__ = ["Backtest", "Fold", "backtest_baseline", "backtest_law", "folds_of"]

Array = npt.NDArray[np.float64]
LEFT_OUT = 200  # training designs that are left out in turn to learn a baseline's spread
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Fold:
    """One held-out part: what it is in words, which designs train, which are predicted."""

    name: str
    train: Mask
    test: Mask


@dataclass(frozen=True)
class Backtest:
    """Held-out designs of all folds in one row: errors, CRPS, log density, inside the 95 % interval or not."""

    error: Array
    crps: Array
    log_density: Array
    inside: Mask
    fold: npt.NDArray[np.int64]

    def per_fold(self) -> Array:
        """Mean CRPS of each held-out part, (folds,)."""
        return np.asarray(np.bincount(self.fold, weights=self.crps) / np.bincount(self.fold))


def folds_of(columns: Columns, parameters: int) -> list[Fold]:
    """Train up to an n and predict beyond; leave each g out; leave the large-n, large-g corner out.

    Only folds whose training part has at least 2 more designs than `parameters`, and whose cut in n keeps at least
    half of the range of log n: from less, what is asked of the full data (a few times further) is not what is tested.
    """
    order = "n" if "n" in columns else next((k for k in columns if k != "g"), None)
    folds: list[Fold] = []
    if order is not None:
        levels = np.unique(columns[order])
        half = np.sqrt(levels[0] * levels[-1]) if levels[0] > 0 else (levels[0] + levels[-1]) / 2
        for level in _few(levels[:-1][levels[:-1] >= half], 4):
            train = columns[order] <= level
            folds.append(Fold(f"{order} <= {level:g}", train, ~train))
    if "g" in columns:
        shares = np.unique(columns["g"])
        if len(shares) >= 3:
            folds += [Fold(f"without g = {v:g}", columns["g"] != v, columns["g"] == v) for v in _few(shares, 8)]
        if order is not None and len(shares) >= 3 and len(levels) >= 3:
            corner = (columns[order] >= levels[-2]) & (columns["g"] >= shares[-2])
            folds.append(Fold(f"without {order} >= {levels[-2]:g}, g >= {shares[-2]:g}", ~corner, corner))
    return [f for f in folds if f.train.sum() >= parameters + 2 and f.test.any()]


def _few(levels: Array, most: int) -> Array:
    """At most so many of the levels, evenly over them; the last is left out where some are, it holds out too little."""
    if len(levels) <= most:
        return levels
    return np.asarray(levels[np.linspace(0, len(levels) - 1, most + 1)[:-1].astype(int)])


def backtest_law(
    law: Law,
    data: Dataset,
    folds: Sequence[Fold],
    best: Array,
    *,
    loss: Loss,
    pure: float | None,
    pure_df: int,
    rng: np.random.Generator,
) -> Backtest:
    """The law refitted without each fold's held-out designs, from the full fit and fresh starts, in one batch."""
    fresh = starts(law, 12, rng)
    seeds = np.concatenate([best, fresh])
    each = len(seeds)
    weights = np.repeat(np.array([np.where(f.train, data.counts, 0.0) for f in folds]), each, axis=0)
    inner = np.tile(seeds, (len(folds), 1))
    projected = project_linear(law, data.columns, data.means, weights, inner)
    keep = np.tile(np.arange(each) < len(best), len(folds))
    inner = np.where(keep[:, None], inner, projected)
    minima = minimise(law, data.columns, data.means, weights, inner, loss=loss, iterations=100, tolerance=1e-9)
    chosen = np.argmin(minima.loss.reshape(len(folds), each), axis=1) + each * np.arange(len(folds))
    refit, counts = minima.inner[chosen], weights[chosen]
    value, jacobian = law.value_and_jacobian(data.columns, refit)
    jacobian = np.where(np.isfinite(jacobian), jacobian, 0.0)
    parts = []
    for i in range(len(folds)):
        sure = spread(
            law, data.columns, data.means, counts[i : i + 1], refit[i : i + 1], loss=loss, pure=pure, pure_df=pure_df
        )
        curve = np.einsum("mi,ij,mj->m", jacobian[i], sure.covariance[0], jacobian[i])
        noise = pure if pure is not None else float(sure.sigma[0])
        sd = np.sqrt(curve + sure.tau[0] ** 2 + noise**2 / data.counts)
        parts.append((value[i], np.minimum(sd, 1e3 * data.scale.span), max(int(sure.df[0]), 2)))
    return _score(data, folds, parts)


def backtest_baseline(baseline: Baseline, data: Dataset, folds: Sequence[Fold]) -> Backtest:
    """A baseline's held-out scores; its spread is that of leaving one training design out."""
    parts = []
    for fold in folds:
        train = np.flatnonzero(fold.train)
        columns = {k: v[train] for k, v in data.columns.items()}
        value = baseline(columns, data.means[train], data.counts[train], data.columns)
        errors = []
        for i in range(0, len(train), max(1, len(train) // LEFT_OUT)):
            rest = np.delete(train, i)
            one = {k: v[train[i] : train[i] + 1] for k, v in data.columns.items()}
            less = {k: v[rest] for k, v in data.columns.items()}
            errors.append(data.means[train[i]] - baseline(less, data.means[rest], data.counts[rest], one)[0])
        sd = np.full(len(value), max(float(np.sqrt(np.mean(np.square(errors)))), 1e-12))
        parts.append((value, sd, max(len(train) - 1, 2)))
    return _score(data, folds, parts)


def _score(data: Dataset, folds: Sequence[Fold], parts: Sequence[tuple[Array, Array, int]]) -> Backtest:
    error, crps, density, inside, owner = [], [], [], [], []
    for i, (fold, (value, sd, df)) in enumerate(zip(folds, parts, strict=True)):
        y, mean, scale = data.means[fold.test], value[fold.test], np.maximum(sd[fold.test], 1e-12)
        error.append(y - mean)
        crps.append(crps_student(y, mean, scale, df))
        density.append(stats.t.logpdf((y - mean) / scale, df) - np.log(scale))
        inside.append(np.abs(y - mean) <= stats.t.ppf(0.975, df) * scale)
        owner.append(np.full(len(y), i))
    return Backtest(*(np.concatenate(part) for part in (error, crps, density, inside, owner)))
