"""How many different rows were seen, of a source without end."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["DistinctRows"]

Array = np.ndarray[Any, Any]
MERGE_AT = 1 << 16


class DistinctRows:
    """Counts different rows of ids and their tokens by a 64-bit hash of each; 16 bytes a different row.

    Two different rows share a hash with chance 2^-64: of ten million rows one pair does with chance 3e-6.
    """

    def __init__(self) -> None:
        self._known = np.zeros(0, np.uint64)
        self._tokens = np.zeros(0, np.int64)
        self._new: list[tuple[Array, Array]] = []
        self._waiting = 0

    def add(self, ids: Array) -> None:
        """Take in rows (rows, longest), 0 is padding."""
        self._new.append((row_hashes(ids), (ids != 0).sum(axis=1)))
        self._waiting += len(ids)
        if self._waiting >= max(MERGE_AT, len(self._known) // 4):
            self._merge()

    @property
    def rows(self) -> int:
        """How many different rows so far."""
        self._merge()
        return len(self._known)

    @property
    def tokens(self) -> int:
        """How many tokens the different rows hold."""
        self._merge()
        return int(self._tokens.sum())

    def state(self) -> dict[str, Array]:
        """What a checkpoint keeps."""
        self._merge()
        return {"known": self._known, "tokens": self._tokens}

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from `state`."""
        self._known, self._tokens, self._new, self._waiting = state["known"], state["tokens"], [], 0

    def _merge(self) -> None:
        if self._new:
            hashes = np.concatenate([self._known, *(h for h, _ in self._new)])
            tokens = np.concatenate([self._tokens, *(t for _, t in self._new)])
            self._known, first = np.unique(hashes, return_index=True)
            self._tokens, self._new, self._waiting = tokens[first], [], 0


def row_hashes(ids: Array) -> Array:
    """A 64-bit hash of each row, the same whatever the padding on the right: (rows,) uint64."""
    mixed = np.zeros(len(ids), np.uint64)
    for column in ids.astype(np.uint64).T:
        # padding leaves the hash as it is
        mixed = np.where(column == 0, mixed, _mix(mixed * np.uint64(0x9E3779B97F4A7C15) + column))
    return mixed


def _mix(x: Array) -> Array:
    """The finaliser of SplitMix64: Steele, Lea & Flood (2014), doi 10.1145/2660193.2660195."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = x ^ (x >> np.uint64(31))
    return mixed
