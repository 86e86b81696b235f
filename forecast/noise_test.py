"""Is a forecast's error as small as seed noise? Tests of equivalence, pure and without defaults that hide.

The law's error at target i is b_i, the seed noise sigma_i; an outcome minus its point is b_i + sigma_i z.
As good as seed noise means mean(b_i^2 - delta^2 sigma_i^2) < 0: with delta = 1 the forecast is worth at
least one rerun with another seed. "Not significantly different" is never a pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import optimize, special, stats

__all__ = ["NoiseTest", "replicate_power", "replicate_test", "seeds_needed", "single_run_power", "single_run_test"]

Array = npt.NDArray[np.float64]
Label = Literal["as good", "worse", "inconclusive"]


@dataclass(frozen=True)
class NoiseTest:
    """What a test says. lower, upper: its 1 - 2 alpha interval of `quantity`; margin: as good is below it.

    sigma: seed noise that it used, outcome's unit (replicates: root of the mean within-target variance).
    curve_error: estimated RMS of the law's error in units of sigma, 0 where the estimate is negative.
    f, p_value: of "the law has no error" (single runs only).
    """

    test: Literal["replicates", "single runs"]
    label: Label
    bias_detected: bool
    quantity: str
    estimate: float
    lower: float
    upper: float
    margin: float
    rmse: float
    sigma: float
    degrees_of_freedom: int
    targets: int
    curve_error: float
    f: float | None = None
    p_value: float | None = None
    excess_kurtosis: float | None = None
    kurtosis_high: bool = False


def replicate_test(errors: Sequence[Array], *, delta: float = 1.0, alpha: float = 0.05) -> NoiseTest:
    """The primary test: `errors` holds per target its outcomes minus the point, at least two of each.

    u_i = mean(e_i)^2 - s_i^2 / n_i - delta^2 s_i^2 has mean b_i^2 - delta^2 sigma_i^2; s_i^2 is the target's own
    variance (a pooled one would break the level where noise differs). The level is that of "as good" for these
    targets; "worse" is said somewhat too often at the margin (7 to 10 % at alpha 5 % with 2 replicates, since u is
    skewed), and so is "as good" (up to 11 %) if few targets stand for a population of them.
    Raises ValueError for fewer than two targets or replicates, and where no seed moved any outcome.
    """
    if len(errors) < 2 or any(len(group) < 2 for group in errors):
        raise ValueError("the replicate test needs at least 2 targets with at least 2 replicates each")
    counts = np.array([len(group) for group in errors], dtype=np.float64)
    runs = np.concatenate([np.asarray(group, dtype=np.float64) for group in errors])
    starts = np.concatenate([[0], np.cumsum(counts[:-1])]).astype(np.int64)
    means = np.add.reduceat(runs, starts) / counts
    deviations = runs - np.repeat(means, counts.astype(np.int64))
    variances = np.add.reduceat(deviations**2, starts) / (counts - 1)
    if all(np.ptp(group) == 0 for group in errors):
        raise ValueError("seed had no effect: all replicates of every target are identical")
    bias = means**2 - variances / counts
    lower, upper, estimate = _interval(bias - delta**2 * variances, alpha)
    sigma = float(np.sqrt(np.mean(variances)))
    return NoiseTest(
        test="replicates",
        label=_label(lower, upper, 0.0),
        bias_detected=_interval(bias, alpha)[0] > 0,
        quantity="mean squared error of the law minus margin, outcome's unit squared",
        estimate=estimate,
        lower=lower,
        upper=upper,
        margin=0.0,
        rmse=float(np.sqrt(np.mean(runs**2))),
        sigma=sigma,
        degrees_of_freedom=int(np.sum(counts - 1)),
        targets=len(errors),
        curve_error=float(np.sqrt(max(0.0, float(np.mean(bias))))) / sigma,
    )


def single_run_test(errors: Array, *, sigma: float, df: int, delta: float = 1.0, alpha: float = 0.05) -> NoiseTest:
    """The fallback where targets have one run each: F = mean(errors^2) / sigma^2, sigma with `df` from elsewhere.

    Under normal noise F is noncentral F(m, df, m b^2), b the law's RMS error in units of sigma; the interval
    of b inverts it. `errors` has shape (m,). Kurtosis of the errors is reported since the F test leans on it.
    """
    count = len(errors)
    if count < 1 or df < 1 or not sigma > 0:
        raise ValueError(f"needs errors, df >= 1 and sigma > 0, got {count} errors, df {df}, sigma {sigma}")
    rmse = float(np.sqrt(np.mean(np.asarray(errors) ** 2)))
    f = rmse**2 / sigma**2
    lower, upper = (_curve_error(f, count, df, probability) for probability in (1 - alpha, alpha))
    kurtosis = float(stats.kurtosis(errors)) if count >= 8 and np.ptp(errors) > 0 else None
    return NoiseTest(
        test="single runs",
        label=_label(lower, upper, delta),
        bias_detected=lower > 0,
        quantity="RMS error of the law in units of seed noise",
        estimate=math.sqrt(max(0.0, f - 1)),
        lower=lower,
        upper=upper,
        margin=delta,
        rmse=rmse,
        sigma=sigma,
        degrees_of_freedom=df,
        targets=count,
        curve_error=math.sqrt(max(0.0, f - 1)),
        f=f,
        p_value=float(stats.f.sf(f, count, df)),
        excess_kurtosis=kurtosis,
        kurtosis_high=kurtosis is not None and kurtosis > max(1.0, 2 * math.sqrt(24 / count)),
    )


def replicate_power(
    replicates: Sequence[int],
    *,
    curve_error: float,
    rng: np.random.Generator,
    delta: float = 1.0,
    alpha: float = 0.05,
    draws: int = 2000,
) -> float:
    """Chance of "as good" by simulation: normal noise of SD 1, law's errors normal with SD `curve_error`."""
    means, variances, counts = _simulated(replicates, curve_error, rng, draws)
    u = means**2 - variances / counts - delta**2 * variances
    half = stats.t.ppf(1 - alpha, u.shape[1] - 1) * u.std(axis=1, ddof=1) / math.sqrt(u.shape[1])
    return float(np.mean(u.mean(axis=1) + half < 0))


