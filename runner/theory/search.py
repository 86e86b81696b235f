"""A search for worlds that break a bound: random worlds cannot show that a bound is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from forecast.errors import ForecastError
from runner.theory.worlds import Bound, PairLaw, bound, symmetric_law

__all__ = ["Worst", "least_favourable", "three_states"]

Array = np.ndarray[Any, Any]
_PLANE = np.array([[1, 1, -2], [1, -1, 0]]).T / np.sqrt([6, 2])


@dataclass(frozen=True)
class Worst:
    """The pair of laws with the highest misalignment / plain bound that the search found."""

    first: PairLaw
    second: PairLaw
    found: Bound

    @property
    def ratio(self) -> float:
        """Misalignment over |K1 - K2| / gap: above 1 the plain bound is broken, above 2 the safe one would be."""
        return self.found.misalignment / self.found.plain


def three_states(parameters: Array) -> tuple[PairLaw, PairLaw] | None:
    """Two laws over three equally likely states; per law two eigenvalues in [0, 1] and an angle. None if impossible."""
    laws = []
    for high, low, angle in np.asarray(parameters).reshape(2, 3):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        if not 0 <= low <= high <= 1:
            return None
        try:
            laws.append(symmetric_law(np.array([high, low]), _PLANE @ turn))
        except ForecastError:  # a negative probability
            return None
    return laws[0], laws[1]


def least_favourable(rng: np.random.Generator, *, starts: int = 12) -> Worst:
    """Climb from random three-state worlds to the one whose misalignment most exceeds the plain bound."""

    def lacking(parameters: Array) -> float:
        laws = three_states(parameters)
        if laws is None:
            return 0.0
        found = bound(*laws, 1)
        if found.gap < 1e-3 or found.distance < 1e-3 or laws[1].gap(1) < 1e-6:
            return 0.0  # no gap or no difference to speak of
        return -found.misalignment / found.plain

    best: tuple[float, Array] = (0.0, np.zeros(6))
    for _ in range(starts):
        drawn = [np.array([*np.sort(rng.uniform(0, 0.5, 2))[::-1], rng.uniform(0, np.pi)]) for _ in range(2)]
        options: Any = {"maxiter": 1500, "xatol": 1e-7, "fatol": 1e-9}
        climbed = minimize(lacking, np.concatenate(drawn), method="Nelder-Mead", options=options)
        if climbed.fun < best[0]:
            best = (float(climbed.fun), climbed.x)
    laws = three_states(best[1])
    if laws is None or best[0] == 0.0:
        raise ForecastError(f"no world was found in {starts} starts; give more starts")
    return Worst(*laws, bound(*laws, 1))
