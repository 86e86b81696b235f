"""Where a unit decides what a number means and the numbers alone do not tell: ask, never guess."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forecast.importing.columns import Choices, Column
from forecast.importing.rules import Broken, number
from forecast.importing.table import Cell

__all__ = ["Question", "questions"]


@dataclass(frozen=True)
class Question:
    """A unit to be said. text: what is seen; unit: the answer that the numbers suggest, against `plain`."""

    column: str
    name: str
    unit: str
    text: str


def questions(columns: Sequence[Column], sample: Sequence[Sequence[Cell]], choices: Choices) -> list[Question]:
    """What the sampled rows leave open: fractions above 1 (percent?), sample counts that look like logarithms."""
    found = []
    for index, column in enumerate(columns):
        if column.name in choices.units or column.column in choices.units:
            continue
        values = _numbers([row[index] for row in sample if index < len(row)])
        if not values:
            continue
        seen = f"column {column.column} runs from {min(values):g} to {max(values):g}"
        if column.name == "good_view_fraction" and min(values) >= 0 and 1 < max(values) <= 100:
            found.append(Question(column.column, column.name, "percent", f"{seen}: percent, not a fraction?"))
        if column.name == "n_samples" and max(values) < 16 and any(value != int(value) for value in values):
            found.append(Question(column.column, column.name, "log10", f"{seen}: powers of ten, not counts?"))
        bounded = column.role == "metric" and choices.bounds.get(column.column, (0, 0))[1] == 1
        if bounded and min(values) >= 0 and 1 < max(values) <= 100:
            found.append(Question(column.column, column.column, "percent", f"{seen}, its bound is 1: percent?"))
    return found


def _numbers(cells: Sequence[Cell]) -> list[float]:
    values = []
    for cell in cells:
        try:
            values.append(float(number(cell)))
        except Broken:
            continue
    return values