def single_run_power(runs: int, *, df: int, curve_error: float, delta: float = 1.0, alpha: float = 0.05) -> float:
    """Chance of "as good" in the single-run test when the law's RMS error is `curve_error` x sigma."""
    if runs < 1 or df < 1:
        raise ValueError(f"needs runs >= 1 and df >= 1, got {runs} and {df}")
    limit = optimize.brentq(lambda f: _cdf(f, runs, df, runs * delta**2) - alpha, 1e-9, 100 * (1 + delta**2))
    return _cdf(float(limit), runs, df, runs * curve_error**2)


def seeds_needed(result: NoiseTest, *, rng: np.random.Generator, alpha: float = 0.05, power: float = 0.8) -> int | None:
    """Replicates per target for a `power` chance of "as good", should the law's error stay as estimated.

    None if 64 would not do: then more seeds cannot rescue the forecast, or more targets are needed.
    """
    for count in (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64):
        if result.test == "replicates":
            targets = [count] * result.targets
            chance = replicate_power(targets, curve_error=result.curve_error, rng=rng, alpha=alpha, draws=400)
        else:
            runs = count * result.targets
            df = max(result.degrees_of_freedom, (count - 1) * result.targets)
            chance = single_run_power(runs, df=df, curve_error=result.curve_error, delta=result.margin, alpha=alpha)
        if chance >= power:
            return count
    return None


def _simulated(
    replicates: Sequence[int], curve_error: float, rng: np.random.Generator, draws: int
) -> tuple[Array, Array, Array]:
    counts = np.asarray(replicates, dtype=np.float64)
    if len(counts) < 2 or np.any(counts < 2):
        raise ValueError("the replicate test needs at least 2 targets with at least 2 replicates each")
    bias = curve_error * rng.standard_normal((draws, len(counts)))
    means = bias + rng.standard_normal((draws, len(counts))) / np.sqrt(counts)
    variances = rng.chisquare(counts - 1, (draws, len(counts))) / (counts - 1)
    return means, variances, counts


def _interval(values: Array, alpha: float) -> tuple[float, float, float]:
    centre = float(np.mean(values))
    half = float(stats.t.ppf(1 - alpha, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values)))
    return centre - half, centre + half, centre


def _label(lower: float, upper: float, margin: float) -> Label:
    if upper < margin:
        return "as good"
    return "worse" if lower > margin else "inconclusive"


def _cdf(f: float, m: int, df: int, noncentrality: float) -> float:
    """P(F <= f) of noncentral F as its Poisson mixture of beta integrals; scipy's ncf is NaN in places."""
    half = noncentrality / 2
    reach = 12 * math.sqrt(half) + 30
    k = np.arange(max(0, math.floor(half - reach)), math.ceil(half + reach))
    weights = np.exp(special.xlogy(k, half) - half - special.gammaln(k + 1))
    return float(np.sum(weights * special.betainc(m / 2 + k, df / 2, m * f / (m * f + df))))


def _curve_error(f: float, m: int, df: int, probability: float) -> float:
    """The b at which P(F <= f) = probability; 0 where even b = 0 gives less."""
    if _cdf(f, m, df, 0.0) <= probability:
        return 0.0
    high = 1.0
    while _cdf(f, m, df, m * high**2) > probability:
        high *= 2
    return float(optimize.brentq(lambda b: _cdf(f, m, df, m * b**2) - probability, 0.0, high, xtol=1e-10))
