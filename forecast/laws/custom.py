"""A law of the user's own: a formula over any columns, its bounds as text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from forecast.laws.expression import FormulaError, parse
from forecast.laws.law import Law, Parameter, Scale

__all__ = ["custom_law", "parameter_of", "read_bounds", "read_priors"]

WIDE = 1e12


def read_bounds(words: Sequence[str]) -> dict[str, tuple[float, float]]:
    """{"A": (0, 1)} from ["A=0:1"]; an empty end is open. Raises FormulaError."""
    out: dict[str, tuple[float, float]] = {}
    for word in (part for text in words for part in text.split(",")):
        name, equals, ends = word.partition("=")
        low, colon, high = ends.partition(":")
        try:
            bounds = (float(low) if low.strip() else -WIDE, float(high) if high.strip() else WIDE)
        except ValueError as error:
            raise FormulaError(f"bounds {word!r} are not numbers; write them as in A=0:1") from error
        if not equals or not colon or not name.strip() or not bounds[0] < bounds[1]:
            raise FormulaError(f"bounds {word!r} cannot be read; write them as NAME=LOW:HIGH with LOW < HIGH")
        out[name.strip()] = bounds
    return out


def read_priors(words: Sequence[str]) -> dict[str, tuple[float, float]]:
    """{"A": (0.5, 0.1)}, mean and SD of a normal prior, from ["A=0.5:0.1"]. Raises FormulaError."""
    out: dict[str, tuple[float, float]] = {}
    for word in (part for text in words for part in text.split(",")):
        name, _, numbers = word.partition("=")
        mean, _, sd = numbers.partition(":")
        try:
            prior = (float(mean), float(sd))
        except ValueError as error:
            raise FormulaError(f"the prior {word!r} cannot be read; write it as in A=0.5:0.1, mean and SD") from error
        if not name.strip() or not (abs(prior[0]) < float("inf") and 0 < prior[1] < float("inf")):
            raise FormulaError(f"the prior {word!r} needs a name, a finite mean and an SD > 0, as in A=0.5:0.1")
        out[name.strip()] = prior
    return out


def custom_law(
    formula: str, scale: Scale, *, columns: Collection[str], bounds: Mapping[str, tuple[float, float]] | None = None
) -> Law:
    """The law of a formula: names among `columns` are predictors, `c` is chance where it is known, the rest parameters.

    A parameter with a lower bound >= 0 walks in its logarithm. Raises FormulaError where no parameter is left.
    """
    names = parse(formula).names
    given = dict(bounds or {})
    predictors = tuple(name for name in columns if name in names)
    constants = {"c": scale.chance} if "c" in names and scale.chance is not None and "c" not in given else {}
    free = [name for name in names if name not in predictors and name not in constants]
    if not free:
        raise FormulaError(f"the formula {formula!r} has no free parameter; its names are {', '.join(names) or 'none'}")
    if not predictors:
        raise FormulaError(f"the formula {formula!r} uses no column; the columns are {', '.join(columns)}")
    unused = set(given) - set(free)
    if unused:
        raise FormulaError(f"bounds are given for {sorted(unused)[0]!r}, which is no parameter of {formula!r}")
    parameters = tuple(parameter_of(name, given.get(name), scale) for name in free)
    return Law("formula", formula, "the user's own formula", predictors, parameters, constants, "other")


def parameter_of(name: str, bounds: tuple[float, float] | None, scale: Scale) -> Parameter:
    """A parameter of a user's law: within its bounds, started from the size of the data."""
    low, high = bounds or (-WIDE, WIDE)
    if low >= 0:
        floor = max(low, min(1e-12, high * 1e-12))
        sizes = [*(v for ends in scale.ranges.values() for v in ends if v > 0), abs(scale.high), scale.span]
        begin = max(floor, 1e-3 * min([1.0, *sizes]), high * 1e-4 if high < WIDE else 0.0)
        end = min(high, 10 * max([1.0, *sizes]))
        return Parameter(name, floor, high, min(begin, end), end, "log")
    reach = 3 * max(scale.span, abs(scale.high), 1.0)
    return Parameter(name, low, high, max(low, -reach), min(high, reach))
