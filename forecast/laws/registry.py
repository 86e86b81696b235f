"""Every law by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from forecast.errors import ForecastError
from forecast.laws.alignment import ALIGNMENT, NULLS, SIZE_ONLY
from forecast.laws.effective import EFFECTIVE_LAWS, EFFECTIVE_SOLVERS
from forecast.laws.function import FunctionSolver, is_address, known_function
from forecast.laws.general import GENERAL
from forecast.laws.implicit import IMPLICIT, SOLVERS
from forecast.laws.law import Law, Scale, Solver

__all__ = ["BUILDERS", "VARIABLES", "build_law", "solver_of", "variables_of"]

BUILDERS: Mapping[str, Callable[[Scale], Law]] = {
    **ALIGNMENT,
    **EFFECTIVE_LAWS,
    **SIZE_ONLY,
    **GENERAL,
    **IMPLICIT,
    **NULLS,
}


VARIABLES = ("n", "g", "N", "D", "U", "p")


def variables_of(name: str) -> tuple[str, ...]:
    """The columns that the law `name` needs."""
    return build_law(name, Scale(1.0, 2.0, ranges=dict.fromkeys(VARIABLES, (1.0, 2.0)))).predictors


def build_law(name: str, scale: Scale) -> Law:
    """The law `name`, scaled to the data. Raises ForecastError for an unknown name."""
    if name not in BUILDERS:
        raise ForecastError(f"there is no law {name!r}; the laws are {', '.join(BUILDERS)}, or give a formula")
    return BUILDERS[name](scale)


def solver_of(name: str, predictors: tuple[str, ...] = (), digest: str | None = None) -> Solver | None:
    """The solver of a law without a closed form; of a Python function, where that may run."""
    if is_address(name):
        return FunctionSolver(known_function(name, digest), predictors)
    return {**SOLVERS, **EFFECTIVE_SOLVERS}.get(name)
