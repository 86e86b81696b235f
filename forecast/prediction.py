"""Predictions from a fit alone: points, quantiles of new runs, joint draws of the curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import special

from forecast.baselines import BASELINES
from forecast.confidence import Confidence
from forecast.dataset import columns_of
from forecast.engine import Loss, minimise, project_linear, starts
from forecast.errors import ForecastError
from forecast.extrapolation import beyond
from forecast.fitted import Fit, LawFit
from forecast.intervals import confidence
from forecast.laws.alignment import NULLS
from forecast.laws.law import Columns, Scale
from forecast.laws.links import LINKS, LinkName
from forecast.laws.registry import build_law
from forecast.records import LEVELS, Prediction, Target

__all__ = ["Outlook", "baseline_predictions", "curve_quantiles", "look_ahead", "predict", "predict_joint"]

Array = npt.NDArray[np.float64]

DRAWS = 4000


@dataclass(frozen=True)
class Outlook:
    """What a fit says of its targets' curves: per law a confidence curve and how the targets move together.

    point: (targets,), averaged over the laws on the link's scale; weights: (laws,).
    correlation: per law, of the curve's error at the targets; tau, kernel: the law's own error and its correlation.
    """

    point: Array
    weights: Array
    curves: tuple[Confidence, ...]
    correlation: tuple[Array, ...]
    tau: Array
    kernel: Array
    link: LinkName

    def joint(self, rng: np.random.Generator, draws: int) -> Array:
        """Draws (draws, targets) of the curves in the outcome's unit, without seed noise."""
        return np.asarray(LINKS[self.link].inverse(self.linked(rng, draws)))

    def linked(self, rng: np.random.Generator, draws: int) -> Array:
        """The same draws on the link's scale: which law, its parameters, its own error."""
        which = rng.choice(len(self.weights), size=draws, p=self.weights)
        out = np.empty((draws, len(self.point)))
        for k, curve in enumerate(self.curves):
            rows = np.flatnonzero(which == k)
            df = float(curve.df[0])
            wide = np.sqrt(df / rng.chisquare(df, size=len(rows)))[:, None]
            out[rows] = curve.at(_correlated(rng, self.correlation[k], len(rows)) * wide)
            if self.tau[k] > 0:
                out[rows] += self.tau[k] * _correlated(rng, self.kernel, len(rows)) * wide
        return out


def look_ahead(fit: Fit, targets: Sequence[Target], rng: np.random.Generator) -> Outlook:
    """The curves of the fit's laws at the targets, by the fit's interval method. Raises ForecastError."""
    columns = _columns(fit, targets)
    seen, means, counts = fit.table()
    weights = np.array([component.weight for component in fit.components])
    point = np.zeros(len(targets))
    curves, correlations = [], []
    for component in fit.components:
        law, inner = component.rebuilt(), component.inner
        value, jacobian = law.value_and_jacobian(columns, inner)
        if not np.all(np.isfinite(value)):
            raise ForecastError(f"{law.name} has no finite value at a target; take it out, or fit another law")
        point += component.weight / weights.sum() * value[0]
        curves.append(_curve(fit, component, columns, seen, means, counts, rng))
        correlations.append(_correlation(jacobian[0], np.array(component.covariance)))
    return Outlook(
        point=point,
        weights=weights / weights.sum(),
        curves=tuple(curves),
        correlation=tuple(correlations),
        tau=np.array([component.tau for component in fit.components]),
        kernel=_kernel(columns, seen),
        link=fit.link,
    )


def predict(
    fit: Fit,
    targets: Sequence[Target],
    *,
    rng: np.random.Generator,
    replicates: int = 1,
    outlook: Outlook | None = None,
) -> list[Prediction]:
    """One prediction per target: the law's point, and quantiles of the mean of `replicates` new runs (default one).

    outlook: what `look_ahead` gave for the same targets, where it is needed more than once.
    """
    columns = _columns(fit, targets)
    ahead = look_ahead(fit, targets, rng) if outlook is None else outlook
    draws = ahead.linked(rng, DRAWS)
    sigma, df = _noise(fit, ahead.point)
    link = LINKS[fit.link]
    quantiles = link.inverse(_smoothed(draws, sigma / np.sqrt(replicates), df))
    point, curve_sd = link.inverse(ahead.point), np.std(link.inverse(draws), axis=0)
    noise_sd = sigma / link.slope(point)
    factors = beyond(fit.table()[0], columns)
    return [
        Prediction(
            target=target.target,
            design=target.design,
            replicates=target.replicates,
            point=float(point[i]),
            quantiles=_within(fit, dict(zip(LEVELS, quantiles[:, i].tolist(), strict=True))),
            curve_sd=float(curve_sd[i]),
            noise_sd=float(noise_sd[i]),
            extrapolation_factor=float(factors[i]),
        )
        for i, target in enumerate(targets)
    ]


