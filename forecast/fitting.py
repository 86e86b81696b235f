"""Fitting: every candidate law on the design means, compared by ordered extrapolation with laws and baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

import numpy as np

from forecast.baselines import BASELINES
from forecast.candidates import candidates_of, laws_of, mapping_of, nulls_of
from forecast.comparison import choose, rows_of, weights_of
from forecast.dataset import Dataset, build
from forecast.engine import Loss
from forecast.errors import FitFailed, ForecastError
from forecast.estimation import Fitted, component_of, fit_law
from forecast.fitted import DesignMean, Fit
from forecast.intervals import METHODS
from forecast.laws.links import LINKS, LinkName
from forecast.mechanism import mechanism_of
from forecast.noise import Noise, seed_noise
from forecast.records import Run
from forecast.remarks import reasons_of, warnings_of
from forecast.selection import Backtest, Fold, backtest_baseline, backtest_law, folds_of
from forecast.sensitivity import sensitivity_of

__all__ = ["Options", "fit"]

KEPT = 0.02  # least weight of a law that is averaged


@dataclass(frozen=True)
class Options:
    """How to fit; see `fit`."""

    law: str = "auto"
    loss: str = "squared"
    delta: float | None = None
    intervals: str = "profile"
    link: str = "identity"
    columns: Mapping[str, str] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    fixed: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.intervals not in METHODS:
            raise ForecastError(f"there is no interval method {self.intervals!r}; the methods are {', '.join(METHODS)}")
        if self.link not in (*LINKS, "auto"):
            raise ForecastError(f"there is no link {self.link!r}; the links are {', '.join(LINKS)} and auto")
        if self.loss not in ("squared", "huber"):
            raise ForecastError(f"there is no loss {self.loss!r}; the losses are squared and huber")


def fit(
    runs: Sequence[Run],
    *,
    metric: str,
    rng: np.random.Generator,
    law: str = "auto",
    loss: str = "squared",
    delta: float | None = None,
    intervals: str = "profile",
    link: str = "identity",
    columns: Mapping[str, str] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    fixed: Mapping[str, float] | None = None,
    seed: int | None = None,
) -> Fit:
    """Fit one law, or choose among the laws by how well they predict designs that they have not seen.

    law: "auto", a law's name, or a formula. loss: "squared" or "huber" (delta on the link's scale; default 1.345 SDs
    of a design mean). intervals: one of forecast.intervals.METHODS.
    link: the scale on which errors add up; "auto" tests every possible one on held-out designs.
    columns: a law's names to the runs' settings, default n = n_samples, g = good_view_fraction.
    bounds: of a formula's parameters. fixed: parameters that are not fitted.
    seed: recorded only; what is random comes from `rng`.
    Raises FitFailed where no law can be fitted, ForecastError for unusable runs.
    """
    options = Options(law, loss, delta, intervals, link, columns or {}, bounds or {}, fixed or {})
    if link != "auto":
        return _fit(runs, metric, options, rng, seed)[0]
    found: dict[str, tuple[Fit, float]] = {}
    refusals: list[str] = []
    for name in get_args(LinkName):
        try:
            found[name] = _fit(runs, metric, replace(options, link=name), rng, seed)
        except ForecastError as error:
            refusals.append(str(error))
    if not found:
        raise FitFailed(refusals[0])
    best = max(found, key=lambda name: found[name][1])
    scores = {name: score for name, (_, score) in found.items() if np.isfinite(score)}
    return found[best][0].model_copy(update={"link_scores": scores})


def _fit(
    runs: Sequence[Run], metric: str, options: Options, rng: np.random.Generator, seed: int | None
) -> tuple[Fit, float]:
    """The fit on one link, and its held-out log density per design on the outcome's own scale."""
    link: LinkName = next(name for name in get_args(LinkName) if name == options.link)
    data = build(runs, metric, mapping_of(runs, options.law, options.columns), link)
    _refuse_hopeless(data)
    noise = seed_noise(data.values.tolist(), data.owner.tolist())
    names = candidates_of(data) if options.law == "auto" else [options.law]
    loss = _loss(options, noise, data)
    laws = laws_of(names, data, options.bounds, options.fixed)
    fitted = [fit_law(law, data, noise=noise, loss=loss, rng=rng) for law in laws]
    nulls = [
        fit_law(law, data, noise=noise, loss=loss, rng=rng) for law in laws_of(nulls_of(data, names), data, {}, {})
    ]
    usable = [f for f in fitted if f.usable]
    if not usable:
        raise FitFailed(
            "; ".join(f"{f.law.name}: {f.status}" for f in fitted) + "; give more designs, or fix parameters"
        )
    folds = folds_of(data.columns, max(len(f.law.parameters) for f in usable))
    tests = _backtests([*usable, *[n for n in nulls if n.usable]], data, folds, noise, loss, rng)
    weights = weights_of(usable, tests)
    best = choose(usable, tests)
    kept = [f for f in usable if f is best or weights[f.law.name] >= KEPT]
    total = sum(weights[f.law.name] for f in kept)
    components = tuple(
        component_of(f, weights[f.law.name] / total if total > 0 else float(f is best), data, loss) for f in kept
    )
    rows = rows_of(fitted, nulls, tests, weights, data)
    score = float("-inf")
    if tests:
        test = tests[best.law.name]
        jacobian = np.log(LINKS[link].slope(data.plain))
        held = np.concatenate([jacobian[fold.test] for fold in folds])
        score = float(np.mean(test.log_density + held))
    return Fit(
        law=best.law.name,
        metric=data.metric,
        columns=dict(data.mapping),
        predictors=best.law.predictors,
        loss=loss.name,
        delta=loss.delta,
        link=link,
        interval_method=options.intervals,
        components=components,
        noise=noise,
        candidates=rows,
        reasons=reasons_of(best.law.name, rows, tests, [f.name for f in folds], options.law != "auto"),
        mechanism=mechanism_of(data, noise, loss, rng) if options.law == "auto" else None,
        warnings=(
            *data.remarks,
            *warnings_of(best, components, rows, noise, data),
            *sensitivity_of(best, data, loss),
        ),
        designs=tuple(
            DesignMean(
                columns={k: float(v[i]) for k, v in data.columns.items()},
                mean=float(data.plain[i]),
                linked=float(data.means[i]),
                runs=int(data.counts[i]),
            )
            for i in range(len(data.means))
        ),
        data_hash=data.data_hash,
        run_ids=data.run_ids,
        design_hashes=data.design_hashes,
        seed=seed,
    ), score


def _refuse_hopeless(data: Dataset) -> None:
    if "n" in data.columns and len(np.unique(data.columns["n"])) < 2:
        only = data.columns["n"][0]
        raise FitFailed(f"all runs have n = {only:g}: nothing can be said of growth; add runs at another n")
    if np.ptp(data.means) == 0:
        raise FitFailed(f"the outcome is constant ({data.means[0]:g}) in all designs; there is nothing to fit")


def _loss(options: Options, noise: Noise, data: Dataset) -> Loss:
    if options.loss == "squared":
        return Loss()
    delta = options.delta
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
