"""Seed noise: how far runs of one design lie apart, pooled over designs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from pydantic import Field, FiniteFloat

from forecast.errors import ForecastError
from forecast.records import Record

__all__ = ["Noise", "seed_noise"]


class Noise(Record):
    """SD between runs of one design that differ in their seed.

    sigma: pooled, ddof 1, outcome's unit; null where no design has two runs.
    degrees_of_freedom: runs minus designs, over the designs with at least two runs.
    lower, upper: 95 % interval of sigma (chi-square); null with sigma.
    designs, runs: all that were given; replicated: designs with at least two runs.
    """

    sigma: FiniteFloat | None = Field(ge=0)
    degrees_of_freedom: int = Field(ge=0)
    lower: FiniteFloat | None = None
    upper: FiniteFloat | None = None
    model: str = "constant"
    designs: int = Field(gt=0)
    replicated: int = Field(ge=0)
    runs: int = Field(gt=0)


def seed_noise(values: Sequence[float], design_ids: Sequence[Hashable]) -> Noise:
    """The pooled within-design SD of `values`; `design_ids` says which design each value belongs to."""
    if not len(values) or len(values) != len(design_ids):
        raise ForecastError(f"seed noise needs one design per value, got {len(values)} and {len(design_ids)}")
    if not np.all(np.isfinite(values)):
        raise ForecastError("seed noise needs finite values; leave the failed runs out")
    groups: dict[Hashable, list[float]] = {}
    for value, design in zip(values, design_ids, strict=True):
        groups.setdefault(design, []).append(float(value))
    several = [np.array(group) for group in groups.values() if len(group) > 1]
    degrees = sum(len(group) - 1 for group in several)
    sigma = lower = upper = None
    if degrees:
        from scipy.stats import chi2

        squares = sum(float(np.sum((group - group.mean()) ** 2)) for group in several)
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
