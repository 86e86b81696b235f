"""Words and gapped pairs of words as hashed ids: what the bag of n-grams sees of a row of tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from runner.worlds.distinct import row_hashes
from runner.worlds.glyphs import BUCKETS, TextTable

__all__ = ["skipgram_table", "skipgrams"]

Array = np.ndarray[Any, Any]
GAPS = 3


def skipgrams(ids: Array) -> Array:
    """Each token, and each pair of tokens at most GAPS apart with its gap, as ids in [1, BUCKETS), (texts, any).

    ids: (texts, longest), padding 0 on the right only. The result's padding, too, stands on the right.
    """
    ids = np.asarray(ids, np.int64)
    longest = ids.shape[1]
    columns = [np.where(ids == 0, 0, _bucket(ids, np.zeros_like(ids), 0))]
    for gap in range(1, min(GAPS, longest - 1) + 1):
        first, second = ids[:, :-gap], ids[:, gap:]
        columns.append(np.where(second == 0, 0, _bucket(first, second, gap)))
    grams = np.concatenate(columns, axis=1)
    order = np.argsort(grams == 0, axis=1, kind="stable")
    return np.take_along_axis(grams, order, axis=1)[:, : max(1, int((grams != 0).sum(axis=1).max(initial=1)))]


def skipgram_table(table: TextTable) -> TextTable:
    """The rows of `table` as `skipgrams`."""
    ids = skipgrams(table.ids)
    return TextTable.of(ids, (ids != 0).sum(axis=1), table.scene, BUCKETS)


def _bucket(first: Array, second: Array, gap: int) -> Array:
    hashed = row_hashes(np.stack([first.ravel(), second.ravel() + 1, np.full(first.size, gap + 1)], axis=1))
    return (1 + hashed % np.uint64(BUCKETS - 1)).astype(np.int32).reshape(first.shape)
