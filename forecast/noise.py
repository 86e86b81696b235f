"""Seed noise: how far runs of one design lie apart, pooled over designs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt
from pydantic import Field, FiniteFloat

from forecast.errors import ForecastError
from forecast.noise_model import NoiseModel
from forecast.records import Record

__all__ = ["Noise", "seed_noise"]

Array = npt.NDArray[np.float64]


class Noise(Record):
    """SD between runs of one design that differ in their seed.

    sigma: pooled, ddof 1, outcome's unit; null where no design has two runs. Of a run of weight 1, where the noise
    depends on the mean at the model's centre.
    degrees_of_freedom: runs minus designs, over the designs with at least two runs.
    lower, upper: 95 % interval of sigma (chi-square); null with sigma.
    model, dependence: whether, and how, a run's SD depends on its design's mean.
    designs, runs: all that were given; replicated: designs with at least two runs.
    """

    sigma: FiniteFloat | None = Field(ge=0)
    degrees_of_freedom: int = Field(ge=0)
    lower: FiniteFloat | None = None
    upper: FiniteFloat | None = None
    model: str = "constant"
    dependence: NoiseModel = NoiseModel()
    designs: int = Field(gt=0)
    replicated: int = Field(ge=0)
    runs: int = Field(gt=0)


def seed_noise(
    values: Sequence[float], design_ids: Sequence[Hashable], weights: Sequence[float] | Array | None = None
) -> Noise:
    """The pooled within-design SD of `values`; `design_ids` says which design each value belongs to.

    weights: a value of weight w has the variance sigma^2 / w; default 1 each.
    """
    if not len(values) or len(values) != len(design_ids):
        raise ForecastError(f"seed noise needs one design per value, got {len(values)} and {len(design_ids)}")
    if not np.all(np.isfinite(values)):
        raise ForecastError("seed noise needs finite values; leave the failed runs out")
    groups: dict[Hashable, list[tuple[float, float]]] = {}
    for value, design, weight in zip(
        values, design_ids, weights if weights is not None else [1.0] * len(values), strict=True
    ):
        groups.setdefault(design, []).append((float(value), float(weight)))
    several = [np.array(group).T for group in groups.values() if len(group) > 1]
    degrees = sum(group.shape[1] - 1 for group in several)
    sigma = lower = upper = None
    if degrees:
        from scipy.stats import chi2

        squares = sum(float(np.sum(w * (y - np.average(y, weights=w)) ** 2)) for y, w in several)
        sigma = float(np.sqrt(squares / degrees))
        lower, upper = (float(np.sqrt(squares / chi2.ppf(q, degrees))) for q in (0.975, 0.025))
    return Noise(
        sigma=sigma,
        degrees_of_freedom=degrees,
        lower=lower,
        upper=upper,
        designs=len(groups),
        replicated=len(several),
        runs=len(values),
    )
