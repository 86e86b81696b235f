"""Scores of forecasts: pure functions of forecasts and outcomes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special, stats

__all__ = ["coverage", "crps_normal", "crps_sample", "crps_student", "interval_score", "pinball", "wis"]

Array = npt.NDArray[np.float64]


def crps_normal(outcome: Array, mean: Array, sd: Array) -> Array:
    """Continuous ranked probability score of a normal forecast (Gneiting & Raftery 2007, eq. 21), outcome's unit."""
    z = (outcome - mean) / sd
    return np.asarray(sd * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi)))


def crps_student(outcome: Array, location: Array, scale: Array, df: Array | float) -> Array:
    """CRPS of a Student t forecast with df > 1 (Jordan, Krueger & Lerch 2019, doi 10.18637/jss.v090.i12)."""
    z = (outcome - location) / scale
    nu = np.asarray(df, dtype=np.float64)
    if np.any(nu <= 1):
        raise ValueError(f"the CRPS of a t distribution needs more than 1 degree of freedom, got {nu.min()}")
    log_beta = special.betaln(0.5, nu - 0.5) - 2 * special.betaln(0.5, nu / 2)
    last = 2 * np.sqrt(nu) / (nu - 1) * np.exp(log_beta)
    spread = 2 * stats.t.pdf(z, nu) * (nu + z**2) / (nu - 1)
    return np.asarray(scale * (z * (2 * stats.t.cdf(z, nu) - 1) + spread - last))


def crps_sample(outcome: Array, draws: Array) -> Array:
    """CRPS of the empirical distribution of `draws` (draws, targets) at `outcome` (targets,)."""
    ordered = np.sort(draws, axis=0)
    count = len(ordered)
    rank = (2 * np.arange(1, count + 1) - count - 1)[:, None]
    spread = np.sum(rank * ordered, axis=0) / count**2
    return np.asarray(np.mean(np.abs(draws - outcome), axis=0) - spread)


def pinball(outcome: Array, quantile: Array, level: float) -> Array:
    """Quantile loss at `level`: level * (y - q) above the quantile, (1 - level) * (q - y) below."""
    return np.asarray(np.where(outcome >= quantile, level * (outcome - quantile), (1 - level) * (quantile - outcome)))


def interval_score(outcome: Array, lower: Array, upper: Array, alpha: float) -> Array:
    """Width plus 2/alpha times the miss, of a central 1-alpha interval (Gneiting & Raftery 2007, eq. 43)."""
    miss = np.maximum(lower - outcome, 0) + np.maximum(outcome - upper, 0)
    return np.asarray(upper - lower + 2 / alpha * miss)


def wis(outcome: Array, quantiles: dict[float, Array]) -> Array:
    """Weighted interval score: twice the mean pinball loss of symmetric levels (Bracher et al. 2021).

    quantiles: level -> value; levels must be symmetric about the median and hold it.
    doi 10.1371/journal.pcbi.1008618.
    """
    levels = sorted(quantiles)
    symmetric = all(abs(a + b - 1) < 1e-9 for a, b in zip(levels, reversed(levels), strict=True))
    if 0.5 not in quantiles or not symmetric:
        raise ValueError(f"levels must be symmetric and hold 0.5, got {levels}")
    losses = [pinball(outcome, quantiles[level], level) for level in levels]
    return np.asarray(2 * np.mean(losses, axis=0))


def coverage(outcome: Array, lower: Array, upper: Array) -> float:
    """Share of outcomes inside their closed interval. Raises ValueError where there are none."""
    if np.size(outcome) == 0:
        raise ValueError("coverage of no outcomes is undefined")
    return float(np.mean((outcome >= lower) & (outcome <= upper)))
