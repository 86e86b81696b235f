"""The table of candidates: laws and baselines side by side, the weights of the laws, and the choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

from forecast.baselines import BASELINES
from forecast.dataset import Dataset
from forecast.estimation import Fitted
from forecast.fitted import Candidate
from forecast.selection import Backtest, stack

__all__ = ["choose", "rows_of", "weights_of"]


def weights_of(usable: Sequence[Fitted], tests: Mapping[str, Backtest]) -> dict[str, float]:
    """The laws' shares in the prediction: stacked by held-out density, else all to the least AICc."""
    names = [f.law.name for f in usable]
    if len(names) == 1 or not tests:
        return {f.law.name: float(f is min(usable, key=lambda u: u.aicc)) for f in usable}
    return dict(zip(names, stack([tests[n] for n in names]).tolist(), strict=True))


def choose(usable: Sequence[Fitted], tests: Mapping[str, Backtest]) -> Fitted:
    """The smallest held-out CRPS; among laws within one standard error of it, the smallest AICc."""
    if not tests:
        return min(usable, key=lambda f: f.aicc)
    best = min(usable, key=lambda f: float(tests[f.law.name].crps.mean()))
    reference = tests[best.law.name].crps

    def tied(f: Fitted) -> bool:
        difference = tests[f.law.name].crps - reference
        return float(difference.mean()) <= float(stats.sem(difference)) if f is not best else True

    return min([f for f in usable if tied(f)], key=lambda f: f.aicc)


def rows_of(
    fitted: Sequence[Fitted],
    nulls: Sequence[Fitted],
    tests: Mapping[str, Backtest],
    weights: Mapping[str, float],
    data: Dataset,
) -> tuple[Candidate, ...]:
    """One row a law and a baseline."""
    rows = [_row(f, "law", tests, weights.get(f.law.name, 0.0)) for f in fitted]
    rows += [_row(f, "baseline", tests, 0.0) for f in nulls]
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
                **_scores(tests.get(name)),
            )
        )
    return tuple(rows)


def _row(f: Fitted, kind: str, tests: Mapping[str, Backtest], weight: float) -> Candidate:
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
