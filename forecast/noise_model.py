"""Does seed noise depend on the mean? A test on replicates, and the models in which it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, FiniteFloat

from forecast.errors import ForecastError
from forecast.records import Record, Run

__all__ = ["NoiseModel", "constancy_of", "fresh_items", "mean_dependent", "read_noise"]

Array = npt.NDArray[np.float64]
Name = Literal["constant", "mean", "fresh-items"]

DRAWS = 1999
LEAST_DESIGNS = 4  # replicated designs without which a slope of the SD is not tested


class NoiseModel(Record):
    """How the SD of one run depends on the mean of its design: sigma times `factor`.

    constant: 1. mean: exp(slope (x - centre)), x = log(mean), or the mean where means are not all positive; beyond
    the means of the data, low to high, the SD stays what it is at their ends. fresh-items: sqrt(a(1-a)) over that at
    the centre, for runs that were each scored on `items` new test items.
    p_value: of a constant SD against the slope, from replicates; null where there are too few.
    """

    name: Name = "constant"
    slope: FiniteFloat = 0.0
    centre: FiniteFloat = 0.0
    low: FiniteFloat = 0.0
    high: FiniteFloat = 0.0
    logarithm: bool = False
    items: int | None = Field(default=None, gt=0)
    p_value: FiniteFloat | None = None

    def factor(self, means: Array) -> Array:
        """SD of one run at these means, over sigma."""
        if self.name == "constant":
            return np.ones(np.shape(means))
        inside = np.clip(means, self.low, self.high)
        if self.name == "fresh-items":
            return np.asarray(np.sqrt(inside * (1 - inside) / (self.centre * (1 - self.centre))))
        return np.asarray(np.exp(self.slope * (_scale(inside, self.logarithm) - self.centre)))


def read_noise(text: str) -> tuple[Literal["auto", "constant", "mean", "fresh-items"], int | None]:
    """ "mean" or "fresh-items=500" as a name and a number of items. Raises ForecastError."""
    name, _, items = text.partition("=")
    if name == "fresh-items" and items.isdigit() and int(items) > 0:
        return "fresh-items", int(items)
    for known in ("auto", "constant", "mean"):
        if text == known:
            return known, None
    raise ForecastError(f"there is no noise model {text!r}; give auto, constant, mean, or fresh-items=NUMBER")


def constancy_of(
    values: Array, owner: npt.NDArray[np.int64], weights: Array, means: Array, rng: np.random.Generator
) -> float | None:
    """p value of a constant SD against one that changes with the mean; None with too few replicated designs.

    The likelihood ratio of the sums of squares within designs, which do not depend on the design means. Its law under
    a constant SD holds no unknown, so it is simulated, not approximated: chi-square squares for every design.
    """
    squares, df, x = _within(values, owner, weights, means)
    if len(df) < LEAST_DESIGNS or np.ptp(x) == 0 or not squares.sum() > 0:
        return None
    seen = _ratio(squares[None], df, x)[0]
    drawn = _ratio(rng.chisquare(df, size=(DRAWS, len(df))), df, x)
    return float((1 + np.sum(drawn >= seen * (1 - 1e-9))) / (DRAWS + 1))


def mean_dependent(
    values: Array, owner: npt.NDArray[np.int64], weights: Array, means: Array, p_value: float | None
) -> NoiseModel:
    """The SD as an exponential in x, x = log(mean) or the mean: maximum likelihood from the replicates.

    Raises ForecastError with too few replicated designs.
    """
    squares, df, x = _within(values, owner, weights, means)
    if len(df) < LEAST_DESIGNS or np.ptp(x) == 0 or not squares.sum() > 0:
        raise ForecastError(
            f"a noise that depends on the mean needs {LEAST_DESIGNS} designs with two runs or more, there are "
            f"{len(df)}; add replicates, or use the noise model constant"
        )
    logarithm = bool(np.all(means > 0))
    return NoiseModel(
        name="mean",
        slope=float(_slope(squares[None], df, x)[0]),
        centre=float(np.average(x, weights=df)),
        low=float(means.min()),
        high=float(means.max()),
        logarithm=logarithm,
        p_value=p_value,
    )


def fresh_items(items: int, means: Array, runs: Sequence[Run], metric: str) -> NoiseModel:
    """The binomial SD of a share of `items` test items that every run draws anew. Raises ForecastError elsewhere."""
    if np.any(means <= 0) or np.any(means >= 1):
        raise ForecastError(f"fresh-items is for shares strictly between 0 and 1, {metric} has design means outside")
    known = {e.metric.items_hash for run in runs if (e := run.evaluation(metric)) is not None and e.metric.items_hash}
    if known:
        raise ForecastError(
            f"{metric} was scored on fixed test items ({next(iter(known))[:8]}): their error is the same in every run "
            "and is no noise between seeds; use the noise model mean"
        )
    return NoiseModel(
        name="fresh-items",
        centre=float(np.mean(means)),
        low=float(means.min()),
        high=float(means.max()),
        items=items,
    )


def _scale(means: Array, logarithm: bool) -> Array:
    return np.log(means) if logarithm else means


def _within(values: Array, owner: npt.NDArray[np.int64], weights: Array, means: Array) -> tuple[Array, Array, Array]:
    """Sums of squares within designs, their degrees of freedom, and x: of designs with two runs or more."""
    size = len(means)
    count = np.bincount(owner, minlength=size)
    own = np.bincount(owner, weights=weights * values, minlength=size) / np.bincount(
        owner, weights=weights, minlength=size
    )
    squares = np.bincount(owner, weights=weights * (values - own[owner]) ** 2, minlength=size)
    several = count > 1
    x = _scale(means, bool(np.all(means > 0)))
    return squares[several].astype(np.float64), (count[several] - 1).astype(np.float64), x[several]


def _slope(squares: Array, df: Array, x: Array) -> Array:
    """Per row of squares the slope of log SD in x: the root of a decreasing function, by bisection inside +-40 / range.

    With sigma profiled out the log likelihood is -(df/2) log(sum S_i exp(-2 slope x_i)) - slope sum df_i x_i, concave.
    """
    centred = x - np.average(x, weights=df)
    unit = float(np.ptp(centred))
    low, high = np.full(len(squares), -40.0 / unit), np.full(len(squares), 40.0 / unit)
    for _ in range(60):
        middle = (low + high) / 2
        share = squares * np.exp(-2 * middle[:, None] * centred)
        rises = share @ centred > 0  # the score, up to the positive factor df / sum(share)
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    return np.asarray((low + high) / 2)


def _ratio(squares: Array, df: Array, x: Array) -> Array:
    """Twice the gain in log likelihood by the slope, per row."""
    centred = x - np.average(x, weights=df)
    slope = _slope(squares, df, x)
    tilted = np.sum(squares * np.exp(-2 * slope[:, None] * centred), axis=1)
    return np.asarray(df.sum() * (np.log(squares.sum(axis=1)) - np.log(tilted)))
