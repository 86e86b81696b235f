"""What every reader of a foreign format hands over: named columns, and rows of plain cells to be read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Cell", "Table"]

Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Table:
    """A table that can be read more than once.

    source: the file's name, for messages.
    columns: their names, each once.
    rows: gives an iterator of (row number, cells); text formats count lines of the file, so that the header
    is row 1; others count rows from 1.
    """

    source: str
    columns: tuple[str, ...]
    rows: Callable[[], Iterator[tuple[int, Sequence[Cell]]]]
