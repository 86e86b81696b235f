"""Predictions from a fit alone: points, quantiles of one new run, joint draws of the curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy import special

from forecast.baselines import BASELINES
from forecast.dataset import columns_of
from forecast.engine import Loss, minimise, project_linear, starts
from forecast.errors import ForecastError
from forecast.fitted import Fit
from forecast.laws.alignment import NULLS
from forecast.laws.law import Columns, Scale
from forecast.laws.registry import build_law
from forecast.records import LEVELS, Prediction, Target

__all__ = ["baseline_predictions", "curve_quantiles", "predict", "predict_joint"]

Array = npt.NDArray[np.float64]


def predict(fit: Fit, targets: Sequence[Target], *, rng: np.random.Generator, replicates: int = 1) -> list[Prediction]:
    """One prediction per target: the law's point, and quantiles of the mean of `replicates` new runs (default one)."""
    columns = _columns(fit, targets)
    points = np.zeros(len(targets))
    for component in fit.components:
        points += component.weight * component.rebuilt().value(columns, component.inner)[0]
    draws = predict_joint(fit, targets, rng, 4000)
    sigma, df = _noise(fit)
    quantiles = _smoothed(draws, sigma / np.sqrt(replicates), df)
    factors = _extrapolation(fit, columns)
    return [
        Prediction(
            target=target.target,
            design=target.design,
            replicates=target.replicates,
            point=float(points[i]),
            quantiles=_within(fit, dict(zip(LEVELS, quantiles[:, i].tolist(), strict=True))),
            curve_sd=float(np.std(draws[:, i])),
            noise_sd=float(sigma),
            extrapolation_factor=float(factors[i]),
        )
        for i, target in enumerate(targets)
    ]


def predict_joint(fit: Fit, targets: Sequence[Target], rng: np.random.Generator, draws: int) -> Array:
    """Draws (draws, targets) of the curves' values: law, parameters and the law's own error; no seed noise."""
    columns = _columns(fit, targets)
    weights = np.array([component.weight for component in fit.components])
    which = rng.choice(len(weights), size=draws, p=weights / weights.sum())
    out = np.empty((draws, len(targets)))
    for k, component in enumerate(fit.components):
        rows = np.flatnonzero(which == k)
        if not len(rows):
            continue
        stored = np.array(component.draws)
        inner = stored[rng.integers(len(stored), size=len(rows))]
        value = component.rebuilt().value(columns, inner)
        out[rows] = value + component.tau * rng.standard_normal((len(rows), len(targets)))
    if not np.all(np.isfinite(out)):
        raise ForecastError("the law has no finite value at a target; take it out, or fit another law")
    return out


def curve_quantiles(fit: Fit, targets: Sequence[Target], rng: np.random.Generator) -> dict[str, list[float]]:
    """Quantiles of the curve itself at each target, per level."""
    draws = predict_joint(fit, targets, rng, 4000)
    return {level: np.quantile(draws, float(level), axis=0).tolist() for level in LEVELS}


def baseline_predictions(fit: Fit, targets: Sequence[Target]) -> dict[str, list[float]]:
    """What each baseline says of each target, from the design means that the fit holds."""
    columns = _columns(fit, targets)
    seen, means, counts = fit.table()
    out = {name: baseline(seen, means, counts, columns).tolist() for name, baseline in BASELINES.items()}
    scale = Scale(
        low=float(means.min()),
        high=float(means.max()),
        chance=fit.metric.chance,
        metric_lower=fit.metric.lower,
        metric_upper=fit.metric.upper,
        ranges={k: (float(v.min()), float(v.max())) for k, v in seen.items()},
    )
    rng = np.random.default_rng(0)
    for name in NULLS:
        if "n" not in seen or (name != "no-g" and "g" not in seen):
            continue
        law = build_law(name, scale)
        first = project_linear(law, seen, means, counts[None, :], starts(law, 32, rng))
        minima = minimise(law, seen, means, counts, first, loss=Loss())
        out[name] = law.value(columns, minima.inner[minima.best][None])[0].tolist()
    return out


def _columns(fit: Fit, targets: Sequence[Target]) -> dict[str, Array]:
    if not targets:
        raise ForecastError("there are no targets to predict; give at least one")
    needed = {name for component in fit.components for name in component.predictors}
    return columns_of([t.design for t in targets], {k: v for k, v in fit.columns.items() if k in needed or k == "g"})


def _noise(fit: Fit) -> tuple[float, int]:
    if fit.noise.sigma is not None:
        return fit.noise.sigma, fit.noise.degrees_of_freedom
    return fit.chosen.sigma, fit.chosen.degrees_of_freedom


def _smoothed(draws: Array, sigma: float, df: int) -> Array:
    """Quantiles (levels, targets) of curve draws plus t-distributed seed noise, by bisection of the mean CDF."""
    levels = np.array([float(level) for level in LEVELS])
    if sigma <= 0:
        return np.asarray(np.quantile(draws, levels, axis=0))
    reach = abs(float(special.stdtrit(df, levels[0] / 4))) * sigma
    low = np.tile(draws.min(axis=0) - reach, (len(levels), 1))
    high = np.tile(draws.max(axis=0) + reach, (len(levels), 1))
    thin = np.quantile(draws, (np.arange(400) + 0.5) / 400, axis=0)
    for _ in range(32):
        middle = (low + high) / 2
        share = np.mean(special.stdtr(df, (middle[:, None, :] - thin[None]) / sigma), axis=1)
        low, high = np.where(share < levels[:, None], middle, low), np.where(share < levels[:, None], high, middle)
    return np.asarray((low + high) / 2)


def _within(fit: Fit, quantiles: Mapping[str, float]) -> dict[str, float]:
    """The quantiles, held inside what the metric can take."""
    low = -np.inf if fit.metric.lower is None else fit.metric.lower
    high = np.inf if fit.metric.upper is None else fit.metric.upper
    return {level: float(np.clip(value, low, high)) for level, value in quantiles.items()}


def _extrapolation(fit: Fit, columns: Columns) -> Array:
    """The largest ratio by which a positive predictor leaves its range in the data; 1 inside."""
    seen, _, _ = fit.table()
    factor = np.ones(len(next(iter(columns.values()))))
    for name, wanted in columns.items():
        if name == "g" or seen[name].min() <= 0:
            continue
        factor = np.maximum(factor, np.maximum(wanted / seen[name].max(), seen[name].min() / wanted))
    return factor
