"""Bootstraps on design means: residual, wild and by design, each refitted in one batch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from forecast.engine import Loss, Minima, minimise
from forecast.laws.law import Columns, Law

__all__ = ["BOOTSTRAPS", "bootstrap", "refitted"]

Array = npt.NDArray[np.float64]

BOOTSTRAPS = ("residual", "wild", "cluster")
HOPELESS = 1e100  # loss of a row at which a law has no value
SCOUTS = 128  # draws that are refitted from every warm start; the others start from the best of what these found


def bootstrap(
    law: Law,
    columns: Columns,
    means: Array,
    counts: Array,
    inner: Array,
    *,
    kind: str,
    draws: int,
    loss: Loss,
    rng: np.random.Generator,
) -> Array:
    """Refitted parameters (draws, p) in engine coordinates.

    residual: residuals over sqrt(1 - leverage), drawn with replacement.
    wild: the same residuals, each times a Rademacher sign (Liu 1988).
    cluster: whole designs drawn with replacement, deviations widened by sqrt(designs / (designs - p)).
    """
    value, jacobian = law.value_and_jacobian(columns, inner[None])
    fitted, j = value[0], np.where(np.isfinite(jacobian[0]), jacobian[0], 0.0) * np.sqrt(counts)[:, None]
    rows, p = j.shape
    leverage = np.clip(np.einsum("mi,ij,mj->m", j, np.linalg.pinv(j.T @ j), j), 0.0, 0.999)
    standard = (means - fitted) * np.sqrt(counts) / np.sqrt(1 - leverage)
    begin = np.tile(inner, (draws, 1))
    if kind == "cluster":
        drawn = rng.multinomial(rows, np.full(rows, 1 / rows), size=draws)
        found = refitted(law, columns, means, drawn * counts, inner[None], loss=loss).inner
        wide = inner + (found - inner) * np.sqrt(rows / max(rows - p, 1))
        return np.asarray(np.clip(wide, law.lower, law.upper))
    if kind == "residual":
        centred = standard - standard.mean()
        noise = centred[rng.integers(rows, size=(draws, rows))]
    elif kind == "wild":
        noise = standard * rng.choice([-1.0, 1.0], size=(draws, rows))
    else:
        raise ValueError(f"no bootstrap {kind!r}")
    return minimise(
        law,
        columns,
        fitted + noise / np.sqrt(counts),
        counts,
        begin,
        loss=loss,
        iterations=60,
        tolerance=1e-9,
        near=True,
    ).inner


def refitted(law: Law, columns: Columns, means: Array, weights: Array, warm: Array, *, loss: Loss) -> Minima:
    """The minimum under each draw of the weights (draws, rows), from warm starts (k, p) in engine coordinates.

    The first draws are refitted from every warm start. The loss of each minimum so found under each further draw is a
    product of two matrices, so that a further draw starts from the best of them: nearer to its own minimum than any
    warm start, and in the deepest valley that the first draws know.
    """
    draws, several = len(weights), len(warm)
    first = draws if draws <= 2 * SCOUTS else SCOUTS

    def solve(some: Array, begin: Array) -> Minima:
        return minimise(law, columns, means, some, begin, loss=loss, iterations=120, tolerance=1e-9, near=True)

    scouts = solve(np.repeat(weights[:first], several, axis=0), np.tile(warm, (first, 1)))
    scouts = scouts.take(np.argmin(scouts.loss.reshape(first, several), axis=1) + several * np.arange(first))
    if first == draws:
        return scouts
    residual = means - law.value(columns, scouts.inner)
    capped = loss.capped(residual)
    known = np.where(np.isfinite(residual), capped * (2 * residual - capped), HOPELESS)
    nearest = np.argmin(weights[first:] @ known.T, axis=1)
    return scouts.joined(solve(weights[first:], scouts.inner[nearest]))
