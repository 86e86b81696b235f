"""How sure a fit is: the noise that its intervals rest on, lack of fit, and one interface to every method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from forecast.bootstrap import BOOTSTRAPS, bootstrap
from forecast.confidence import Confidence
from forecast.engine import Loss
from forecast.fitted import LackOfFit
from forecast.laws.law import Columns, Law
from forecast.profile import profile_predictions

__all__ = ["METHODS", "Spread", "confidence", "lack_of_fit", "noise_about", "spread"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

METHODS = ("profile", "delta", *BOOTSTRAPS)
POOL = 0.2  # p value of the lack-of-fit test above which lack of fit and pure error are one variance


@dataclass(frozen=True)
class Spread:
    """Covariance of the estimates in engine coordinates (batch, p, p), and the noise that it rests on.

    sigma: SD of one run about the law, (batch,); df: its degrees of freedom, (batch,).
    tau: SD of the law's own error at one design, (batch,); 0 where the law does not fail.
    free: parameters off their bounds; identified: those whose column the others do not replace.
    """

    covariance: Array
    sigma: Array
    df: npt.NDArray[np.int64]
    tau: Array
    free: Mask
    identified: Mask


def noise_about(
    variance: Array, spare: npt.NDArray[np.int64], counts: Array, pure: float | Array | None, pure_df: int
) -> tuple[Array, npt.NDArray[np.int64], Array]:
    """SD of one run about the law, its degrees of freedom, and tau.

    variance: lack-of-fit mean square with `spare` degrees of freedom. Where the F test does not tell it from pure
    error the two are pooled; where it does, lack of fit rules: a failing law has the wider intervals.
    """
    if pure is None or pure_df < 1:
        return np.sqrt(variance), spare, np.zeros(len(variance))
    error = np.maximum(np.square(pure), 1e-300)
    fails = special.fdtrc(spare, pure_df, variance / error) < POOL
    pooled = (spare * variance + pure_df * error) / (spare + pure_df)
    size = np.sum(counts, axis=1) / np.maximum(np.sum(counts > 0, axis=1), 1)
    tau = np.where(fails, np.sqrt(np.maximum(variance - error, 0.0) / np.maximum(size, 1.0)), 0.0)
    return np.sqrt(np.where(fails, variance, pooled)), np.where(fails, spare, spare + pure_df), tau


def spread(
    law: Law,
    columns: Columns,
    means: Array,
    counts: Array,
    inner: Array,
    *,
    loss: Loss,
    pure: float | Array | None,
    pure_df: int,
) -> Spread:
    """The delta method on design means for a batch of fits.

    counts: (batch, designs), runs per design, 0 where the design was left out. inner: (batch, p).
    pure, pure_df: seed noise (one for all, or per fit) and its degrees of freedom.
    """
    value, jacobian = law.value_and_jacobian(columns, inner)
    residual = np.where(counts > 0, means - value, 0.0)
    jacobian = np.where((counts > 0)[..., None] & np.isfinite(jacobian), jacobian, 0.0)
    p = len(law.parameters)
    spare = np.maximum(np.sum(counts > 0, axis=1) - p, 1)
    variance = np.sum(loss.influence(residual, counts) * residual**2, axis=1) / spare
    sigma, df, tau = noise_about(variance, spare, counts, pure, pure_df)
    tolerance = 1e-6 * np.maximum(1.0, np.abs(inner))
    free = (inner > law.lower + tolerance) & (inner < law.upper - tolerance)
    normal = np.einsum("bmi,bm,bmj->bij", jacobian, counts, jacobian)
    if law.priors:
        normal = normal + np.eye(p) * (law.prior_residual(inner)[1] ** 2)[:, None, :]
    square = np.einsum("bii->bi", normal)
    scale = np.where(square > 1e-200, np.sqrt(square), 1.0)  # a column of zeros keeps its unit, and is not identified
    unit = normal / (scale[:, :, None] * scale[:, None, :])
    both = free[:, :, None] & free[:, None, :]
    unit = np.where(both, unit, 0.0) + np.eye(p) * np.where(free, 0.0, 1.0)[:, None, :]
    values, vectors = np.linalg.eigh(unit)
    floor = 1e-9
    inverse = np.einsum("bik,bk,bjk->bij", vectors, 1 / np.maximum(values, floor), vectors)
    inverse = np.where(both, inverse, 0.0) / (scale[:, :, None] * scale[:, None, :])
    weak = (values < 10 * floor)[:, None, :]
    identified = ~np.any(weak & (np.abs(vectors) > 0.1), axis=2)
    return Spread(inverse * sigma[:, None, None] ** 2, sigma, df, tau, free, identified)


def confidence(
    law: Law,
    columns: Columns,
    means: Array,
    counts: Array,
    inner: Array,
    targets: Columns,
    *,
    method: str,
    covariance: Array,
    sigma: float,
    df: int,
    loss: Loss,
    rng: np.random.Generator,
    draws: int = 1000,
) -> Confidence:
    """The curve's confidence at each target, by one of METHODS. inner: the best fit, (p,)."""
    value, jacobian = law.value_and_jacobian(targets, inner[None])
    best, j = value[0], np.where(np.isfinite(jacobian[0]), jacobian[0], 0.0)
    error = np.sqrt(np.maximum(np.einsum("mi,ij,mj->m", j, covariance, j), 0.0))
    cases, freedom = len(best), np.full(len(best), float(df))
    if method == "delta":
        reach = np.array([-12.0, 12.0])
        return Confidence(best[:, None] + reach * error[:, None], np.tile(reach, (cases, 1)), freedom)
    if method == "profile":
        span = float(np.ptp(means)) or sigma
        guess = np.clip(error, 1e-2 * sigma, 0.5 * span + sigma)
        return profile_predictions(
            law,
            columns,
            np.broadcast_to(means, (cases, len(means))),
            np.broadcast_to(counts, (cases, len(counts))),
            np.tile(inner, (cases, 1)),
            targets,
            sigma=np.full(cases, sigma),
            df=freedom,
            loss=loss,
            spread=guess,
        )
    if method in BOOTSTRAPS:
        found = bootstrap(law, columns, means, counts, inner, kind=method, draws=draws, loss=loss, rng=rng)
        drawn = np.sort(law.value(targets, found), axis=0)
        levels = (np.arange(draws) + 0.5) / draws
        return Confidence(drawn.T, np.tile(special.stdtrit(df, levels), (cases, 1)), freedom)
    raise ValueError(f"no interval method {method!r}; the methods are {', '.join(METHODS)}")


def lack_of_fit(residual: Array, counts: Array, parameters: int, pure: float | None, pure_df: int) -> LackOfFit | None:
    """The pure-error F test on design means; None without replicates or without spare designs."""
    numerator = len(residual) - parameters
    if pure is None or pure_df < 1 or numerator < 1 or pure <= 0:
        return None
    ratio = float(np.sum(counts * residual**2) / numerator / pure**2)
    return LackOfFit(
        f=ratio,
        numerator=numerator,
        denominator=pure_df,
        p_value=float(special.fdtrc(numerator, pure_df, ratio)),
    )
