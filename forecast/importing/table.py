"""What every reader of a foreign format hands over: named columns, and rows of plain cells to be read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Cell", "Hint", "Table"]

Cell = str | int | float | bool | None
Hint = Literal["setting", "metric"]


@dataclass(frozen=True)
class Table:
    """A table that can be read more than once.

    source: the file's name, for messages.
    columns: their names, each once.
    rows: gives an iterator of (row number, cells); text formats count lines of the file, so that the header
    is row 1; others count rows from 1.
    hints: what the format itself says of a column, e.g. that MLflow keeps it as a metric.
    """

    source: str
    columns: tuple[str, ...]
    rows: Callable[[], Iterator[tuple[int, Sequence[Cell]]]]
    hints: Mapping[str, Hint] = field(default_factory=dict)
