"""The rules for one cell, per role: a value, or what is wrong with it and how to mend it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from forecast.importing.columns import Choices, Column
from forecast.importing.table import Cell
from forecast.records import Scalar

__all__ = ["Broken", "Rule", "rule_for"]

Rule = Callable[[Cell], Scalar]
_LARGEST = 2**53
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_FINISHED = {"finished", "complete", "completed", "done", "success", "succeeded", "ok"}
_FAILED = {"failed", "crashed", "killed", "error", "oom", "timeout", "cancelled", "canceled", "preempted", "diverged"}


class Broken(ValueError):
    """A cell that breaks a rule. rule: what must hold; fix: what to do."""

    def __init__(self, rule: str, fix: str) -> None:
        self.rule, self.fix = rule, fix
        super().__init__(f"{rule}; {fix}")


def rule_for(column: Column, choices: Choices) -> Rule:
    """The rule that cells of `column` must keep."""
    unit = choices.units.get(column.name, choices.units.get(column.column, "plain"))
    if column.role == "metric":
        return _metric(choices.bounds.get(column.column), unit)
    if column.role == "setting":
        if column.name == "good_view_fraction":
            return lambda cell: _share(cell, unit)
        if column.name == "n_samples":
            return lambda cell: _count(cell, unit)
        return lambda cell: _setting(cell, unit)
    rules: dict[str, Rule] = {
        "run_id": _run_id,
        "seed": _seed,
        "study": _text,
        "status": _status,
        "counter": _counter if not column.name.endswith("_s") else _metric(None, "plain"),
    }
    return rules[column.role]


def number(cell: Cell) -> int | float:
    """The finite number in a cell. Raises Broken."""
    if isinstance(cell, str):
        text = cell.strip()
        if not _NUMBER.fullmatch(text):
            raise _no_number(text)
        value = float(text)
        if value.is_integer() and abs(value) < _LARGEST:
            return int(value)
    elif isinstance(cell, bool) or cell is None:
        raise Broken("must be a number", "write a number")
    else:
        value = cell
    if not math.isfinite(value):
        raise Broken("must be finite", "correct it; a run without an outcome is status failed or left out")
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST:
        return int(value)
    if isinstance(value, int) and abs(value) >= _LARGEST:
        raise Broken("must be below 2^53", "write it in larger units, or as text")
    return value


def _no_number(text: str) -> Broken:
    if text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return Broken("must be finite", "correct it; a run without an outcome is status failed or left out")
    if re.fullmatch(r"[+-]?\d+,\d+", text):
        return Broken("must be a number", "write a decimal point and no thousands separator")
    if text.endswith("%"):
        return Broken("must be a number", "leave the % away and say --unit COLUMN=percent")
    if re.fullmatch(r"[\d.]+\s*[kKmMbB]", text):
        return Broken("must be a number", "write it out, e.g. 21600000")
    return Broken("must be a number", "correct the cell")


def _share(cell: Cell, unit: str) -> Scalar:
    if cell is None or cell == "":
        return None
    value = number(cell)
    if unit == "percent":
        value = value / 100
    if not 0 <= value <= 1:
        maybe = "if the column holds percent, say --unit good_view_fraction=percent; otherwise " if value > 1 else ""
        raise Broken("must lie in [0, 1]", f"{maybe}correct the cell")
    return int(value) if value in (0, 1) else value


def _count(cell: Cell, unit: str) -> Scalar:
    if cell is None or cell == "":
        raise Broken("must be a number > 0", "fill the cell or delete the row")
    value = number(cell)
    if unit == "log10":
        return round(_power(value))
    if not value > 0:
        maybe = "if it is a logarithm, say --unit n_samples=log10; otherwise " if value < 0 else ""
        raise Broken("must be > 0", f"{maybe}correct the cell")
    return value


def _power(value: float) -> float:
    if not 0 <= value < 16:
        raise Broken("a log10 must lie in [0, 16)", "correct the cell, or leave --unit away")
    return float(10**value)


def _setting(cell: Cell, unit: str) -> Scalar:
    if cell is None or cell == "":
        return None
    if unit == "percent":
        return number(cell) / 100
    if unit == "log10":
        return _power(number(cell))
    if isinstance(cell, str):
        text = cell.strip()
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        if _NUMBER.fullmatch(text):
            return number(text)
        if text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
            raise _no_number(text)
        return text
    return cell if isinstance(cell, bool) else number(cell)


def _metric(bounds: tuple[float, float] | None, unit: str) -> Rule:
    low, high = bounds or (-math.inf, math.inf)
    divisor = 100.0 if unit == "percent" else 1.0

    def rule(cell: Cell) -> Scalar:
        if cell is None or cell == "":
            return None
        try:
            value = float(cell) / divisor
        except ValueError:
            raise _no_number(str(cell).strip()) from None
        if not math.isfinite(value):
            raise Broken("must be finite", "correct it; a run without an outcome is status failed or left out")
        if not low <= value <= high:
            raise Broken(f"must lie in [{low:g}, {high:g}]", "correct the cell, its --unit or --bounds")
        if isinstance(cell, str) and "_" in cell:
            raise _no_number(cell)
        return value

    return rule


def _run_id(cell: Cell) -> Scalar:
    text = "" if cell is None else str(cell).strip()
    if not 0 < len(text) <= 200:
        raise Broken("must have 1 to 200 characters", "fill the cell, or leave the column out with --ignore")
    return text


def _seed(cell: Cell) -> Scalar:
    if cell is None or cell == "":
        return None
    if isinstance(cell, str) and len(cell) < 16 and cell.isascii() and cell.isdigit():
        return int(cell)
    value = number(cell)
    if not isinstance(value, int):
        raise Broken("must be an integer", "correct the cell")
    return value


def _counter(cell: Cell) -> Scalar:
    if cell is None or cell == "":
        return None
    value = number(cell)
    if not isinstance(value, int) or value < 0:
        raise Broken("must be an integer >= 0", "correct the cell")
    return value


def _text(cell: Cell) -> Scalar:
    return None if cell is None or cell == "" else str(cell)


def _status(cell: Cell) -> Scalar:
    text = "" if cell is None else str(cell).strip().lower()
    if text in _FINISHED or not text:
        return "finished"
    if text in _FAILED:
        return text
    raise Broken("must be finished or failed", "leave rows of unfinished runs out, or the column with --ignore")
