"""A curve of confidence: for each quantity, values and the t statistic at which the data reject them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

__all__ = ["Confidence", "ordered"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Confidence:
    """Per quantity (row) values and t statistics, both rising along the row; df (rows,) of the t distribution.

    Every interval method ends in one of these: the delta method's is a straight line, a profile bends,
    a bootstrap's runs through the quantiles of its draws.
    """

    value: Array
    statistic: Array
    df: Array

    def quantiles(self, levels: Array) -> Array:
        """Quantiles (levels, quantities) of the confidence distribution; beyond a curve's end, its last value."""
        return self.at(special.stdtrit(self.df, np.asarray(levels)[:, None]))

    def at(self, statistics: Array) -> Array:
        """Values (draws, quantities) at t statistics of the same shape."""
        out = np.empty(statistics.shape)
        for i, (t, v) in enumerate(zip(self.statistic, self.value, strict=True)):
            out[:, i] = np.interp(statistics[:, i], t, v)
        return out

    def open_ends(self, level: float) -> tuple[Mask, Mask]:
        """Per quantity, whether the data exclude no low value, and no high value, at this two-sided level."""
        reach = special.stdtrit(self.df, 0.5 + level / 2)
        return self.statistic[:, 0] > -reach, self.statistic[:, -1] < reach


def ordered(best: Array, value: Array, statistic: Array, df: Array) -> Confidence:
    """Values and unsigned statistics (quantities, points) as curves that rise through 0 at `best`."""
    signed = np.where(value >= best[:, None], statistic, -statistic)
    value = np.column_stack([value, best])
    signed = np.column_stack([signed, np.zeros(len(best))])
    order = np.argsort(value, axis=1)
    value = np.take_along_axis(value, order, axis=1)
    signed = np.take_along_axis(signed, order, axis=1)
    above = value >= best[:, None]
    # where a constrained fit stopped in a local minimum its statistic is too large: the true one is the lowest beyond
    up = np.minimum.accumulate(np.where(above, signed, np.inf)[:, ::-1], axis=1)[:, ::-1]
    down = np.maximum.accumulate(np.where(above, -np.inf, signed), axis=1)
    return Confidence(value, np.where(above, up, down), df)
