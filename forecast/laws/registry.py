"""Every law by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from forecast.errors import ForecastError
from forecast.laws.alignment import ALIGNMENT, NULLS
from forecast.laws.law import Law, Scale, Solver

__all__ = ["BUILDERS", "build_law", "solver_of"]

BUILDERS: Mapping[str, Callable[[Scale], Law]] = {**ALIGNMENT, **NULLS}
SOLVERS: Mapping[str, Solver] = {}


def build_law(name: str, scale: Scale) -> Law:
    """The law `name`, scaled to the data. Raises ForecastError for an unknown name."""
    if name not in BUILDERS:
        raise ForecastError(f"there is no law {name!r}; the laws are {', '.join(BUILDERS)}, or give a formula")
    return BUILDERS[name](scale)


def solver_of(name: str) -> Solver | None:
    """The solver of a law without a closed form."""
    return SOLVERS.get(name)
