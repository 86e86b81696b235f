"""What is summed over rows: squares, or Huber's loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["Loss"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    """What is summed over rows: squares, or Huber's loss with threshold `delta` in the outcome's unit.

    Squared: w r^2. Huber: w r^2 inside delta, w (2 delta |r| - delta^2) outside (twice the usual form).
    Both are w c (2 r - c) with c the residual capped at delta, and have the derivative 2 w c.
    """

    name: Literal["squared", "huber"] = "squared"
    delta: float | None = None

    def capped(self, residuals: Array) -> Array:
        """The residuals held inside -delta and delta; under the squared loss the same array."""
        if self.name == "squared":
            return residuals
        assert self.delta is not None
        return np.clip(residuals, -self.delta, self.delta)

    def total(self, residuals: Array, weights: Array) -> Array:
        """The summed loss, shape (batch,); inf where the law has no finite value."""
        capped = self.capped(residuals)
        with np.errstate(invalid="ignore", over="ignore"):
            summed = np.sum(np.where(weights > 0, weights * capped * (2 * residuals - capped), 0.0), axis=-1)
        return np.where(np.isfinite(summed), summed, np.inf)

    def reported(self, total: float) -> float:
        """The loss as it is usually written: Huber's is r^2 / 2 inside delta."""
        return total / 2 if self.name == "huber" else total

    def influence(self, residuals: Array, weights: Array) -> Array:
        """Weights of the equivalent least squares at these residuals."""
        if self.name == "huber":
            assert self.delta is not None
            return weights * np.minimum(1.0, self.delta / np.maximum(np.abs(residuals), 1e-300))
        return weights
