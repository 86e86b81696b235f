"""What is done to features before they are compared: said once, applied alike, recorded with the score."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, Field, FiniteFloat

from forecast.errors import ForecastError

__all__ = ["Applied", "Preprocessing", "preprocess"]

Array = np.ndarray[Any, Any]


class Preprocessing(BaseModel, frozen=True, extra="forbid"):
    """The steps, in this order: cast to `dtype`, clip, centre, normalise.

    clip_quantile: absolute values beyond this quantile are cut to it; None: nothing is cut.
    clip_over: the quantile of all values together, or the mean over items of each item's own quantile.
    centre: subtract the mean of the items. normalise: scale each item to length one.
    """

    dtype: Literal["float32", "float64"] = "float32"
    clip_quantile: FiniteFloat | None = Field(default=None, gt=0, lt=1)
    clip_over: Literal["all", "items"] = "all"
    centre: bool = False
    normalise: bool = True


class Applied(BaseModel, frozen=True, extra="forbid"):
    """What preprocessing did to one matrix: what a reader needs in order to repeat it.

    clip_threshold: the value at which absolute values were cut; clipped: the share of values that were.
    largest_variance_share: the share of the variance that lies on the one dimension with the most of it.
    """

    clip_threshold: FiniteFloat | None
    clipped: FiniteFloat
    largest_variance_share: FiniteFloat


def preprocess(features: Array, steps: Preprocessing, *, name: str = "features") -> tuple[Array, Applied]:
    """A new matrix (items, dimensions) in `steps.dtype`, and what was done.

    Raises ForecastError where nothing is left to compare: every item the same, or an item that became zero.
    """
    x = np.array(features, steps.dtype)
    if x.ndim != 2 or len(x) < 2:
        raise ForecastError(f"{name}: features are a matrix of at least 2 items, got shape {x.shape}")
    if not np.isfinite(x).all():
        raise ForecastError(f"{name}: features must be finite in {steps.dtype}; leave out the items that are not")
    variance = x.var(axis=0, dtype=np.float64)
    if not (x != x[0]).any():
        raise ForecastError(f"{name}: all {len(x)} items have the same features, so there is nothing to compare")
    threshold, clipped = None, 0.0
    if steps.clip_quantile is not None:
        sizes = np.abs(x)
        axis = None if steps.clip_over == "all" else 1
        threshold = float(np.quantile(sizes, steps.clip_quantile, axis=axis).mean())
        clipped = float((sizes > threshold).mean())
        np.clip(x, -threshold, threshold, out=x)
    if steps.centre:
        x -= x.mean(axis=0, dtype=np.float64).astype(x.dtype)
    if steps.normalise:
        lengths = np.linalg.norm(x, axis=1, keepdims=True)
        zero = np.flatnonzero(lengths[:, 0] == 0)
        if len(zero):
            raise ForecastError(
                f"{name}: item {zero[0]} ({len(zero)} in all) is zero after clipping and centring, so it has no "
                "direction; leave it out on both sides or do not normalise"
            )
        x /= lengths
    total = float(variance.sum())
    share = float(variance.max()) / total if total > 0 else 0.0
    return x, Applied(clip_threshold=threshold, clipped=clipped, largest_variance_share=share)
