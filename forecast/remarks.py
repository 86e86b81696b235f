"""What a fit says in words: why this law, and what to beware of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from forecast.dataset import Dataset
from forecast.fitted import Candidate, LawFit
from forecast.noise import Noise
from forecast.selection import Backtest

if TYPE_CHECKING:
    from forecast.estimation import Fitted

__all__ = ["reasons_of", "warnings_of"]


def reasons_of(
    chosen: str, rows: Sequence[Candidate], tests: Mapping[str, Backtest], folds: Sequence[str], named: bool
) -> tuple[str, ...]:
    """Sentences: how the law was chosen, and against each baseline which is preferred and by how much."""
    if not tests:
        why = "was named" if named else "has the smallest AICc"
        return (f"{chosen} {why}; too few designs to hold any out, so no law was tested by extrapolation",)
    mine = tests[chosen]
    held = f"{len(mine.error)} held-out design means in {len(folds)} parts"
    if named:
        out = [f"{chosen} was named; tested on {held}"]
    else:
        out = [
            f"{chosen} was chosen by held-out CRPS {mine.per_fold().mean():.3g} on {held}; "
            "among laws within one standard error of the best, one whose parameters are all free comes first, "
            "then the one with fewest, then AICc"
        ]
    for row in rows:
        if row.kind == "baseline" and row.law in tests and row.law != chosen:
            out.append(_versus(chosen, mine, row.law, tests[row.law]))
    return tuple(out)


def _versus(chosen: str, mine: Backtest, other: str, theirs: Backtest) -> str:
    ours, its = (float(np.sqrt(np.mean(test.error**2))) for test in (mine, theirs))
    difference = theirs.per_fold() - mine.per_fold()
    error = float(stats.sem(difference)) if len(difference) > 1 else float("inf")
    ratio = float(difference.mean()) / error if error > 0 else float("inf")
    if ratio > 2:
        verdict = f"{chosen} is preferred to {other}"
    elif ratio < -2:
        verdict = f"{other} is preferred to {chosen}"
    else:
        verdict = f"{chosen} and {other} cannot be told apart"
    return f"{verdict}: held-out RMSE {ours:.3g} against {its:.3g}, CRPS difference {ratio:+.1f} standard errors"


def warnings_of(
    best: Fitted, components: Sequence[LawFit], rows: Sequence[Candidate], noise: Noise, data: Dataset
) -> list[str]:
    """Sentences on identification, bounds, lack of fit, noise and baselines that win."""
    out: list[str] = []
    if noise.sigma is None:
        out.append("no design has two runs: seed noise is unknown, the scatter about the law stands in for it")
    elif noise.degrees_of_freedom < 5:
        out.append(f"seed noise rests on {noise.degrees_of_freedom} degree(s) of freedom; add replicates")
    spare = len(data.means) - len(best.law.parameters)
    if spare < 3:
        out.append(
            f"only {spare} more design(s) than parameters of {best.law.name}: its intervals are not to be trusted"
        )
    chosen = next(component for component in components if component.law == best.law.name)
    for estimate in chosen.parameters:
        if estimate.status == "not identified":
            out.append(f"the data do not identify {estimate.name} of {best.law.name}: other parameters make up for it")
        elif estimate.status.startswith("at "):
            out.append(f"{estimate.name} of {best.law.name} lies {estimate.status} ({estimate.value:.4g})")
    lack = chosen.lack_of_fit
    if lack is not None and lack.p_value < 0.05:
        out.append(
            f"{best.law.name} fails the lack-of-fit test: F({lack.numerator}, {lack.denominator}) = {lack.f:.2f}, "
            f"p = {lack.p_value:.2g}; its intervals are widened by tau = {chosen.tau:.3g}"
        )
    if data.metric.chance is not None and float(np.max(data.means)) <= data.metric.chance:
        out.append(f"every outcome is at or below chance ({data.metric.chance:g}): there is no signal to extrapolate")
    mine = next(row for row in rows if row.law == best.law.name)
    if mine.backtest_crps is not None:
        for row in rows:
            if row.kind == "baseline" and row.backtest_crps is not None and row.backtest_crps < mine.backtest_crps:
                out.append(f"the baseline {row.law} predicts held-out designs better than {best.law.name}")
    if mine.coverage is not None and mine.coverage < 0.8:
        out.append(f"95 % intervals made without the held-out designs covered only {mine.coverage:.0%} of them")
    return out
