"""The table of candidates: laws and baselines side by side, the weights of the laws, and the choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

from forecast.baselines import BASELINES
from forecast.dataset import Dataset
from forecast.estimation import Fitted
from forecast.fitted import Candidate
from forecast.laws.effective import AVERAGED_ONLY
from forecast.selection import Backtest

__all__ = ["choose", "rows_of", "standard_errors", "weights_of"]

Array = npt.NDArray[np.float64]

FEW = 5  # held-out parts; a study of n alone has at most four


def weights_of(usable: Sequence[Fitted], tests: Mapping[str, Backtest]) -> dict[str, float]:
    """The laws' shares in the prediction: exp(-z^2/2), z by how many standard errors a law's held-out CRPS is worse.

    Each held-out part counts once: its designs err together. A law that extrapolates as well as the best keeps its
    say, however it fits inside the data. From fewer than FEW parts a standard error is not known, so there the shares
    are the inverse squares of the CRPS. Without held-out parts all goes to the law that is chosen.
    """
    if len(usable) == 1 or not tests:
        chosen = choose(usable, tests)
        return {f.law.name: float(f is chosen) for f in usable}
    if len(tests[usable[0].law.name].per_fold()) < FEW:
        scores = {f.law.name: float(tests[f.law.name].per_fold().mean()) for f in usable}
        floor = max(1e-6 * max(scores.values()), 1e-300)
        raw = {name: (min(scores.values()) + floor) ** 2 / (score + floor) ** 2 for name, score in scores.items()}
    else:
        raw = {name: float(np.exp(-0.5 * behind**2)) for name, behind in _behind(usable, tests).items()}
    total = sum(raw.values())
    return {name: value / total for name, value in raw.items()}


def choose(usable: Sequence[Fitted], tests: Mapping[str, Backtest]) -> Fitted:
    """Among the laws within one standard error of the smallest held-out CRPS, the simplest that the data determine.

    First the laws whose parameters are all free and identified: where one lies at its bound, the intervals are those
    of a smaller law that nobody chose. Then fewer parameters, then the smaller AICc, which alone would take a law of
    seven parameters with two at their bounds. Without held-out parts AICc decides alone. A law that is only averaged
    is never chosen where another is there.
    """
    able = [f for f in usable if f.law.name not in AVERAGED_ONLY] or list(usable)
    if tests:
        behind = _behind(usable, tests)
        nearest = min(behind[f.law.name] for f in able)
        able = [f for f in able if behind[f.law.name] <= max(1.0, nearest)]
        return min(able, key=lambda f: (f.status != "converged", len(f.law.parameters), f.aicc))
    return min(able, key=lambda f: f.aicc)


def _behind(usable: Sequence[Fitted], tests: Mapping[str, Backtest]) -> dict[str, float]:
    """Per law, by how many standard errors its held-out CRPS exceeds the smallest; 0 for that one."""
    scores = {f.law.name: float(tests[f.law.name].per_fold().mean()) for f in usable}
    best = tests[min(scores, key=lambda name: scores[name])]
    return {name: standard_errors(tests[name], best) for name in scores}


def rows_of(
    fitted: Sequence[Fitted],
    nulls: Sequence[Fitted],
    tests: Mapping[str, Backtest],
    weights: Mapping[str, float],
    data: Dataset,
    chosen: str,
) -> tuple[Candidate, ...]:
    """One row a law and a baseline, each against the chosen law."""
    mine = tests.get(chosen)
    rows = [_row(f, "law", tests, weights.get(f.law.name, 0.0), mine) for f in fitted]
    rows += [_row(f, "baseline", tests, 0.0, mine) for f in nulls]
    for name, baseline in BASELINES.items():
        inside = data.means - baseline(data.columns, data.means, data.counts, data.columns)
        levels = len(np.unique(data.columns["g"])) if "g" in data.columns and name != "nearest-design" else 1
        rows.append(
            Candidate(
                law=name,
                kind="baseline",
                parameters=levels,
                loss=float(np.sum(data.counts * inside**2)),
                rmse=float(np.sqrt(np.mean(inside**2))),
                status="no law",
                **_scores(tests.get(name), mine),
            )
        )
    return tuple(rows)


def _row(f: Fitted, kind: str, tests: Mapping[str, Backtest], weight: float, mine: Backtest | None) -> Candidate:
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
        **_scores(tests.get(f.law.name), mine),
    )


def _scores(test: Backtest | None, mine: Backtest | None) -> dict[str, float | int | None]:
    if test is None:
        return {}
    behind = None if mine is None or test is mine else standard_errors(test, mine)
    return {
        "backtest_rmse": float(np.sqrt(np.mean(test.error**2))),
        "backtest_crps": float(np.mean(test.per_fold())),
        "behind": None if behind is None or not np.isfinite(behind) else behind,
        "coverage": float(np.mean(test.inside)),
        "held_out": len(test.error),
    }


def standard_errors(test: Backtest, reference: Backtest) -> float:
    """By how many standard errors, between parts, the CRPS of `test` exceeds that of `reference`; 0 if they agree.

    The larger of two: of the differences, and of the logarithms of the ratios. A law that fails badly in one part has
    by that very part so large a standard error of the differences that they would excuse it; the ratios do not.
    """
    mine, its = test.per_fold(), reference.per_fold()
    if mine.mean() < its.mean():
        return -standard_errors(reference, test)
    floor = 1e-12 * max(float(mine.max()), 1e-300)
    ratio = np.log(np.maximum(mine, floor)) - np.log(np.maximum(its, floor))
    return max(_over_its_error(mine - its), _over_its_error(ratio))


def _over_its_error(difference: Array) -> float:
    mean = float(difference.mean())
    if mean == 0:
        return 0.0
    error = float(stats.sem(difference)) if len(difference) > 1 else 0.0
    return mean / error if error > 0 else float(np.copysign(np.inf, mean))
