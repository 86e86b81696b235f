"""Retrieval in both directions after one rotation, every item tested by a rotation that never saw it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forecast.errors import ForecastError
from runner.metrics.rotation import Rotation, fit_rotation

__all__ = ["Retrieval", "Tested", "retrieval", "two_halves"]

Array = np.ndarray[Any, Any]
CHUNK = 1024
Sides = tuple[Array, Array]


@dataclass(frozen=True)
class Retrieval:
    """Share of items whose partner is among the `at` nearest of `gallery` candidates.

    error: binomial standard error; lower, upper: exact 95 % interval (Clopper & Pearson, 1934,
    doi 10.1093/biomet/26.4.404), both with items taken as independent. chance: at / gallery.
    p_value: of pairing the tested items at random, with the rotations as they are.
    """

    direction: str
    at: int
    score: float
    error: float
    lower: float
    upper: float
    chance: float
    p_value: float
    items: int
    gallery: int


@dataclass(frozen=True)
class Tested:
    """One direction on one tested half: each query's rank of its partner, and its nearest candidates (items, most)."""

    ranks: Array
    nearest: Array


def two_halves(items: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """A random split of the items: two sorted arrays of rows, equal in size or one larger by one."""
    order = rng.permutation(items)
    return np.sort(order[: items // 2]), np.sort(order[items // 2 :])


def retrieval(
    sides: Callable[[Array], Sides],
    items: int,
    *,
    at: Sequence[int] = (1, 10),
    pairings: int = 200,
    rng: np.random.Generator,
) -> list[Retrieval]:
    """R@k of both directions, cross-fitted on two halves: fitted on one, tested on the other, and in turn.

    sides: given the fitting rows, the two feature matrices of *all* items; a choice (of a layer, say) may be made
    there, since it sees no tested row. The gallery is the tested half.
    """
    if items < 2 * (max(at) + 1):
        raise ForecastError(f"R@{max(at)} on halves needs at least {2 * (max(at) + 1)} items, got {items}")
    halves = two_halves(items, rng)
    forward: list[Tested] = []
    backward: list[Tested] = []
    for fitting, tested in (halves, halves[::-1]):
        one, other = sides(fitting)
        there, back = fit_rotation(one[fitting], other[fitting]), fit_rotation(other[fitting], one[fitting])
        forward.append(_test(there, one[tested], other[tested], max(at)))
        backward.append(_test(back, other[tested], one[tested], max(at)))
    return [
        _summary(direction, k, tests, pairings, rng)
        for direction, tests in (("A to B", forward), ("B to A", backward))
        for k in at
    ]


def _test(rotation: Rotation, queries: Array, gallery: Array, most: int) -> Tested:
    moved, candidates = rotation(queries), gallery
    a, b = _unit(moved), _unit(candidates)
    ranks = np.empty(len(a), np.int64)
    nearest = np.empty((len(a), most), np.int64)
    for start in range(0, len(a), CHUNK):
        block = a[start : start + CHUNK] @ b.T
        own = block[np.arange(len(block)), start + np.arange(len(block))]
        ranks[start : start + CHUNK] = (block >= own[:, None]).sum(axis=1) - 1
        best = np.argpartition(block, -most, axis=1)[:, -most:]
        order = np.argsort(-np.take_along_axis(block, best, 1), axis=1)
        nearest[start : start + CHUNK] = np.take_along_axis(best, order, 1)
    return Tested(ranks, nearest)


def _unit(x: Array) -> Array:
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    unit: Array = x / np.where(lengths > 0, lengths, 1)
    return unit


def _summary(direction: str, k: int, tests: Sequence[Tested], pairings: int, rng: np.random.Generator) -> Retrieval:
    from scipy.stats import binomtest

    hits = int(sum((test.ranks < k).sum() for test in tests))
    items = sum(len(test.ranks) for test in tests)
    null = np.zeros(pairings, np.int64)
    for test in tests:
        for p in range(pairings):
            partner = rng.permutation(len(test.ranks))
            null[p] += np.count_nonzero(test.nearest[:, :k] == partner[:, None])
    interval = binomtest(hits, items).proportion_ci(0.95, "exact")
    share = hits / items
    return Retrieval(
        direction=direction,
        at=k,
        score=share,
        error=float(np.sqrt(share * (1 - share) / items)),
        lower=float(interval.low),
        upper=float(interval.high),
        chance=sum(k / len(test.ranks) * len(test.ranks) for test in tests) / items,
        p_value=float((1 + (null >= hits).sum()) / (1 + pairings)),
        items=items,
        gallery=min(len(test.ranks) for test in tests),
    )
