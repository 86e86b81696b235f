"""CSV and TSV."""

from __future__ import annotations

import csv
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

from forecast.errors import BadRows, ForecastError
from forecast.importing.kinds import refuse_other_kinds
from forecast.importing.table import Cell, Table

__all__ = ["read_delimited"]


def read_delimited(path: Path) -> Table:
    """The table in a CSV or TSV file (UTF-8; `,`, `;` or tab apart). Raises ForecastError where it is none."""
    wanted = "TSV" if path.suffix.lower() in (".tsv", ".tab") else "CSV"
    refuse_other_kinds(path, wanted)
    delimiter = "\t" if wanted == "TSV" else _delimiter(path)
    rows = _rows(path, delimiter)
    number, header = next(rows, (1, []))
    rows.close()
    columns = tuple(str(cell).strip() for cell in header)
    _check_header(path, number, columns)

    def data() -> Iterator[tuple[int, Sequence[Cell]]]:
        lines = _rows(path, delimiter)
        next(lines)
        yield from lines

    return Table(str(path), columns, data)


def _rows(path: Path, delimiter: str) -> Generator[tuple[int, list[str]], None, None]:
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            for row in reader:
                if row:
                    yield reader.line_num, row
        except csv.Error as error:
            raise BadRows(str(path), [f"row {reader.line_num}: {error}; correct the quotes of this row"]) from error
        except UnicodeDecodeError as error:
            raise ForecastError(
                f"{path} is not UTF-8 text (near row {reader.line_num + 1}); save it as UTF-8"
            ) from error


def _delimiter(path: Path) -> str:
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
        header = file.readline()
    return max(",;\t", key=header.count)


def _check_header(path: Path, number: int, columns: tuple[str, ...]) -> None:
    problems = []
    twice = sorted({name for name in columns if name and columns.count(name) > 1})
    if twice:
        problems.append(f"row {number}: column(s) {', '.join(map(repr, twice))} stand twice; rename one of each")
    if columns and all(_is_number(name) for name in columns):
        problems.append(f"row {number}: the header holds numbers only ({', '.join(columns[:4])}); add a header row")
    if problems:
        raise BadRows(str(path), problems)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
