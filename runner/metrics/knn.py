"""Mutual k-nearest-neighbour alignment of two sets of features."""

from __future__ import annotations

from typing import Any

import numpy as np

from forecast.errors import ForecastError

__all__ = ["mutual_knn_hits", "nearest_neighbours"]

Array = np.ndarray[Any, Any]
CHUNK = 1024


def nearest_neighbours(features: Array, k: int) -> Array:
    """The k rows most similar to each row by cosine, itself left out, unordered: (items, k).

    features: (items, dimensions), finite, no zero row, more than k items. Memory: one chunk of rows x items.
    """
    features = np.asarray(features, np.float32)
    if features.ndim != 2 or len(features) <= k:
        raise ForecastError(f"k = {k} neighbours need a matrix of more than {k} rows, got shape {features.shape}")
    norms = np.linalg.norm(features, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or not (norms > 0).all():
        raise ForecastError("features must be finite and no row zero: cosine similarity is not defined there")
    unit = features / norms
    found = np.empty((len(unit), k), np.int64)
    for start in range(0, len(unit), CHUNK):
        block = unit[start : start + CHUNK] @ unit.T
        rows = np.arange(len(block))
        block[rows, start + rows] = -np.inf
        found[start : start + CHUNK] = np.argpartition(block, -k, axis=1)[:, -k:]
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
