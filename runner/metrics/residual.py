"""What one rotation leaves over: how much, and in how many directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forecast.errors import ForecastError

__all__ = ["Residual", "compact", "disparity", "disparity_error", "residual"]

Array = np.ndarray[Any, Any]
EXACT = 1e-10


@dataclass(frozen=True)
class Residual:
    """The residual of the best rotation and scale of one side onto the other, both centred and of unit norm.

    disparity: its squared norm, 0 (equal up to rotation and scale) to 1 (orthogonal).
    rank: directions that stand out from the same numbers without their order (parallel analysis).
    effective_rank: exp of the entropy of its normalised singular values: over how many directions it is spread.
    """

    disparity: float
    rank: int
    effective_rank: float
    dimensions: int


def residual(one: Array, other: Array, *, draws: int = 20, rng: np.random.Generator) -> Residual:
    """The residual of `other` after the best rotation and scale of `one`, paired by row.

    Sources: Gower (1975), doi 10.1007/BF02291478, for the disparity; Horn (1965), doi 10.1007/BF02289447, for the
    rank, each squared singular value against `draws` shuffles of every column apart (level 1 / (draws + 1)), in
    a random basis so that no direction hides in one column; Roy & Vetterli (2007), EUSIPCO, for the effective rank.
    """
    x, y = _shape(one), _shape(other)
    if len(x) != len(y):
        raise ForecastError(f"a residual needs the same rows on both sides, got {len(x)} and {len(y)}")
    left, singular, right = np.linalg.svd(x.T @ y, full_matrices=False)
    left_over = y - singular.sum() * (x @ left @ right)
    size = float(np.square(left_over).sum())
    if size < EXACT:
        return Residual(0.0, 0, 0.0, y.shape[1])
    values = np.linalg.svd(left_over, compute_uv=False)
    share = values[values > 0] / values.sum()
    return Residual(
        disparity=size,
        rank=_standing_out(left_over, np.square(values), draws, rng),
        effective_rank=float(np.exp(-(share * np.log(share)).sum())),
        dimensions=y.shape[1],
    )


def disparity(one: Array, other: Array, pairings: Sequence[Array] = ()) -> tuple[float, Array]:
    """1 - (sum of singular values of X'Y)^2, X, Y centred and of unit norm; as paired and under each pairing."""
    x, y = _shape(one), _shape(other)
    null = [1 - float(np.linalg.svd(x.T @ y[p], compute_uv=False).sum()) ** 2 for p in pairings]
    return 1 - float(np.linalg.svd(x.T @ y, compute_uv=False).sum()) ** 2, np.array(null)


def disparity_error(one: Array, other: Array, *, groups: int = 10) -> float:
    """Standard error of the disparity by leaving out one of `groups` groups of items at a time."""
    part = np.arange(len(one)) % groups
    values = np.array([disparity(one[part != g], other[part != g])[0] for g in range(groups)])
    return float(np.sqrt((groups - 1) * values.var()))


def compact(features: Array) -> Array:
    """The same items in at most as many dimensions as there are items, all inner products kept."""
    if features.shape[1] <= features.shape[0]:
        return features
    triangle: Any = np.linalg.qr(features.T, mode="r")
    coordinates: Array = triangle.T
    return coordinates


def _shape(features: Array) -> Array:
    x = np.asarray(features, np.float64)
    x = x - x.mean(axis=0)
    norm = float(np.linalg.norm(x))
    if not norm > 0:
        raise ForecastError("all items have the same features: no rotation is defined")
    scaled: Array = compact(x) / norm
    return scaled


def _standing_out(left_over: Array, squares: Array, draws: int, rng: np.random.Generator) -> int:
    dimensions = left_over.shape[1]
    if dimensions < 2:
        return int(dimensions)
    null = np.empty((draws, len(squares)))
    for draw in null:
        basis, _ = np.linalg.qr(rng.standard_normal((dimensions, dimensions)))
        shuffled = rng.permuted(left_over @ basis, axis=0)
        draw[:] = np.square(np.linalg.svd(shuffled, compute_uv=False))
    above: list[bool] = (squares > null.max(axis=0)).tolist()
    return above.index(False) if False in above else len(above)
