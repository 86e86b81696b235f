"""JSON lines: one object a run, nested or flat."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from forecast.errors import BadRows, ForecastError
from forecast.importing.objects import flatten
from forecast.importing.table import Cell, Table

__all__ = ["read_jsonlines"]


def read_jsonlines(path: Path) -> Table:
    """The table in a file of JSON lines; columns are the names of all objects, nested ones joined by dots."""
    columns: dict[str, None] = {}
    for _, row in _objects(path):
        columns |= dict.fromkeys(row)
    if not columns:
        raise ForecastError(f"{path} is empty; give a file with at least one JSON object a line")
    names = tuple(columns)

    def data() -> Iterator[tuple[int, Sequence[Cell]]]:
        for number, row in _objects(path):
            yield number, [row.get(name) for name in names]

    return Table(str(path), names, data)


def _objects(path: Path) -> Iterator[tuple[int, dict[str, Cell]]]:
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                value: Any = json.loads(line)
            except ValueError as error:
                raise BadRows(str(path), [f"row {number}: not JSON ({error}); correct or delete the line"]) from error
            if not isinstance(value, dict):
                raise BadRows(str(path), [f"row {number}: not a JSON object; write one object a line"])
            yield number, flatten(value)
