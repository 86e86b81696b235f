"""Scores beside the verdict: coverage with its band, PIT, WIS, CRPS, skill, and errors by stratum."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from pydantic import FiniteFloat

from forecast.records import LEVELS, Record, Run
from prereg.outcomes import Outcome
from prereg.statement import Registration, TargetClaim

__all__ = ["Coverage", "PitBin", "Scores", "Skill", "Stratum", "Trend", "item_sampling_error", "score"]

Array = npt.NDArray[np.float64]
SIMULATIONS = 2000
PIT_FROM = 40


class Coverage(Record):
    """One central interval. band: where 95 % of observed shares lie if the registered joint forecast is right."""

    level: FiniteFloat
    observed: FiniteFloat
    band_lower: FiniteFloat
    band_upper: FiniteFloat
    inside: bool


class PitBin(Record):
    """Share of outcomes whose probability under the forecast lies in [lower, upper), with its 95 % band."""

    lower: FiniteFloat
    upper: FiniteFloat
    observed: FiniteFloat
    band_lower: FiniteFloat
    band_upper: FiniteFloat


class Skill(Record):
    """1 - MSE / MSE of a registered baseline on the same outcomes; above 0 is better than it. rmse: the baseline's."""

    baseline: str
    rmse: FiniteFloat
    skill: FiniteFloat | None


class Stratum(Record):
    """Errors (outcome minus point, metric unit) where `name` is `value`."""

    name: str
    value: str
    runs: int
    mean_error: FiniteFloat
    rmse: FiniteFloat


class Trend(Record):
    """How errors change with samples in a stratum: slope per factor of ten, its standard error, and in words."""

    stratum: str
    slope: FiniteFloat
    standard_error: FiniteFloat
    text: str


class Scores(Record):
    """All that carries no verdict. wis, crps: means over outcomes, metric unit."""

    outcomes: int
    wis: FiniteFloat
    crps: FiniteFloat
    mean_error: FiniteFloat
    coverage: tuple[Coverage, ...]
    pit: tuple[PitBin, ...]
    skill: tuple[Skill, ...]
    strata: tuple[Stratum, ...]
    trends: tuple[Trend, ...]


def score(statement: Registration, outcomes: Sequence[Outcome], rng: np.random.Generator) -> Scores:
    """The secondary scores of the finished, not excluded `outcomes` (at least one)."""
    from forecast.scoring import crps_sample, wis

    claims = {claim.target: claim for claim in statement.targets}
    owners, values = _quantities(claims, outcomes)
    rows = [claims[owner] for owner in owners]
    draws = _simulate(statement, rows, rng)
    quantiles = {float(level): np.array([claim.quantile(level) for claim in rows]) for level in LEVELS}
    errors = [(claims[outcome.target], outcome.error) for outcome in outcomes if outcome.error is not None]
    return Scores(
        outcomes=len(values),
        wis=float(np.mean(wis(values, quantiles))),
        crps=float(np.mean(crps_sample(values, draws))),
        mean_error=float(np.mean([error for _, error in errors])),
        coverage=tuple(_coverage(values, draws, quantiles)),
        pit=tuple(_pit(values, draws)) if len(values) >= PIT_FROM else (),
        skill=tuple(_skill(statement, outcomes)),
        strata=tuple(_strata(errors)),
        trends=tuple(_trends(errors)),
    )


def item_sampling_error(runs: Sequence[Run], metric: str) -> float | None:
    """SE of the outcomes' mean from the test set's own sampling, shared by all runs on it; None without hits.

    Items are the sampling units: per item the hit rate averaged over runs. Never part of sigma.
    """
    rates = []
    for run in runs:
        evaluation = run.evaluation(metric)
        if evaluation and evaluation.hits and evaluation.trials:
            rates.append(np.asarray(evaluation.hits, dtype=np.float64) / evaluation.trials)
    if not rates or len({len(rate) for rate in rates}) != 1 or len(rates[0]) < 2:
        return None
    items = np.mean(rates, axis=0)
    return float(np.std(items, ddof=1) / math.sqrt(len(items)))


