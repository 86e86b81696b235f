"""A score against what it would be if the two sides' items were paired at random."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forecast.errors import ForecastError

__all__ = ["Calibrated", "calibrate", "common_neighbours", "permutations", "relabelled_scores"]

Array = np.ndarray[Any, Any]
DENSE_ITEMS = 8192


@dataclass(frozen=True)
class Calibrated:
    """A score with its permutation null.

    threshold: the order statistic of the null and the score together that leaves `level` above it.
    calibrated: how far the score lies above the threshold, as a share of what lies above it; 0 if below.
    p_value: (1 + pairings that score at least as high) / (1 + pairings), so never 0.
    """

    score: float
    threshold: float
    calibrated: float
    p_value: float
    null_mean: float
    permutations: int
    level: float

    @property
    def above_chance(self) -> bool:
        """Whether pairing at random reaches the score no more often than `level`."""
        return self.p_value <= self.level


def permutations(items: int, count: int, rng: np.random.Generator) -> Iterator[Array]:
    """So many random pairings: each an array (items,) that says which row of the other side row i meets."""
    for _ in range(count):
        yield rng.permutation(items)


def calibrate(score: float, null: Array, *, level: float = 0.05, best: float = 1.0) -> Calibrated:
    """`score` against the scores `null` of random pairings; `best`: the highest that any score can be.

    Source: Groeger, Wen & Brbic (2026), Revisiting the Platonic Representation Hypothesis, algorithm 1;
    Phipson & Smyth (2010), doi 10.2202/1544-6115.1585, for the p-value.
    """
    if not 0 < level < 1:
        raise ForecastError(f"the level of a test lies between 0 and 1, got {level}")
    null = np.asarray(null, np.float64)
    if null.ndim != 1 or not len(null) or not np.isfinite(null).all() or not math.isfinite(score):
        raise ForecastError(f"a permutation null needs finite scores of at least one pairing, got shape {null.shape}")
    together = np.sort(np.append(null, score))
    threshold = float(together[max(0, math.ceil((1 - level) * len(together) - 1e-9) - 1)])
    above = 0.0 if score <= threshold else (score - threshold) / (best - threshold)
    return Calibrated(
        score=score,
        threshold=threshold,
        calibrated=above,
        p_value=(1 + int((null >= score).sum())) / (1 + len(null)),
        null_mean=float(null.mean()),
        permutations=len(null),
        level=level,
    )


def relabelled_scores(ones: Sequence[Array], others: Sequence[Array], pairings: Sequence[Array]) -> tuple[Array, Array]:
    """Mutual k-NN of every pair of layers: as paired (layers, layers), and under each pairing (pairings, ...).

    ones, others: per layer its neighbours (items, k). Nothing is searched again: pairing rows at random only
    renames them. A pairing is applied to all layers alike, so that a choice of layer can lie inside the null.
    """
    items, k = ones[0].shape
    shapes = {x.shape for x in (*ones, *others)}
    if shapes != {(items, k)}:
        raise ForecastError(f"every layer needs the same items and k, got {sorted(shapes)}")
    lookups = [_Lookup(neighbours) for neighbours in others]
    every = [np.arange(items), *pairings]
    scores = np.empty((len(every), len(ones), len(others)))
    for a, neighbours in enumerate(ones):
        for p, pairing in enumerate(every):
            rows, columns = pairing[:, None], pairing[neighbours]
            for b, lookup in enumerate(lookups):
                scores[p, a, b] = lookup.hits(rows, columns) / (items * k)
    return scores[0], scores[1:]


def common_neighbours(one: Array, other: Array, pairing: Array) -> int:
    """How many neighbours (items, k) of `one` are also those of `other` when row i of `one` meets row pairing[i]."""
    return _Lookup(other).hits(pairing[:, None], pairing[one])


class _Lookup:
    """Whether one row is a neighbour of another: a table while that is small, else a comparison with all k."""

    def __init__(self, neighbours: Array) -> None:
        items = len(neighbours)
        self.neighbours = neighbours
        self.table: Array | None = None
        if items <= DENSE_ITEMS:
            self.table = np.zeros((items, items), bool)
            self.table[np.arange(items)[:, None], neighbours] = True

    def hits(self, rows: Array, columns: Array) -> int:
        if self.table is not None:
            return int(np.count_nonzero(self.table[rows, columns]))
        mine = self.neighbours[rows[:, 0]]
        return sum(int((mine == columns[:, j : j + 1]).sum()) for j in range(columns.shape[1]))
