"""What a fit says in words: why this law, and what to beware of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from forecast.dataset import Dataset
from forecast.diagnostics import Line
from forecast.fitted import CLEAR, Candidate, LawFit
from forecast.identification import limits_of, prior_drifts, sloppy_directions
from forecast.noise import Noise
from forecast.selection import Backtest

if TYPE_CHECKING:
    from forecast.estimation import Fitted

__all__ = ["reasons_of", "warnings_of"]


def reasons_of(
    chosen: LawFit,
    rows: Sequence[Candidate],
    tests: Mapping[str, Backtest],
    folds: Sequence[str],
    named: bool,
    noise: Noise,
    line: Line | None,
) -> tuple[str, ...]:
    """Sentences: how the law was chosen, which baselines it is preferred to and by how much, what noise is used."""
    law = chosen.law
    rest = [*prior_drifts(law, chosen.parameters)[0], *_noise_reason(noise), *_line_reason(line)]
    if not tests:
        why = "was named" if named else "has the smallest AICc"
        return (f"{law} {why}; too few designs to hold any out, so no law was tested by extrapolation", *rest)
    mine = tests[law]
    held = f"{len(mine.error)} held-out design means in {len(folds)} parts"
    if named:
        out = [f"{law} was named; tested on {held}"]
    else:
        out = [
            f"{law} was chosen by held-out CRPS {mine.per_fold().mean():.3g} on {held}; "
            "among laws within one standard error of the best, one whose parameters are all free comes first, "
            "then the one with fewest, then AICc"
        ]
    out += [_versus(law, row, rows) for row in rows if row.kind == "baseline" and row.law in tests and row.law != law]
    return (*out, *rest)


def _versus(chosen: str, other: Candidate, rows: Sequence[Candidate]) -> str:
    mine = next(row for row in rows if row.law == chosen)
    behind = other.behind or 0.0
    if behind > CLEAR:
        verdict = f"{chosen} is preferred to {other.law}"
    elif behind < -CLEAR:
        verdict = f"{other.law} is preferred to {chosen}"
    else:
        verdict = f"{chosen} and {other.law} cannot be told apart"
    told = "one held-out part only" if other.behind is None else f"CRPS difference {behind:+.1f} standard errors"
    return f"{verdict}: held-out RMSE {mine.backtest_rmse:.3g} against {other.backtest_rmse:.3g}, {told}"


def _noise_reason(noise: Noise) -> list[str]:
    model = noise.dependence
    tested = "" if model.p_value is None else f" (a constant SD: p = {model.p_value:.2g})"
    if model.name == "mean":
        ends = model.factor(np.array([model.low, model.high])) * (noise.sigma or 1.0)
        sds = f"SD {ends[0]:.3g} at {model.low:.3g}, {ends[1]:.3g} at {model.high:.3g}"
        return [f"seed noise depends on the mean{tested}: {sds}"]
    if model.name == "fresh-items":
        return [f"seed noise as of {model.items} fresh test items a run, sqrt(a(1-a)){tested}"]
    return [f"seed noise is taken as constant in the mean{tested}"] if tested else []


def _line_reason(line: Line | None) -> list[str]:
    if line is None:
        return []
    error = f"HC3 standard error {line.standard_error:.2g}"
    return [f"a straight line in log n rises by {line.per_doubling:.3g} per doubling of n ({error})"]


def warnings_of(
    best: Fitted, components: Sequence[LawFit], rows: Sequence[Candidate], noise: Noise, data: Dataset
) -> list[str]:
    """Sentences on identification, bounds, lack of fit, noise and baselines that win."""
    law = best.law.name
    out: list[str] = []
    if noise.sigma is None:
        out.append("no design has two runs: seed noise is unknown, the scatter about the law stands in for it")
    elif noise.degrees_of_freedom < 5:
        out.append(f"seed noise rests on {noise.degrees_of_freedom} degree(s) of freedom; add replicates")
    spare = len(data.means) - len(best.law.parameters)
    if spare < 3:
        out.append(f"only {spare} more design(s) than parameters of {law}: its intervals are not to be trusted")
    for name, values in data.columns.items():
        if len(np.unique(values)) == 1:
            out.append(f"all runs have {name} = {values[0]:g}: nothing can be said of other values of {name}")
    chosen = next(component for component in components if component.law == law)
    out += limits_of(law, chosen.parameters)
    out += sloppy_directions(best, data)
    out += prior_drifts(law, chosen.parameters)[1]
    lack = chosen.lack_of_fit
    if lack is not None and lack.p_value < 0.05:
        out.append(
            f"{law} fails the lack-of-fit test: F({lack.numerator}, {lack.denominator}) = {lack.f:.2f}, "
            f"p = {lack.p_value:.2g}; its intervals are widened by tau = {chosen.tau:.3g}"
        )
    if data.metric.chance is not None and float(np.max(data.means)) <= data.metric.chance:
        out.append(f"every outcome is at or below chance ({data.metric.chance:g}): there is no signal to extrapolate")
    out += _at_the_ends(data)
    mine = next(row for row in rows if row.law == law)
    if mine.backtest_crps is not None:
        for row in rows:
            if row.kind == "baseline" and row.backtest_crps is not None and row.backtest_crps < mine.backtest_crps:
                out.append(f"the baseline {row.law} predicts held-out designs better than {law}")
    if mine.coverage is not None and mine.coverage < 0.8:
        out.append(f"95 % intervals made without the held-out designs covered only {mine.coverage:.0%} of them")
    return out


def _at_the_ends(data: Dataset) -> list[str]:
    """Outcomes at an end of the metric: there the error is one-sided and no link but identity can take them."""
    out = []
    for end in (data.metric.lower, data.metric.upper):
        if end is not None and (count := int(np.sum(data.plain == end))):
            out.append(
                f"{count} design(s) lie at the metric's end {end:g}: their error is one-sided, and beyond it the law "
                "means nothing; read intervals near it with care"
            )
    return out
