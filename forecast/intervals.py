"""How sure a fit is: covariance on design means, lack of fit, and draws of the parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from forecast.engine import Loss
from forecast.fitted import LackOfFit
from forecast.laws.law import Columns, Law

__all__ = ["Spread", "draw_normal", "lack_of_fit", "spread"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """Covariance of the estimates in engine coordinates, and the noise that it rests on.

    sigma: SD of one run about the law, max(lack of fit, pure error); df: its degrees of freedom.
    tau: SD of the law's own error where lack of fit exceeds pure error.
    free: parameters off their bounds; identified: those whose column the others do not replace.
    """

    covariance: Array
    sigma: Array
    df: int
    tau: Array
    free: npt.NDArray[np.bool_]
    identified: npt.NDArray[np.bool_]


def spread(
    law: Law,
    columns: Columns,
    means: Array,
    counts: Array,
    inner: Array,
    *,
    loss: Loss,
    pure: float | None,
    pure_df: int,
) -> Spread:
    """The delta method on design means for a batch of fits.

    counts: (batch, designs), runs per design, 0 where the design was left out. inner: (batch, p).
    pure, pure_df: seed noise and its degrees of freedom.
    """
    value, jacobian = law.value_and_jacobian(columns, inner)
    residual = np.where(counts > 0, means - value, 0.0)
    jacobian = np.where((counts > 0)[..., None] & np.isfinite(jacobian), jacobian, 0.0)
    p = len(law.parameters)
    df = np.maximum(np.sum(counts > 0, axis=1) - p, 1)
    weight = loss.influence(residual, counts)
    variance = np.sum(weight * residual**2, axis=1) / df
    tolerance = 1e-6 * np.maximum(1.0, np.abs(inner))
    free = (inner > law.lower + tolerance) & (inner < law.upper - tolerance)
    normal = np.einsum("bmi,bm,bmj->bij", jacobian, counts, jacobian)
    scale = np.sqrt(np.maximum(np.einsum("bii->bi", normal), 1e-300))
    unit = normal / (scale[:, :, None] * scale[:, None, :])
    both = free[:, :, None] & free[:, None, :]
    unit = np.where(both, unit, 0.0) + np.eye(p) * np.where(free, 0.0, 1.0)[:, None, :]
    values, vectors = np.linalg.eigh(unit)
    floor = 1e-9
    inverse = np.einsum("bik,bk,bjk->bij", vectors, 1 / np.maximum(values, floor), vectors)
    inverse = np.where(both, inverse, 0.0) / (scale[:, :, None] * scale[:, None, :])
    weak = (values < 10 * floor)[:, None, :]
    identified = ~np.any(weak & (np.abs(vectors) > 0.1), axis=2)
    larger = np.maximum(variance, pure**2) if pure is not None else variance
    sizes = np.maximum(np.sum(counts, axis=1) / np.maximum(np.sum(counts > 0, axis=1), 1), 1.0)
    tau = np.sqrt(np.maximum(variance - pure**2, 0.0) / sizes) if pure is not None and pure_df else np.zeros(len(inner))
    return Spread(inverse * larger[:, None, None], np.sqrt(larger), int(df[0]), tau, free, identified)


def draw_normal(law: Law, inner: Array, covariance: Array, df: int, count: int, rng: np.random.Generator) -> Array:
    """Draws (count, p) of the parameters: multivariate t about the estimate, folded back at the bounds."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    normal = rng.standard_normal((count, len(inner)))
    scale = np.sqrt(df / rng.chisquare(df, size=count))
    return np.asarray(np.clip(inner + scale[:, None] * (normal @ root.T), law.lower, law.upper))


def lack_of_fit(residual: Array, counts: Array, parameters: int, pure: float | None, pure_df: int) -> LackOfFit | None:
    """The pure-error F test on design means; None without replicates or without spare designs."""
    numerator = len(residual) - parameters
    if pure is None or pure_df < 1 or numerator < 1 or pure <= 0:
        return None
    from scipy.stats import f as f_distribution

    ratio = float(np.sum(counts * residual**2) / numerator / pure**2)
    return LackOfFit(
        f=ratio,
        numerator=numerator,
        denominator=pure_df,
        p_value=float(f_distribution.sf(ratio, numerator, pure_df)),
    )
