"""A law of the user's own as a Python function: its columns come first, its parameters are keyword-only.

    def curve(n, g, *, A, B, beta, kappa):
        return A - B * (n * (g + kappa * (1 - g))) ** -beta

Columns and parameters are NumPy arrays that broadcast against each other; so must the result. The derivative by each
parameter is exact to rounding where the function takes complex numbers (complex step: Squire & Trapp 1998,
doi 10.1137/S003614459631241X), and is taken by central differences where it does not, or where abs and the like make
the complex step wrong: both are compared at the first call.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from forecast.laws.custom import parameter_of
from forecast.laws.expression import FormulaError
from forecast.laws.law import Columns, Law, Scale

__all__ = [
    "FunctionSolver",
    "code_hash",
    "function_columns",
    "function_law",
    "is_address",
    "known_function",
    "load_function",
    "use_function",
]

Array = npt.NDArray[np.float64]
Function = Callable[..., Any]

VARIABLE = "PLATOCAST_CODE"
_ADDRESS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_KNOWN: dict[str, Function] = {}


def is_address(text: str) -> bool:
    """Whether `text` is of the form module:function."""
    return bool(_ADDRESS.fullmatch(text))


def use_function(function: Function) -> str:
    """Make a function known to this process, so that fits of it can be made and predicted from; its address."""
    address = f"{function.__module__}:{function.__qualname__}"
    _signature(address, function)
    _KNOWN[address] = function
    return address


def load_function(address: str) -> Function:
    """The function at module:function, imported with the working folder on the path: this runs the module's code."""
    if address in _KNOWN:
        return _KNOWN[address]
    module, _, name = address.partition(":")
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        found: Function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise FormulaError(f"the law {address!r} cannot be imported from {here}: {error}") from error
    finally:
        sys.path.remove(here)
    if not callable(found):
        raise FormulaError(f"{address!r} is no function; give module:function")
    _signature(address, found)
    _KNOWN[address] = found
    return found


def known_function(address: str, digest: str | None) -> Function:
    """The function of a saved fit. A file alone never makes code run: it must have been loaded, or be allowed.

    Raises FormulaError where it is not, or is another function than the one that was fitted.
    """
    allowed = [word.strip() for word in os.environ.get(VARIABLE, "").split(",")]
    if address not in _KNOWN and address not in allowed:
        raise FormulaError(
            f"this fit's law is the Python function {address}; if you trust that module, set {VARIABLE}={address} "
            "(in Python: forecast.use_function) and repeat"
        )
    function = load_function(address)
    if digest is not None and code_hash(function) != digest:
        raise FormulaError(f"the function {address} is not the one that was fitted: its source differs; fit again")
    return function


def code_hash(function: Function) -> str | None:
    """sha256 of the function's own source, without what it calls; None where the source is not to be had."""
    try:
        return hashlib.sha256(inspect.getsource(function).encode()).hexdigest()
    except (OSError, TypeError):
        return None


def function_law(
    address: str, scale: Scale, *, columns: Collection[str], bounds: Mapping[str, tuple[float, float]] | None = None
) -> Law:
    """The law of the function at `address`. A parameter named c is chance where that is known and no bounds are given.

    Raises FormulaError where the function needs a column that is not there, or where bounds fit no parameter.
    """
    function = load_function(address)
    predictors, names = _signature(address, function)
    given = dict(bounds or {})
    missing = [name for name in predictors if name not in columns]
    if missing:
        raise FormulaError(
            f"{address} needs the column {missing[0]!r}; the columns are {', '.join(columns) or 'none'}; "
            f"name it with --column {missing[0]}=SETTING"
        )
    constants = {"c": scale.chance} if "c" in names and scale.chance is not None and "c" not in given else {}
    free = [name for name in names if name not in constants]
    unused = set(given) - set(free)
    if unused:
        raise FormulaError(f"bounds are given for {sorted(unused)[0]!r}, which is no parameter of {address}")
    if not free:
        raise FormulaError(f"{address} has no free parameter; parameters are keyword-only, after a *")
    return Law(
        address,
        f"{function.__name__}({', '.join(predictors)}; {', '.join(names)})",
        "the user's own Python function",
        predictors,
        tuple(parameter_of(name, given.get(name), scale) for name in free),
        constants,
        "other",
        FunctionSolver(function, predictors),
    )


def function_columns(address: str) -> tuple[str, ...]:
    """The columns that the function at `address` needs."""
    return _signature(address, load_function(address))[0]


class FunctionSolver:
    """Value and gradient of a Python function: by complex step where that agrees with differences, else by those."""

    def __init__(self, function: Function, predictors: tuple[str, ...]) -> None:
        self.function, self.predictors = function, predictors
        self.exact: bool | None = None

    def __call__(
        self, columns: Columns, parameters: Mapping[str, Array], constants: Mapping[str, float]
    ) -> tuple[Array, dict[str, Array]]:
        """As of a Solver. Raises FormulaError where the function fails or gives another shape."""
        with np.errstate(all="ignore"):
            value = self._value(columns, {**constants, **parameters})
            if self.exact is None:
                self.exact = self._agrees(columns, parameters, constants, value)
            slope = self._complex_step if self.exact else self._difference
            gradient = {name: slope(name, columns, parameters, constants) for name in parameters}
        return value, gradient

    def _value(self, columns: Columns, named: Mapping[str, Any]) -> Any:
        asked = [columns[name] for name in self.predictors]
        try:
            value = np.asarray(self.function(*asked, **named))
            return np.broadcast_to(value, np.broadcast_shapes(*(np.shape(x) for x in (*asked, *named.values()))))
        except Exception as error:
            raise FormulaError(f"the law's function {self.function.__name__} failed: {error}") from error

    def _complex_step(
        self, name: str, columns: Columns, parameters: Mapping[str, Array], constants: Mapping[str, float]
    ) -> Array:
        step = 1e-20 * np.maximum(np.abs(parameters[name]), 1e-30)
        moved = {**constants, **parameters, name: parameters[name] + 1j * step}
        return np.asarray(np.imag(self._value(columns, moved)) / step)

    def _difference(
        self, name: str, columns: Columns, parameters: Mapping[str, Array], constants: Mapping[str, float]
    ) -> Array:
        step = 6e-6 * np.maximum(np.abs(parameters[name]), 1e-4)
        high, low = (
            self._value(columns, {**constants, **parameters, name: parameters[name] + sign * step}) for sign in (1, -1)
        )
        return np.asarray((high - low) / (2 * step))

    def _agrees(
        self, columns: Columns, parameters: Mapping[str, Array], constants: Mapping[str, float], value: Array
    ) -> bool:
        for name in parameters:
            rough = self._difference(name, columns, parameters, constants)
            try:
                exact = self._complex_step(name, columns, parameters, constants)
            except FormulaError:
                return False
            finite = np.isfinite(rough) & np.isfinite(value)
            scale = np.max(np.abs(rough[finite]), initial=0.0)
            if not np.allclose(exact[finite], rough[finite], rtol=1e-3, atol=1e-4 * scale + 1e-12):
                return False
        return True


def _signature(address: str, function: Function) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns (positional) and parameters (keyword-only). Raises FormulaError for any other signature."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise FormulaError(f"{address} has no signature to read; give a plain Python function") from error
    columns = tuple(p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
    names = tuple(p.name for p in found if p.kind is p.KEYWORD_ONLY)
    if not columns or not names or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found):
        raise FormulaError(
            f"{address} takes ({', '.join(map(str, found))}); a law takes its columns first and its parameters after "
            "a *, as in def law(n, g, *, A, B)"
        )
    return columns, names
