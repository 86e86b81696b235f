"""Parquet files, and tables of DuckDB and SQLite databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from forecast.errors import ForecastError
from forecast.importing.table import Cell, Table

__all__ = ["open_sqlite", "read_duckdb", "read_parquet", "read_sqlite", "sqlite_tables"]

CLOSED: dict[str, str | bool | int | float | list[str]] = {"enable_external_access": False}
"""A database of unknown origin may hold views that read other files: it gets to read itself alone."""

_BATCH = 10_000


def read_parquet(path: Path) -> Table:
    """The table in a Parquet file."""
    return _asked(path, ":memory:", "SELECT * FROM read_parquet(?)", [str(path)])


def read_duckdb(path: Path, table: str | None) -> Table:
    """A table of a DuckDB file; `table` may be left away where there is one."""
    with _duckdb(path, str(path)) as connection:
        rows = connection.execute("SELECT table_name FROM information_schema.tables ORDER BY 1").fetchall()
    name = _chosen(path, [row[0] for row in rows], table)
    return _asked(path, str(path), f"SELECT * FROM {_quoted(name)}", [])


def read_sqlite(path: Path, table: str | None) -> Table:
    """A table of an SQLite file; `table` may be left away where there is one."""
    query = f"SELECT * FROM {_quoted(_chosen(path, sqlite_tables(path), table))}"
    with open_sqlite(path) as connection:
        columns = tuple(item[0] for item in connection.execute(f"{query} LIMIT 0").description)

    def data() -> Iterator[tuple[int, Sequence[Cell]]]:
        with open_sqlite(path) as connection:
            for number, row in enumerate(connection.execute(query), 1):
                yield number, [_plain(cell) for cell in row]

    return Table(str(path), columns, data)


def sqlite_tables(path: Path) -> list[str]:
    """The names of the tables and views in an SQLite file. Raises ForecastError where it is none."""
    try:
        with open_sqlite(path) as connection:
            query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
            return sorted(row[0] for row in connection.execute(query))
    except sqlite3.DatabaseError as error:
        raise ForecastError(f"{path} cannot be read as an SQLite file ({error}); give another file") from error


def _asked(path: Path, database: str, query: str, values: list[Any]) -> Table:
    with _duckdb(path, database) as connection:
        columns = tuple(item[0] for item in _run(path, connection, f"{query} LIMIT 0", values).description)

    def data() -> Iterator[tuple[int, Sequence[Cell]]]:
        with _duckdb(path, database) as connection:
            found = _run(path, connection, query, values)
            number = 0
            while rows := found.fetchmany(_BATCH):
                for row in rows:
                    number += 1
                    yield number, [_plain(cell) for cell in row]

    return Table(str(path), columns, data)


def _duckdb(path: Path, database: str) -> Any:
    import duckdb

    try:
        if database == ":memory:":
            return duckdb.connect(database)
        return duckdb.connect(database, read_only=True, config=CLOSED)
    except duckdb.Error as error:
        raise ForecastError(f"{path} cannot be opened: {str(error).splitlines()[0]}") from error


def _run(path: Path, connection: Any, query: str, values: list[Any]) -> Any:
    import duckdb

    try:
        return connection.execute(query, values)
    except duckdb.Error as error:
        raise ForecastError(f"{path} cannot be read: {str(error).splitlines()[0]}") from error


def open_sqlite(path: Path) -> _Closing:
    """A read-only connection, closed at the end of its block."""
    return _Closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True))


class _Closing:
    """A connection that is closed at the end of its block (sqlite3's own block only commits)."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> sqlite3.Connection:
        return self._connection

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def _chosen(path: Path, names: list[str], table: str | None) -> str:
    if table is not None and table not in names:
        raise ForecastError(f"{path} has no table {table!r}; it has {', '.join(names) or 'none'}")
    if table is None and len(names) != 1:
        raise ForecastError(f"{path} has {len(names)} tables ({', '.join(names)}); name one with --table")
    return table or names[0]


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _plain(cell: Any) -> Cell:
    """Decimals as numbers, dates and the like as text."""
    if cell is None or isinstance(cell, (str, int, float, bool)):
        return cell
    if isinstance(cell, (bytes, bytearray)):
        return bytes(cell).hex()
    if hasattr(cell, "as_tuple"):  # decimal.Decimal
        return float(cell)
    return str(cell)
