"""Fitting: every candidate law on the design means, compared by ordered extrapolation with laws and baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np

from forecast.baselines import BASELINES
from forecast.candidates import candidates_of, laws_of, mapping_of, nulls_of
from forecast.comparison import choose, rows_of, weights_of
from forecast.dataset import Dataset, build
from forecast.diagnostics import diagnostics_of
from forecast.engine import Loss
from forecast.errors import FitFailed, ForecastError
from forecast.estimation import Fitted, component_of, fit_law
from forecast.extrapolation import held_out_of, trends
from forecast.fitted import DesignMean, Fit
from forecast.heteroscedastic import settled_noise
from forecast.intervals import METHODS
from forecast.laws.function import use_function
from forecast.laws.law import Law
from forecast.laws.links import LINKS, LinkName
from forecast.mechanism import mechanism_of
from forecast.noise import Noise
from forecast.noise_model import read_noise
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
    priors: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    weights: str | None = None
    noise: str = "auto"

    def __post_init__(self) -> None:
        if self.intervals not in METHODS:
            raise ForecastError(f"there is no interval method {self.intervals!r}; the methods are {', '.join(METHODS)}")
        if self.link not in (*LINKS, "auto"):
            raise ForecastError(f"there is no link {self.link!r}; the links are {', '.join(LINKS)} and auto")
        if self.loss not in ("squared", "huber"):
            raise ForecastError(f"there is no loss {self.loss!r}; the losses are squared and huber")
        name, _ = read_noise(self.noise)
        if name == "fresh-items" and self.link != "identity":
            raise ForecastError(
                f"fresh-items is a noise of shares on their own scale; use it without --link {self.link}"
            )


def fit(
    runs: Sequence[Run],
    *,
    metric: str,
    rng: np.random.Generator,
    law: str | Callable[..., Any] = "auto",
    loss: str = "squared",
    delta: float | None = None,
    intervals: str = "profile",
    link: str = "identity",
    columns: Mapping[str, str] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    fixed: Mapping[str, float] | None = None,
    priors: Mapping[str, tuple[float, float]] | None = None,
    weights: str | None = None,
    noise: str = "auto",
    seed: int | None = None,
) -> Fit:
    """Fit one law, or choose among the laws by how well they predict designs that they have not seen.

    law: "auto", a law's name, a formula, "module:function", or a Python function (forecast.laws.function says how it
    must look). loss: "squared" or "huber" (delta on the link's scale; default 1.345 SDs of a design mean).
    intervals: one of forecast.intervals.METHODS.
    link: the scale on which errors add up; "auto" tests every possible one on held-out designs.
    columns: a law's names to the runs' settings, default n = n_samples, g = good_view_fraction.
    bounds: of the parameters of a formula or a function. fixed: parameters that are not fitted.
    priors: parameter -> mean and SD of a normal prior. weights: the setting with the weight of each run; a run of
    weight w has the variance sigma^2 / w. noise: "auto", "constant", "mean" or "fresh-items=NUMBER", see
    forecast.noise_model; auto takes "mean" where replicates reject a constant SD (p < 0.05).
    seed: recorded only; what is random comes from `rng`.
    Raises FitFailed where no law can be fitted, ForecastError for unusable runs.
    """
    name = law if isinstance(law, str) else use_function(law)
    options = Options(
        name, loss, delta, intervals, link, columns or {}, bounds or {}, fixed or {}, priors or {}, weights, noise
    )
    if link != "auto":
        return _fit(runs, metric, options, rng, seed)[0]
    found: dict[str, tuple[Fit, float]] = {}
    refusals: list[str] = []
    for scale in get_args(LinkName):
        try:
            found[scale] = _fit(runs, metric, replace(options, link=scale), rng, seed)
        except ForecastError as error:
            refusals.append(str(error))
    if not found:
        raise FitFailed(refusals[0])
    best = max(found, key=lambda scale: found[scale][1])
    scores = {scale: score for scale, (_, score) in found.items() if np.isfinite(score)}
    chosen = found[best][0]
    return chosen.model_copy(update={"link_scores": scores, "reasons": (*chosen.reasons, _link_reason(chosen, scores))})


def _fit(
    runs: Sequence[Run], metric: str, options: Options, rng: np.random.Generator, seed: int | None
) -> tuple[Fit, float]:
    """The fit on one link, and its score on the outcome's own scale: see `_score`."""
    link: LinkName = next(name for name in get_args(LinkName) if name == options.link)
    data = build(runs, metric, mapping_of(runs, options.law, options.columns), link, weights=options.weights)
    _refuse_hopeless(data)
    names = candidates_of(data) if options.law == "auto" else [options.law]
    laws = laws_of(names, data, options.bounds, options.fixed, options.priors)
    data, noise = settled_noise(data, laws, options.noise, runs, rng)
    loss = _loss(options, noise, data)
    fitted = [fit_law(law, data, noise=noise, loss=loss, rng=rng) for law in laws]
    even = data.even
    nulls = [
        fit_law(law, even, noise=even.noise, loss=loss, rng=rng) for law in laws_of(nulls_of(data, names), data, {}, {})
    ]
    usable = [f for f in fitted if f.usable]
    if not usable:
        raise FitFailed(
            "; ".join(f"{f.law.name}: {f.status}" for f in fitted) + "; give more designs, or fix parameters"
        )
    folds = folds_of(data.columns, _most_parameters(laws, data))
    tests = _backtests([n for n in nulls if n.usable], even, folds, even.noise, loss, rng) if folds else {}
    if folds:
        tests |= {name: backtest_baseline(baseline, even, folds) for name, baseline in BASELINES.items()}
        tests |= _backtests(usable, data, folds, noise, loss, rng)
    able = [f for f in usable if f.law.name in tests] if folds else usable
    lost = tuple(_lost(f) for f in usable if f not in able)
    if not able:  # no law has a value at all held-out designs: AICc chooses, as it does without held-out designs
        able, tests, folds = usable, {}, []
    usable = able
    weights = weights_of(usable, tests)
    best = choose(usable, tests)
    kept = [f for f in usable if f is best or weights[f.law.name] >= KEPT]
    total = sum(weights[f.law.name] for f in kept)
    components = tuple(
        component_of(f, weights[f.law.name] / total if total > 0 else float(f is best), data, loss) for f in kept
    )
    rows = rows_of(fitted, nulls, tests, weights, even, best.law.name)
    held_out = held_out_of(tests[best.law.name], folds, data) if tests else ()
    diagnostics = diagnostics_of(best, data)
    return Fit(
        law=best.law.name,
        metric=data.metric,
        columns=dict(data.mapping),
        predictors=best.law.predictors,
        loss=loss.name,
        delta=loss.delta,
        weights=options.weights,
        link=link,
        interval_method=options.intervals,
        components=components,
        noise=noise,
        candidates=rows,
        reasons=reasons_of(
            next(c for c in components if c.law == best.law.name),
            rows,
            tests,
            [f.name for f in folds],
            options.law != "auto",
            noise,
            diagnostics.line,
        ),
        mechanism=mechanism_of(data, noise, loss, rng) if options.law == "auto" else None,
        warnings=(
            *data.remarks,
            *lost,
            *warnings_of(best, components, rows, noise, data),
            *trends(held_out, best.law.name, noise.sigma),
            *diagnostics.sentences(best.law.name),
            *sensitivity_of(best, data, loss),
        ),
        designs=_designs(data),
        held_out=held_out,
        diagnostics=diagnostics,
        data_hash=data.data_hash,
        run_ids=data.run_ids,
        design_hashes=data.design_hashes,
        seed=seed,
    ), _score(best, tests, folds, data)


def _designs(data: Dataset) -> tuple[DesignMean, ...]:
    even = data.even.counts
    return tuple(
        DesignMean(
            columns={k: float(v[i]) for k, v in data.columns.items()},
            mean=float(data.plain[i]),
            linked=float(data.means[i]),
            runs=int(data.runs[i]),
            weight=float(even[i]) if even[i] != data.runs[i] else None,
            worth=float(data.counts[i]) if data.counts[i] != even[i] else None,
        )
        for i in range(len(data.means))
    )


def _score(best: Fitted, tests: Mapping[str, Backtest], folds: Sequence[Fold], data: Dataset) -> float:
    """Held-out log density per design mean on the outcome's own scale: that of the link's scale times its slope.

    Without held-out designs AICc with the same Jacobian stands in, as a density per design; the two are never mixed,
    since whether designs are held out depends on the designs alone.
    """
    link = LINKS[data.link]
    jacobian = np.log(link.slope(np.asarray(link.inverse(data.means))))
    if not tests:
        return float(-best.aicc / 2 / len(data.means) + jacobian.mean())
    held = np.concatenate([jacobian[fold.test] for fold in folds])
    return float(np.mean(tests[best.law.name].log_density + held))


def _link_reason(chosen: Fit, scores: Mapping[str, float]) -> str:
    how = "held-out log density per design" if chosen.held_out else "AICc with its Jacobian; no design was held out"
    others = ", ".join(
        f"{name} {scores[chosen.link] - score:+.3g}" for name, score in scores.items() if name != chosen.link
    )
    against = f" (better than {others})" if others else ": no other link can take these outcomes"
    return f"the link {chosen.link} was chosen by {how}, on the outcome's own scale{against}"


def _most_parameters(laws: Sequence[Law], data: Dataset) -> int:
    """Of the laws that these designs can fit at all: the same for every link, so all are tested on the same parts."""
    return max(len(law.parameters) for law in laws if len(law.parameters) < len(data.means))


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
    out = {}
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
    return {name: test for name, test in out.items() if np.all(np.isfinite(test.error))}


def _lost(f: Fitted) -> str:
    return (
        f"{f.law.name}, fitted without some designs, has no finite value there on this link: it is neither chosen nor "
        "averaged"
    )
