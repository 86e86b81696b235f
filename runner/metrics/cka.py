"""Linear centred kernel alignment: how alike two sets' matrices of inner products are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from forecast.errors import ForecastError

__all__ = ["centred_gram", "cka_chance", "jackknife_error", "linear_cka", "permuted_cka"]

Array = np.ndarray[Any, Any]
GROUPS = 20


def centred_gram(features: Array) -> Array:
    """Inner products of the centred rows: (items, items), float64."""
    x = np.asarray(features, np.float64)
    x = x - x.mean(axis=0)
    gram: Array = x @ x.T
    return gram


def linear_cka(one: Array, other: Array, *, debiased: bool = False) -> float:
    """Linear CKA of features paired by row, 1 for features equal up to rotation, shift and scale.

        |X'Y|^2 / (|X'X| |Y'Y|),  X, Y centred, Frobenius norms

    Chance depends on items and dimensions: `cka_chance`. debiased: each term is the unbiased estimate of its HSIC,
    so that independent features score 0 on average and may score below; needs 4 items.
    Sources: Kornblith et al. (2019), arXiv 1905.00414; Song et al. (2012), JMLR 13, eq. 5, for the unbiased HSIC;
    Murphy, Zylberberg & Fyshe (2024), arXiv 2405.01012, for why few items in many dimensions need it.
    """
    if one.ndim != 2 or other.ndim != 2 or len(one) != len(other):
        raise ForecastError(f"CKA needs features paired by row, got shapes {one.shape} and {other.shape}")
    if len(one) < 4:
        raise ForecastError(f"CKA needs at least 4 items, got {len(one)}")
    terms = _Terms.of(one), _Terms.of(other)
    return _cka(terms[0], terms[1], debiased=debiased)


def cka_chance(one: Array, other: Array) -> float:
    """The mean of `linear_cka` over all pairings of the rows, exactly: what these shapes and spectra score by chance.

        tr(K) tr(L) / ((items - 1) |K| |L|),  K, L the centred inner products

    Source: Kazi-Aoual et al. (1995), doi 10.1016/0167-9473(94)00064-2 (its mean of tr(K L) under permutation).
    """
    a, b = _Terms.of(one), _Terms.of(other)
    return a.trace * b.trace / ((len(one) - 1) * a.norm * b.norm)


def jackknife_error(one: Array, other: Array, *, debiased: bool = False, groups: int = GROUPS) -> float:
    """Standard error of `linear_cka` by leaving out one of `groups` groups of items at a time.

    Source: Efron & Tibshirani (1993), An Introduction to the Bootstrap, ch. 11.
    """
    groups = min(groups, len(one) // 4)
    if groups < 2:
        raise ForecastError(f"a jackknife of CKA needs at least 8 items, got {len(one)}")
    part = np.arange(len(one)) % groups
    values = np.array([linear_cka(one[part != g], other[part != g], debiased=debiased) for g in range(groups)])
    return float(np.sqrt((groups - 1) * values.var()))


def permuted_cka(one: Array, other: Array, pairings: Sequence[Array]) -> Array:
    """`linear_cka` under each pairing: (pairings,). Only the cross term is computed again."""
    a, b = _Terms.of(one), _Terms.of(other)
    if len(one) <= max(one.shape[1], other.shape[1]):
        first, second = centred_gram(one), centred_gram(other)
        cross = [float(np.vdot(first, second[np.ix_(p, p)])) for p in pairings]
    else:
        cross = [float(np.square(a.centred.T @ b.centred[p]).sum()) for p in pairings]
    return np.array(cross) / (a.norm * b.norm)


class _Terms:
    """What CKA needs of one side: centred rows, their squared lengths, |X'X| and tr(X'X)."""

    def __init__(self, centred: Array) -> None:
        self.centred = centred
        self.lengths = np.square(centred).sum(axis=1)
        self.trace = float(self.lengths.sum())
        wide = centred.shape[1] > centred.shape[0]
        self.norm = float(np.linalg.norm(centred @ centred.T if wide else centred.T @ centred))

    @classmethod
    def of(cls, features: Array) -> _Terms:
        x = np.asarray(features, np.float64)
        terms = cls(x - x.mean(axis=0))
        if not terms.trace > 0:
            raise ForecastError("all items have the same features: CKA is not defined")
        return terms


def _cka(a: _Terms, b: _Terms, *, debiased: bool) -> float:
    cross = float(np.square(a.centred.T @ b.centred).sum())
    if not debiased:
        return cross / (a.norm * b.norm)
    own = _unbiased(a, a, a.norm**2), _unbiased(b, b, b.norm**2)
    if min(own) <= 0:
        raise ForecastError("the debiased CKA is not defined here: a side's unbiased self-similarity is not positive")
    return _unbiased(a, b, cross) / float(np.sqrt(own[0] * own[1]))


def _unbiased(a: _Terms, b: _Terms, cross: float) -> float:
    """n (n - 3) times the unbiased HSIC of two sides, from the inner products without their diagonals.

    With K, L centred and D_K, D_L their diagonals, rows of K - D_K sum to -d_K; so the three sums of eq. 5 are
    tr(KL) - d_K.d_L, tr(K) tr(L) and d_K.d_L.
    """
    n = len(a.lengths)
    diagonals = float(a.lengths @ b.lengths)
    return cross - diagonals + a.trace * b.trace / ((n - 1) * (n - 2)) - 2 * diagonals / (n - 2)
