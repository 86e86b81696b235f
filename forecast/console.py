"""What a command prints: one table for people or JSON for programs, and one way to fail."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from forecast.plain import one_line, plain

__all__ = ["JsonFlag", "note", "rounded", "show_record", "show_table", "working"]

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def show_table(rows: Sequence[Mapping[str, Any]], *, title: str, as_json: bool) -> None:
    """Print `rows` (same keys each) as a rich table, or as a JSON list with full precision."""
    if as_json:
        sys.stdout.write(json.dumps([dict(row) for row in rows], ensure_ascii=False, indent=1) + "\n")
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", show_edge=False, pad_edge=False)
    numeric = {
        name for name in (rows[0] if rows else {}) if all(isinstance(r[name], (int, float, type(None))) for r in rows)
    }
    for name in rows[0] if rows else ("(no rows)",):
        table.add_column(name.replace("_", " "), justify="right" if name in numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_text(value) for value in row.values()))
    Console(highlight=False).print(table)


def show_record(record: Mapping[str, Any], *, as_json: bool) -> None:
    """Print one record as `name  value` lines, or as a JSON object."""
    if as_json:
        sys.stdout.write(json.dumps(dict(record), ensure_ascii=False, indent=1) + "\n")
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False, show_edge=False, box=None, pad_edge=False)
    for name, value in record.items():
        table.add_row(name.replace("_", " "), _text(value))
    Console(highlight=False).print(table)


def rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    """Floats to three figures, for a narrow terminal."""
    return {k: float(f"{v:.3g}") if isinstance(v, float) else v for k, v in row.items()}


def note(text: str) -> None:
    """Say something to the person at the terminal, never on standard output (that is for results)."""
    from rich.console import Console

    Console(stderr=True, highlight=False).print(plain(text), markup=False)


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner on standard error while something long goes on, silent where that is not a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


def _text(value: object) -> str:
    from rich.markup import escape

    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    return escape(one_line(str(value)))
