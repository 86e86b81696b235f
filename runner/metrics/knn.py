"""Mutual k-nearest-neighbour alignment of two sets of features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from forecast.errors import ForecastError

__all__ = ["chance_level", "equal_rows", "mutual_knn_hits", "nearest_neighbours"]

Array = np.ndarray[Any, Any]
Floats = Literal["float32", "float64"]
CHUNK = 1024
ALL_AT_ONCE = 4096


def chance_level(items: int, k: int) -> float:
    """The mean share of common neighbours over all pairings of `items` items, whatever the features: exact."""
    return k / (items - 1)


def nearest_neighbours(
    features: Array,
    k: int,
    *,
    dtype: Floats = "float32",
    rng: np.random.Generator | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Array:
    """The k rows most similar to each row by cosine, itself left out, unordered: (items, k).

    features: (items, dimensions), finite, no zero row, more than k items. rng: shuffles the rows first, so that
    of equally similar rows not the first are taken (two sets that both took the first would seem to agree).
    Memory: one scaled copy of the features and a few tiles of 1,024 x 1,024, however many items there are.
    """
    features = np.asarray(features)
    if features.ndim != 2 or len(features) <= k:
        raise ForecastError(f"k = {k} neighbours need a matrix of more than {k} rows, got shape {features.shape}")
    if rng is None:
        return _neighbours(_unit(features.astype(dtype)), k, progress)
    order = rng.permutation(len(features))
    shuffled = _neighbours(_unit(features[order].astype(dtype, copy=False)), k, progress)
    found = np.empty_like(shuffled)
    found[order] = order[shuffled]
    return found


def mutual_knn_hits(one: Array, other: Array, *, k: int = 10) -> Array:
    """Per item, how many of its k nearest neighbours in `one` are also so in `other`: (items,), 0 .. k.

    The alignment is the mean of hits / k; two independent codes score k / (items - 1) by chance.
    Either argument may be given as neighbours already found: an integer array (items, k).
    Source: Huh et al. (2024), arXiv 2405.07987.
    """
    first, second = (x if np.issubdtype(x.dtype, np.integer) else nearest_neighbours(x, k) for x in (one, other))
    if first.shape != second.shape:
        raise ForecastError(f"the two sets differ in items: {first.shape[0]} and {second.shape[0]}")
    hits: Array = (first[:, :, None] == second[:, None, :]).any(axis=2).sum(axis=1)
    return hits


def equal_rows(features: Array) -> int:
    """How many rows have an equal row elsewhere: which of these is nearer is then a matter of the tie's rule."""
    counts = Counter(row.tobytes() for row in np.ascontiguousarray(features))
    return sum(count for count in counts.values() if count > 1)


def _unit(features: Array) -> Array:
    """Rows scaled to length one, in place."""
    norms = np.linalg.norm(features, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or not (norms > 0).all():
        raise ForecastError("features must be finite and no row zero: cosine similarity is not defined there")
    features /= norms
    return features


def _neighbours(unit: Array, k: int, progress: Callable[[int, int], None]) -> Array:
    if len(unit) > ALL_AT_ONCE and k < CHUNK // 4:
        return _by_tiles(unit, k, progress)
    found = np.empty((len(unit), k), np.int64)
    for start in range(0, len(unit), CHUNK):
        block = unit[start : start + CHUNK] @ unit.T
        rows = np.arange(len(block))
        block[rows, start + rows] = -np.inf
        found[start : start + CHUNK] = np.argpartition(block, -k, axis=1)[:, -k:]
    return found


def _by_tiles(unit: Array, k: int, progress: Callable[[int, int], None]) -> Array:
    """Each tile of the symmetric similarity matrix is computed once and serves its rows and its columns."""
    nearest = _Nearest(len(unit), k, unit.dtype)
    starts = range(0, len(unit), CHUNK)
    total, done = len(starts) * (len(starts) + 1) // 2, 0
    for i in starts:
        for j in range(i, len(unit), CHUNK):
            tile = unit[i : i + CHUNK] @ unit[j : j + CHUNK].T
            if i == j:
                np.fill_diagonal(tile, -np.inf)
            else:
                nearest.offer(tile.T, j, i)
            nearest.offer(tile, i, j)
            done += 1
            progress(done, total)
    return nearest.indices


class _Nearest:
    """The k best columns seen so far of every row, and the similarity that the next one must exceed."""

    def __init__(self, items: int, k: int, dtype: Any) -> None:
        self.k = k
        self.values = np.full((items, k), -np.inf, dtype)
        self.indices = np.full((items, k), -1, np.int64)
        self.least = np.full(items, -np.inf, dtype)

    def offer(self, tile: Array, row: int, column: int) -> None:
        """Take up the similarities `tile` of rows from `row` on with columns from `column` on."""
        rows = slice(row, row + len(tile))
        if tile.shape[1] > self.k and np.isneginf(self.least[rows]).any():
            best = np.argpartition(tile, -self.k, axis=1)[:, -self.k :]
            self._merge(np.arange(len(tile)), rows, np.take_along_axis(tile, best, 1), best + column)
            return
        # the comparison runs along the memory, its small result is then turned
        better = tile > self.least[rows, None] if tile.flags.c_contiguous else (tile.T > self.least[rows]).T.copy()
        where = np.flatnonzero(better)
        if not len(where):
            return
        at, which = np.divmod(where, tile.shape[1])
        changed, counts = np.unique(at, return_counts=True)
        place = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
        line = np.repeat(np.arange(len(changed)), counts)
        values = np.full((len(changed), counts.max()), -np.inf, tile.dtype)
        indices = np.full(values.shape, -1, np.int64)
        values[line, place], indices[line, place] = tile[at, which], which + column
        self._merge(changed, rows, values, indices)

    def _merge(self, changed: Array, rows: slice, values: Array, indices: Array) -> None:
        target = changed + rows.start
        values = np.concatenate([self.values[target], values], axis=1)
        indices = np.concatenate([self.indices[target], indices], axis=1)
        keep = np.argpartition(values, -self.k, axis=1)[:, -self.k :]
        self.values[target] = np.take_along_axis(values, keep, 1)
        self.indices[target] = np.take_along_axis(indices, keep, 1)
        self.least[target] = self.values[target].min(axis=1)
