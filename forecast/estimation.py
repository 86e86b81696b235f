"""One law on one dataset: the best of many starts, its status, its parameters with intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from forecast.dataset import Dataset
from forecast.engine import Loss, Minima, minimise, project_linear, starts
from forecast.fitted import Estimate, LackOfFit, LawFit
from forecast.intervals import Spread, lack_of_fit, spread
from forecast.laws.function import code_hash, is_address, load_function
from forecast.laws.law import Law
from forecast.noise import Noise
from forecast.profile import profile_parameters

__all__ = ["Fitted", "component_of", "fit_law", "screened"]

Array = npt.NDArray[np.float64]

POLISHED = 12
SCREENED = 500_000  # elements of (starts, designs) that a screening looks at


@dataclass(frozen=True)
class Fitted:
    """One law on one dataset, in memory: the minima found, the best of them, its spread and its tests."""

    law: Law
    minima: Minima
    inner: Array
    residual: Array
    loss: float
    sure: Spread
    lack: LackOfFit | None
    aicc: float
    status: str

    @property
    def usable(self) -> bool:
        """Whether the fit may be predicted from."""
        return self.status in ("converged", "at a bound", "not identified")


def fit_law(law: Law, data: Dataset, *, noise: Noise, loss: Loss, rng: np.random.Generator) -> Fitted:
    """One law on the design means: many starts, the linear parameters projected, the best polished.

    Priors are weighed against the noise about the law without them.
    """
    p, designs = len(law.parameters), len(data.means)
    if designs <= p:
        return _too_few(law, data)
    if law.priors and not law.noise_variance:
        free = fit_law(replace(law, priors={}), data, noise=noise, loss=loss, rng=rng)
        law = replace(law, noise_variance=float(free.sure.sigma[0]) ** 2)
    kept = screened(law, data, loss, rng)
    minima = minimise(law, data.columns, data.means, data.counts, kept, loss=loss)
    best = minima.best
    inner = minima.inner[best]
    residual = data.means - law.value(data.columns, inner[None])[0]
    sure = spread(
        law,
        data.columns,
        data.means,
        data.counts[None, :],
        inner[None],
        loss=loss,
        pure=noise.sigma,
        pure_df=noise.degrees_of_freedom,
    )
    return Fitted(
        law=law,
        minima=minima,
        inner=inner,
        residual=residual,
        loss=loss.reported(float(minima.loss[best])),
        sure=sure,
        lack=lack_of_fit(residual, data.counts, p, noise.sigma, noise.degrees_of_freedom),
        aicc=_aicc(residual, data.counts, p),
        status=_status(minima, best, sure),
    )


def screened(law: Law, data: Dataset, loss: Loss, rng: np.random.Generator) -> Array:
    """The most promising starts: more are drawn for more parameters, and judged on at most so many designs."""
    count = 64 * 2 ** min(max(len(law.parameters) - 3, 0), 4)
    every = max(1, -(-count * len(data.means) // SCREENED))
    columns = {k: v[::every] for k, v in data.columns.items()}
    means, counts = data.means[::every], data.counts[None, ::every]
    first = project_linear(law, columns, means, counts, starts(law, count, rng))
    total = loss.total(means - law.value(columns, first), counts)
    return first[np.argsort(total)[:POLISHED]]


def _too_few(law: Law, data: Dataset) -> Fitted:
    p = len(law.parameters)
    status = f"too few designs: {len(data.means)} for {p} parameters"
    empty = Minima(np.zeros((0, p)), np.zeros(0), np.zeros(0), np.zeros(0, dtype=bool), 0)
    nothing = np.zeros((1, p))
    none = Spread(np.zeros((1, p, p)), np.zeros(1), np.ones(1, int), np.zeros(1), nothing > 0, nothing > 0)
    return Fitted(law, empty, nothing[0], data.means, np.inf, none, None, np.inf, status)


def _status(minima: Minima, best: int, sure: Spread) -> str:
    if not np.isfinite(minima.loss[best]):
        return "not converged: the law has no finite value at any start"
    if not minima.converged[best]:
        moved = "" if minima.moved[best] else ", the start was returned as the optimum"
        return f"not converged: gradient {minima.gradient[best]:.1e} in {len(minima.loss)} starts{moved}"
    if not np.all(sure.identified[0]):
        return "not identified"
    return "converged" if np.all(sure.free[0]) else "at a bound"


def _aicc(residual: Array, counts: Array, p: int) -> float:
    """Corrected Akaike criterion of normal design means; inf where it is undefined."""
    m, k = len(residual), p + 1
    if m - k - 1 <= 0:
        return float("inf")
    variance = max(float(np.mean(counts * residual**2)), 1e-300)
    return float(m * np.log(variance) + 2 * k + 2 * k * (k + 1) / (m - k - 1))


def component_of(f: Fitted, weight: float, data: Dataset, loss: Loss) -> LawFit:
    """The record of a fitted law."""
    sure, law = f.sure, f.law
    return LawFit(
        law=law.name,
        formula=law.formula,
        source=law.source,
        family=law.family,
        predictors=law.predictors,
        link=law.link,
        constants=dict(law.constants),
        parameters=_estimates(f, data, loss),
        covariance=tuple(tuple(float(v) for v in row) for row in sure.covariance[0]),
        sigma=float(sure.sigma[0]),
        degrees_of_freedom=int(sure.df[0]),
        tau=float(sure.tau[0]),
        weight=weight,
        loss=f.loss,
        lack_of_fit=f.lack,
        prior_variance=law.noise_variance if law.priors else 0.0,
        code_hash=code_hash(load_function(law.name)) if is_address(law.name) else None,
        status=f.status,
    )


def _estimates(f: Fitted, data: Dataset, loss: Loss) -> tuple[Estimate, ...]:
    """The parameters with profile intervals; an end that the data do not exclude is null."""
    sure, law = f.sure, f.law
    inner_error = np.sqrt(np.maximum(np.diag(sure.covariance[0]), 0.0))
    guess = np.where(inner_error > 0, np.minimum(inner_error, 5.0 * np.maximum(np.abs(f.inner), 1.0)), 0.1)
    curve = profile_parameters(
        law,
        data.columns,
        data.means,
        data.counts,
        f.inner,
        sigma=float(sure.sigma[0]),
        df=int(sure.df[0]),
        loss=loss,
        spread=guess,
    )
    ends = law.outer(curve.quantiles(np.array([0.025, 0.975])))
    no_low, no_high = curve.open_ends(0.95)
    outer = law.outer(f.inner[None])[0]
    out = []
    for i, p in enumerate(law.parameters):
        error = float(inner_error[i]) * (outer[i] if p.walk == "log" else 1.0)
        status = "free"
        if not sure.free[0, i]:
            status = "at lower bound" if f.inner[i] - law.lower[i] < law.upper[i] - f.inner[i] else "at upper bound"
        elif not sure.identified[0, i] or (no_low[i] and no_high[i]):
            status = "not identified"
        out.append(
            Estimate(
                name=p.name,
                value=float(outer[i]),
                standard_error=error if status == "free" and np.isfinite(error) else None,
                lower=None if no_low[i] else float(ends[0, i]),
                upper=None if no_high[i] else float(ends[1, i]),
                prior_mean=law.priors[p.name][0] if p.name in law.priors else None,
                prior_sd=law.priors[p.name][1] if p.name in law.priors else None,
                status=status,
                lower_bound=p.lower,
                upper_bound=p.upper,
                start_lower=p.start_lower,
                start_upper=p.start_upper,
                walk=p.walk,
            )
        )
    return tuple(out)