def predict_joint(fit: Fit, targets: Sequence[Target], rng: np.random.Generator, draws: int) -> Array:
    """Draws (draws, targets) of the curves' values: law, parameters and the law's own error; no seed noise."""
    return look_ahead(fit, targets, rng).joint(rng, draws)


def curve_quantiles(fit: Fit, targets: Sequence[Target], rng: np.random.Generator) -> dict[str, list[float]]:
    """Quantiles of the curve itself at each target, per level: what no further seed would change."""
    draws = predict_joint(fit, targets, rng, DRAWS)
    return {level: np.quantile(draws, float(level), axis=0).tolist() for level in LEVELS}


def baseline_predictions(fit: Fit, targets: Sequence[Target]) -> dict[str, list[float]]:
    """What each baseline says of each target, from the design means that the fit holds."""
    columns = _columns(fit, targets)
    seen, means, _ = fit.table()
    counts = np.array([design.weight or float(design.runs) for design in fit.designs])
    inverse = LINKS[fit.link].inverse
    out = {name: inverse(baseline(seen, means, counts, columns)).tolist() for name, baseline in BASELINES.items()}
    plain = [design.mean for design in fit.designs]
    scale = Scale(
        low=min(plain),
        high=max(plain),
        chance=fit.metric.chance,
        metric_lower=fit.metric.lower,
        metric_upper=fit.metric.upper,
        ranges={k: (float(v.min()), float(v.max())) for k, v in seen.items()},
    )
    rng = np.random.default_rng(0)
    for name in NULLS:
        if name not in {row.law for row in fit.candidates}:
            continue
        law = replace(build_law(name, scale), link=fit.link)
        first = project_linear(law, seen, means, counts[None, :], starts(law, 32, rng))
        minima = minimise(law, seen, means, counts, first, loss=Loss())
        out[name] = inverse(law.value(columns, minima.inner[minima.best][None])[0]).tolist()
    return out


def _curve(
    fit: Fit, component: LawFit, columns: Columns, seen: Columns, means: Array, counts: Array, rng: np.random.Generator
) -> Confidence:
    return confidence(
        component.rebuilt(),
        seen,
        means,
        counts,
        component.inner[0],
        columns,
        method=fit.interval_method,
        covariance=np.array(component.covariance),
        sigma=component.sigma,
        df=component.degrees_of_freedom,
        loss=Loss(fit.loss, fit.delta),
        rng=rng,
    )


def _correlation(jacobian: Array, covariance: Array) -> Array:
    """Correlation of the curve's error between targets, from the delta method."""
    j = np.where(np.isfinite(jacobian), jacobian, 0.0)
    joint = j @ covariance @ j.T
    sd = np.sqrt(np.maximum(np.diag(joint), 1e-300))
    out = joint / np.outer(sd, sd)
    np.fill_diagonal(out, 1.0)
    return np.asarray(out)


def _kernel(columns: Columns, seen: Columns) -> Array:
    """Correlation of the law's own error between targets: near designs err alike, half a range apart hardly."""
    square = np.zeros((len(next(iter(columns.values()))),) * 2)
    for name, wanted in columns.items():
        values = seen[name]
        if name != "g" and values.min() > 0 and wanted.min() > 0:
            values, wanted = np.log(values), np.log(wanted)
        square += ((wanted[:, None] - wanted[None, :]) / (0.25 * float(np.ptp(values)) or 1.0)) ** 2
    return np.asarray(np.exp(-0.5 * square))


def _correlated(rng: np.random.Generator, correlation: Array, draws: int) -> Array:
    """Standard normal draws (draws, targets) with this correlation."""
    values, vectors = np.linalg.eigh(correlation)
    return np.asarray((rng.standard_normal((draws, len(values))) * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _columns(fit: Fit, targets: Sequence[Target]) -> dict[str, Array]:
    if not targets:
        raise ForecastError("there are no targets to predict; give at least one")
    needed = {name for component in fit.components for name in component.predictors}
    return columns_of([t.design for t in targets], {k: v for k, v in fit.columns.items() if k in needed or k == "g"})


def _noise(fit: Fit, point: Array) -> tuple[Array, int]:
    """SD of one new run at each target on the link's scale, and its degrees of freedom."""
    factor = fit.noise.dependence.factor(point)
    if fit.noise.sigma is not None and fit.noise.degrees_of_freedom:
        return fit.noise.sigma * factor, fit.noise.degrees_of_freedom
    sigma = fit.noise.sigma if fit.noise.sigma is not None else fit.chosen.sigma
    return sigma * factor, fit.chosen.degrees_of_freedom


def _smoothed(draws: Array, sigma: Array, df: int) -> Array:
    """Quantiles (levels, targets) of curve draws plus t-distributed seed noise, by bisection of the mean CDF."""
    levels = np.array([float(level) for level in LEVELS])
    if np.any(sigma <= 0):
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
