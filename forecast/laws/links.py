"""Links: the scale on which a law's error is additive. The outcome and the law are both carried over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["LINKS", "Link", "LinkName"]

Array = npt.NDArray[np.float64]
LinkName = Literal["identity", "log", "logit", "cloglog"]


@dataclass(frozen=True)
class Link:
    """A rising map of outcomes in (low, high), its inverse and its derivative."""

    low: float
    high: float
    forward: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    slope: Callable[[Array], Array]


LINKS: Mapping[str, Link] = {
    "identity": Link(-np.inf, np.inf, np.asarray, np.asarray, np.ones_like),
    "log": Link(0.0, np.inf, np.log, np.exp, lambda y: 1.0 / y),
    "logit": Link(
        0.0,
        1.0,
        lambda y: np.log(y) - np.log1p(-y),
        lambda t: 0.5 * (1 + np.tanh(0.5 * t)),
        lambda y: 1 / (y * (1 - y)),
    ),
    "cloglog": Link(
        0.0,
        1.0,
        lambda y: np.log(-np.log1p(-y)),
        lambda t: -np.expm1(-np.exp(t)),
        lambda y: -1.0 / ((1 - y) * np.log1p(-y)),
    ),
}
