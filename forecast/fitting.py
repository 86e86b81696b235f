"""Fitting: every candidate law on the design means, compared by ordered extrapolation with laws and baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from forecast.baselines import BASELINES
from forecast.dataset import ALIASES, Dataset, build
from forecast.engine import Loss, Minima, minimise, project_linear, starts
from forecast.errors import FitFailed, ForecastError
from forecast.fitted import Candidate, DesignMean, Estimate, Fit, LackOfFit, LawFit
from forecast.intervals import METHODS, Spread, lack_of_fit, spread
from forecast.laws.alignment import ALIGNMENT, NULLS
from forecast.laws.law import Law
from forecast.laws.registry import build_law
from forecast.noise import Noise, seed_noise
from forecast.profile import profile_parameters
from forecast.records import Run
from forecast.remarks import reasons_of, warnings_of
from forecast.selection import Backtest, Fold, backtest_baseline, backtest_law, folds_of, stack

__all__ = ["Fitted", "fit", "fit_law"]

Array = npt.NDArray[np.float64]

START_COUNT = 64
POLISHED = 12


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


def fit(
    runs: Sequence[Run],
    *,
    metric: str,
    rng: np.random.Generator,
    law: str = "auto",
    loss: str = "squared",
    delta: float | None = None,
    intervals: str = "profile",
    columns: Mapping[str, str] | None = None,
    seed: int | None = None,
) -> Fit:
    """Fit one law, or choose among the laws by how well they predict designs that they have not seen.

    law: "auto" or a law's name. loss: "squared" or "huber" (delta in the metric's unit; default 1.345 seed SDs).
    intervals: one of forecast.intervals.METHODS.
    columns: the law's names to the runs' settings, default n = n_samples, g = good_view_fraction.
    seed: recorded only; what is random comes from `rng`.
    Raises FitFailed where no law can be fitted, ForecastError for unusable runs.
    """
    if intervals not in METHODS:
        raise ForecastError(f"there is no interval method {intervals!r}; the methods are {', '.join(METHODS)}")
    data = build(runs, metric, _mapping(runs, columns))
    _refuse_hopeless(data)
    noise = seed_noise(data.values.tolist(), data.owner.tolist())
    names = _candidates(data) if law == "auto" else [law]
    chosen_loss = _loss(loss, delta, noise, data)
    fitted = [fit_law(build_law(name, data.scale), data, noise=noise, loss=chosen_loss, rng=rng) for name in names]
    nulls = [
        fit_law(build_law(name, data.scale), data, noise=noise, loss=chosen_loss, rng=rng) for name in _nulls(data)
    ]
    nulls = [null for null in nulls if null.law.name not in names]
    usable = [f for f in fitted if f.usable]
    if not usable:
        raise FitFailed("; ".join(f"{f.law.name}: {f.status}" for f in fitted))
    folds = folds_of(data.columns, max(len(f.law.parameters) for f in usable))
    tests = _backtests([*usable, *[n for n in nulls if n.usable]], data, folds, noise, chosen_loss, rng)
    weights = _weights(usable, tests)
    best = _choose(usable, tests)
    rows = _rows(fitted, nulls, tests, weights, data)
    kept = [f for f in usable if f is best or weights[f.law.name] >= 0.02]
    total = sum(weights[f.law.name] for f in kept) or 1.0
    components = tuple(
        _component(
            f, weights[f.law.name] / total if weights[best.law.name] > 0 or len(kept) > 1 else 1.0, data, chosen_loss
        )
        for f in kept
    )
    return Fit(
        law=best.law.name,
        metric=data.metric,
        columns=dict(data.mapping),
        predictors=best.law.predictors,
        loss=chosen_loss.name,
        delta=chosen_loss.delta,
        interval_method=intervals,
        components=components,
        noise=noise,
        candidates=rows,
        reasons=reasons_of(best.law.name, rows, tests, [f.name for f in folds], law != "auto"),
        warnings=(*data.remarks, *warnings_of(best, components, rows, noise, data)),
        designs=tuple(
            DesignMean(
                columns={k: float(v[i]) for k, v in data.columns.items()}, mean=float(m), runs=int(data.counts[i])
            )
            for i, m in enumerate(data.means)
        ),
        data_hash=data.data_hash,
        run_ids=data.run_ids,
        design_hashes=data.design_hashes,
        seed=seed,
    )


def fit_law(law: Law, data: Dataset, *, noise: Noise, loss: Loss, rng: np.random.Generator) -> Fitted:
    """One law on the design means: many starts, the linear parameters projected, the best polished."""
    p, designs = len(law.parameters), len(data.means)
    counts = data.counts[None, :]
    if designs <= p:
        status = f"too few designs: {designs} for {p} parameters"
        empty = Minima(np.zeros((0, p)), np.zeros(0), np.zeros(0), np.zeros(0, dtype=bool), 0)
        nothing = np.zeros((1, p))
        none = Spread(np.zeros((1, p, p)), np.zeros(1), np.ones(1, int), np.zeros(1), nothing > 0, nothing > 0)
        return Fitted(law, empty, nothing[0], data.means, np.inf, none, None, np.inf, status)
    first = project_linear(law, data.columns, data.means, counts, starts(law, START_COUNT, rng))
    screened = loss.total(data.means - law.value(data.columns, first), counts)
    kept = first[np.argsort(screened)[:POLISHED]]
    minima = minimise(law, data.columns, data.means, counts, kept, loss=loss)
    best = minima.best
    inner = minima.inner[best]
    residual = data.means - law.value(data.columns, inner[None])[0]
    sure = spread(
        law,
        data.columns,
        data.means,
        counts,
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
        loss=float(minima.loss[best]),
        sure=sure,
        lack=lack_of_fit(residual, data.counts, p, noise.sigma, noise.degrees_of_freedom),
        aicc=_aicc(residual, data.counts, p),
        status=_status(minima, best, sure),
    )


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


def _mapping(runs: Sequence[Run], columns: Mapping[str, str] | None) -> dict[str, str]:
    mapping = {**ALIASES, **(columns or {})}
    present = {name for run in runs for name, value in run.design.settings.items() if value is not None}
    if "g" in mapping and "g" not in (columns or {}) and mapping["g"] not in present:
        del mapping["g"]
    return mapping


def _refuse_hopeless(data: Dataset) -> None:
    if "n" in data.columns and len(np.unique(data.columns["n"])) < 2:
        only = data.columns["n"][0]
        raise FitFailed(f"all runs have n = {only:g}: nothing can be said of growth; add runs at another n")
    if np.ptp(data.means) == 0:
        raise FitFailed(f"the outcome is constant ({data.means[0]:g}) in all designs; there is nothing to fit")


def _candidates(data: Dataset) -> list[str]:
    if "g" not in data.columns or len(np.unique(data.columns["g"])) < 2:
        return ["no-g"]
    return list(ALIGNMENT)


def _nulls(data: Dataset) -> list[str]:
    return [name for name in NULLS if name == "no-g" or "g" in data.columns]


def _loss(name: str, delta: float | None, noise: Noise, data: Dataset) -> Loss:
    if name == "squared":
        return Loss()
    if name != "huber":
        raise ForecastError(f"there is no loss {name!r}; the losses are squared and huber")
    if delta is None:
        if not noise.sigma:
            raise ForecastError("the Huber loss needs delta: there is no seed noise to scale it to; give --delta")
        delta = 1.345 * noise.sigma / float(np.sqrt(np.mean(data.counts)))
    if not delta > 0:
        raise ForecastError(f"delta must be > 0, got {delta}")
    return Loss("huber", float(delta))


def _backtests(
    fitted: Sequence[Fitted], data: Dataset, folds: Sequence[Fold], noise: Noise, loss: Loss, rng: np.random.Generator
) -> dict[str, Backtest]:
    if not folds:
        return {}
    out = {name: backtest_baseline(baseline, data, folds) for name, baseline in BASELINES.items()}
    for f in fitted:
        order = np.argsort(f.minima.loss)[:2]
        out[f.law.name] = backtest_law(
            f.law,
            data,
            folds,
            f.minima.inner[order],
            loss=loss,
            pure=noise.sigma,
            pure_df=noise.degrees_of_freedom,
            rng=rng,
        )
    return out


def _weights(usable: Sequence[Fitted], tests: Mapping[str, Backtest]) -> dict[str, float]:
    names = [f.law.name for f in usable]
    if len(names) == 1 or not tests:
        return {f.law.name: float(f is min(usable, key=lambda u: u.aicc)) for f in usable}
    return dict(zip(names, stack([tests[n] for n in names]).tolist(), strict=True))


def _choose(usable: Sequence[Fitted], tests: Mapping[str, Backtest]) -> Fitted:
    """The smallest held-out CRPS; among laws within one standard error of it, the smallest AICc."""
    if not tests:
        return min(usable, key=lambda f: f.aicc)
    best = min(usable, key=lambda f: float(tests[f.law.name].crps.mean()))
    reference = tests[best.law.name].crps

    def tied(f: Fitted) -> bool:
        difference = tests[f.law.name].crps - reference
        return float(difference.mean()) <= float(stats.sem(difference)) if f is not best else True

    return min([f for f in usable if tied(f)], key=lambda f: f.aicc)


def _rows(
    fitted: Sequence[Fitted],
    nulls: Sequence[Fitted],
    tests: Mapping[str, Backtest],
    weights: Mapping[str, float],
    data: Dataset,
) -> tuple[Candidate, ...]:
    rows = [_row(f, "law", tests, weights.get(f.law.name, 0.0), data) for f in fitted]
    rows += [_row(f, "baseline", tests, 0.0, data) for f in nulls]
    for name, baseline in BASELINES.items():
        inside = data.means - baseline(data.columns, data.means, data.counts, data.columns)
        rows.append(
            Candidate(
                law=name,
                kind="baseline",
                parameters=len(np.unique(data.columns["g"])) if "g" in data.columns and name != "nearest-design" else 1,
                loss=float(np.sum(data.counts * inside**2)),
                rmse=float(np.sqrt(np.mean(inside**2))),
                status="no law",
                **_scores(tests.get(name)),
            )
        )
    return tuple(rows)


def _row(f: Fitted, kind: str, tests: Mapping[str, Backtest], weight: float, data: Dataset) -> Candidate:
    known = np.isfinite(f.loss)
    return Candidate(
        law=f.law.name,
        kind="law" if kind == "law" else "baseline",
        parameters=len(f.law.parameters),
        loss=f.loss if known else None,
        rmse=float(np.sqrt(np.mean(f.residual**2))) if known else None,
        aicc=f.aicc if np.isfinite(f.aicc) else None,
        weight=weight,
        status=f.status,
        **_scores(tests.get(f.law.name)),
    )


def _scores(test: Backtest | None) -> dict[str, float | int | None]:
    if test is None:
        return {}
    return {
        "backtest_rmse": float(np.sqrt(np.mean(test.error**2))),
        "backtest_crps": float(np.mean(test.crps)),
        "coverage": float(np.mean(test.inside)),
        "held_out": len(test.error),
    }


def _component(f: Fitted, weight: float, data: Dataset, loss: Loss) -> LawFit:
    sure, law = f.sure, f.law
    covariance = sure.covariance[0]
    return LawFit(
        law=law.name,
        formula=law.formula,
        source=law.source,
        family=law.family,
        predictors=law.predictors,
        constants=dict(law.constants),
        parameters=_estimates(f, data, loss),
        covariance=tuple(tuple(float(v) for v in row) for row in covariance),
        sigma=float(sure.sigma[0]),
        degrees_of_freedom=int(sure.df[0]),
        tau=float(sure.tau[0]),
        weight=weight,
        loss=f.loss,
        lack_of_fit=f.lack,
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
                status=status,
                lower_bound=p.lower,
                upper_bound=p.upper,
                start_lower=p.start_lower,
                start_upper=p.start_upper,
                walk=p.walk,
            )
        )
    return tuple(out)