def _quantities(claims: Mapping[str, TargetClaim], outcomes: Sequence[Outcome]) -> tuple[list[str], Array]:
    """What the registered quantiles are of: single runs, or means of the first k where a target says so."""
    groups: dict[str, list[float]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.value is not None:
            groups[outcome.target].append(outcome.value)
    owners, values = [], []
    for target, group in groups.items():
        k = claims[target].runs_in_quantity
        for start in range(0, len(group) - k + 1, k):
            owners.append(target)
            values.append(float(np.mean(group[start : start + k])))
    if not values:  # too few runs for any mean of k: score what there is
        for target, group in groups.items():
            owners += [target] * len(group)
            values += group
    return owners, np.array(values)


def _simulate(statement: Registration, rows: Sequence[TargetClaim], rng: np.random.Generator) -> Array:
    """Draws (simulations, outcomes) from the registered joint forecast: the law's error is shared within a target."""
    names = list(dict.fromkeys(claim.target for claim in rows))
    claims = {claim.target: claim for claim in rows}
    factor = np.array([claims[name].curve_factor for name in names]).reshape(len(names), -1)
    own = np.array([claims[name].curve_own_sd for name in names])
    curves = rng.standard_normal((SIMULATIONS, factor.shape[1])) @ factor.T
    curves += own * rng.standard_normal(curves.shape)
    index = [names.index(claim.target) for claim in rows]
    noise_sd = np.array([claim.noise_sd / math.sqrt(claim.runs_in_quantity) for claim in rows])
    df = statement.noise.degrees_of_freedom
    # One unknown sigma for all targets: its uncertainty is shared, not drawn anew per outcome.
    scale = np.sqrt(df / rng.chisquare(df, (SIMULATIONS, 1))) if df > 0 else np.ones((SIMULATIONS, 1))
    noise = rng.standard_normal((SIMULATIONS, len(rows))) * noise_sd * scale
    points = np.array([claim.point for claim in rows])
    return np.asarray(points + curves[:, index] + noise)


def _coverage(values: Array, draws: Array, quantiles: Mapping[float, Array]) -> list[Coverage]:
    rows = []
    for low, high in (("0.025", "0.975"), ("0.05", "0.95"), ("0.1", "0.9"), ("0.25", "0.75")):
        lower, upper = quantiles[float(low)], quantiles[float(high)]
        observed = float(np.mean((values >= lower) & (values <= upper)))
        simulated = np.mean((draws >= lower) & (draws <= upper), axis=1)
        band = np.quantile(simulated, [0.025, 0.975])
        rows.append(
            Coverage(
                level=round(float(high) - float(low), 6),
                observed=observed,
                band_lower=float(band[0]),
                band_upper=float(band[1]),
                inside=bool(band[0] <= observed <= band[1]),
            )
        )
    return rows


def _pit(values: Array, draws: Array, bins: int = 10) -> list[PitBin]:
    ordered = np.sort(draws, axis=0)
    edges = np.linspace(0, 1, bins + 1)

    def shares(points: Array) -> Array:
        ranks = np.array([np.searchsorted(ordered[:, i], points[i]) for i in range(len(points))]) / len(ordered)
        return np.asarray(np.histogram(ranks, edges)[0] / len(points))

    observed = shares(values)
    simulated = np.array([shares(draw) for draw in draws[:400]])
    low, high = np.quantile(simulated, [0.025, 0.975], axis=0)
    return [
        PitBin(
            lower=float(edges[i]),
            upper=float(edges[i + 1]),
            observed=float(observed[i]),
            band_lower=float(low[i]),
            band_upper=float(high[i]),
        )
        for i in range(bins)
    ]


def _skill(statement: Registration, outcomes: Sequence[Outcome]) -> list[Skill]:
    finished = [outcome for outcome in outcomes if outcome.error is not None and outcome.value is not None]
    mine = float(np.mean([outcome.error**2 for outcome in finished if outcome.error is not None]))
    rows = []
    for name, points in statement.baselines.items():
        errors = [outcome.value - points[outcome.target] for outcome in finished if outcome.value is not None]
        theirs = float(np.mean(np.square(errors)))
        rows.append(Skill(baseline=name, rmse=math.sqrt(theirs), skill=1 - mine / theirs if theirs > 0 else None))
    return rows


def _strata(errors: Sequence[tuple[TargetClaim, float]]) -> list[Stratum]:
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for claim, error in errors:
        for name in ("objective", "good_view_fraction"):
            if name in claim.design.settings:
                groups[(name, str(claim.design.settings[name]))].append(error)
        groups[("extrapolation", _reach(claim.extrapolation_factor))].append(error)
    return [
        Stratum(
            name=name,
            value=value,
            runs=len(group),
            mean_error=float(np.mean(group)),
            rmse=float(np.sqrt(np.mean(np.square(group)))),
        )
        for (name, value), group in sorted(groups.items())
    ]


def _reach(factor: float) -> str:
    for limit, name in ((1.0, "inside the data"), (2.0, "up to 2x"), (4.0, "up to 4x")):
        if factor <= limit:
            return name
    return "beyond 4x"


def _trends(errors: Sequence[tuple[TargetClaim, float]]) -> list[Trend]:
    """Per good-view fraction with at least 3 sample counts: do errors drift as training gets longer?"""
    groups: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for claim, error in errors:
        count = claim.design.settings.get("n_samples")
        if isinstance(count, (int, float)) and not isinstance(count, bool):
            stratum = f"good_view_fraction {claim.design.settings.get('good_view_fraction')}"
            groups[stratum][math.log10(count)].append(error)
    rows = []
    for stratum, points in sorted(groups.items()):
        if len(points) < 3:
            continue
        x = np.array(list(points))
        y = np.array([np.mean(group) for group in points.values()])
        centred = x - x.mean()
        slope = float(np.sum(centred * y) / np.sum(centred**2))
        residual = y - y.mean() - slope * centred
        error_of_slope = math.sqrt(float(np.sum(residual**2)) / (len(x) - 2) / float(np.sum(centred**2)))
        text = _trend_in_words(stratum, slope, error_of_slope, float(y[np.argmax(x)]))
        rows.append(Trend(stratum=stratum, slope=slope, standard_error=error_of_slope, text=text))
    return rows


def _trend_in_words(stratum: str, slope: float, standard_error: float, last: float) -> str:
    if abs(slope) <= 2 * standard_error:
        return f"{stratum}: no trend of the errors with samples"
    side = "overestimates" if last < 0 else "underestimates"
    return f"{stratum}: the forecast {side} long training, by {abs(slope):.3g} more per factor of ten in samples"
