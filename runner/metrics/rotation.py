"""Retrieval after one orthogonal map, fitted on other scenes than it is tested on."""

from __future__ import annotations

from typing import Any

import numpy as np

from forecast.errors import ForecastError

__all__ = ["Rotation", "fit_rotation", "retrieval_hits"]

Array = np.ndarray[Any, Any]


class Rotation:
    """x -> (x - mean) @ matrix + target_mean; matrix has orthonormal rows or columns."""

    def __init__(self, matrix: Array, mean: Array, target_mean: Array) -> None:
        self.matrix, self.mean, self.target_mean = matrix, mean, target_mean

    def __call__(self, features: Array) -> Array:
        """features (items, from) -> (items, to)."""
        moved: Array = (features - self.mean) @ self.matrix + self.target_mean
        return moved


def fit_rotation(source: Array, target: Array) -> Rotation:
    """The orthogonal map that brings `source` rows nearest to `target` rows after centring both.

    source: (pairs, from), target: (pairs, to), paired by row.
    Source: Schoenemann (1966), doi 10.1007/BF02289451.
    """
    if len(source) != len(target) or len(source) < 2:
        raise ForecastError(f"a rotation needs the same >= 2 rows on both sides, got {len(source)} and {len(target)}")
    mean, target_mean = source.mean(axis=0), target.mean(axis=0)
    left, _, right = np.linalg.svd((source - mean).T @ (target - target_mean), full_matrices=False)
    return Rotation(left @ right, mean, target_mean)


def retrieval_hits(queries: Array, gallery: Array, *, at: int = 1) -> Array:
    """Per query, 1 if its own gallery row is among the `at` most similar by cosine, else 0: (items,).

    A tie with a wrong row counts against. Chance: at / items.
    """
    if queries.shape != gallery.shape:
        raise ForecastError(f"queries and gallery must be paired row by row, got {queries.shape} and {gallery.shape}")
    similar = _unit(queries) @ _unit(gallery).T
    own = np.diagonal(similar)[:, None]
    rank = (similar >= own).sum(axis=1) - 1
    hits: Array = (rank < at).astype(np.int64)
    return hits


def _unit(x: Array) -> Array:
    scaled: Array = x / np.linalg.norm(x, axis=1, keepdims=True)
    return scaled
