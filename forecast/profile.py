"""Profile likelihood: how much worse the best fit gets when a prediction, or a parameter, must take a given value."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from forecast.confidence import Confidence, ordered
from forecast.engine import Loss, minimise
from forecast.laws.law import Columns, Law

__all__ = ["profile_parameters", "profile_predictions"]

Array = npt.NDArray[np.float64]

STEPS = np.array([0.3, 0.7, 1.1, 1.6, 2.1, 2.7, 3.5, 4.7, 6.5, 10.0, 18.0, 40.0])
BLOCK = 2_000_000  # elements of (fits, designs) held at once
BOTH = np.concatenate([-STEPS[::-1], STEPS])


def profile_predictions(
    law: Law,
    columns: Columns,
    means: Array,
    counts: Array,
    inner: Array,
    targets: Columns,
    *,
    sigma: Array,
    df: Array,
    loss: Loss,
    spread: Array,
) -> Confidence:
    """The profile of the law's value in each of K cases, all in one batch; a case is a dataset with one target.

    means, counts: (K, designs); inner: the best fits, (K, p); targets: columns (K,).
    sigma, df: SD of one run and its degrees of freedom, (K,). spread: a first guess of the curve's SD, (K,).
    A pseudo-observation pulls the curve at the target; wherever it ends, the point (value there, loss of the data)
    lies on the profile exactly, so the pull need not be strong.
    Source: Venzon & Moolgavkar (1988), doi 10.2307/2347496; Bates & Watts (1988), chapter 6.
    """
    cases, designs = means.shape
    each = len(BOTH)
    block = max(1, BLOCK // (each * designs))
    if cases > block:
        parts = []
        for i in range(0, cases, block):
            some = slice(i, i + block)
            part = {k: v[some] for k, v in targets.items()}
            parts.append(
                profile_predictions(
                    law, columns, means[some], counts[some], inner[some], part,
                    sigma=sigma[some], df=df[some], loss=loss, spread=spread[some],
                )
            )  # fmt: skip
        return Confidence(*(np.concatenate([getattr(p, k) for p in parts]) for k in ("value", "statistic", "df")))
    joined = {
        k: np.concatenate([np.broadcast_to(columns[k], (cases, designs)), targets[k][:, None]], axis=1)
        for k in law.predictors
    }
    at_best = law.value(joined, inner)
    best = at_best[:, -1]
    base = loss.total(means - at_best[:, :-1], counts) + law.prior_loss(inner)
    pulled = best[:, None] + BOTH * spread[:, None]
    strength = np.repeat((4 * sigma / spread) ** 2, each)
    repeated = {k: np.repeat(v, each, axis=0) for k, v in joined.items()}
    outcome = np.column_stack([np.repeat(means, each, axis=0), pulled.ravel()])
    weight = np.column_stack([np.repeat(counts, each, axis=0), strength])
    minima = minimise(
        law, repeated, outcome, weight, np.repeat(inner, each, axis=0), loss=loss, iterations=40, tolerance=1e-10
    )
    reached = law.value(repeated, minima.inner)
    total = loss.total(outcome[:, :-1] - reached[:, :-1], weight[:, :-1]) + law.prior_loss(minima.inner)
    total = total.reshape(cases, each)
    statistic = np.sqrt(np.maximum(total - base[:, None], 0.0)) / sigma[:, None]
    return ordered(best, reached[:, -1].reshape(cases, each), statistic, df)


def profile_parameters(
    law: Law,
    columns: Columns,
    means: Array,
    counts: Array,
    inner: Array,
    *,
    sigma: float,
    df: int,
    loss: Loss,
    spread: Array,
) -> Confidence:
    """The profile of each parameter in engine coordinates, one row a parameter.

    spread: a first guess of each parameter's SD, (p,).
    """
    p, each = len(inner), len(BOTH)
    data = loss.total((means - law.value(columns, inner[None])[0])[None], counts[None])
    base = float((data + law.prior_loss(inner[None]))[0])
    held = np.repeat(np.arange(p), each)
    begin = np.tile(inner, (p * each, 1))
    rows = np.arange(p * each)
    asked = (inner[:, None] + BOTH * spread[:, None]).ravel()
    begin[rows, held] = np.clip(asked, law.lower[held], law.upper[held])
    fixed = held[:, None] == np.arange(p)
    minima = minimise(law, columns, means, counts, begin, loss=loss, iterations=60, fixed=fixed, tolerance=1e-10)
    statistic = np.sqrt(np.maximum(minima.loss - base, 0.0)) / sigma
    return ordered(inner, begin[rows, held].reshape(p, each), statistic.reshape(p, each), np.full(p, float(df)))
