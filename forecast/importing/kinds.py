"""Which kind of file lies there, by its first bytes: a name can be wrong."""

from __future__ import annotations

from pathlib import Path

from forecast.errors import ForecastError

__all__ = ["refuse_other_kinds"]

_MAGIC = (
    (b"PAR1", "a Parquet file", "name it .parquet"),
    (b"SQLite format 3\x00", "an SQLite database", "name it .sqlite"),
    (b"\x1f\x8b", "a gzip archive", "unpack it first"),
    (b"PK\x03\x04", "a zip archive or a spreadsheet (.xlsx)", "save the sheet as CSV"),
    (b"%PDF", "a PDF", "give the table as CSV"),
    (b"\x89PNG", "a picture", "give the table as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old spreadsheet (.xls)", "save the sheet as CSV"),
    (b"\xff\xfe", "UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "save it as UTF-8"),
    (b"{", "JSON", "name it .jsonl if it has one object a line"),
    (b"[{", "a JSON list", "write one object a line and name it .jsonl"),
    (b"<", "HTML or XML", "export the table as CSV"),
)


def refuse_other_kinds(path: Path, wanted: str) -> None:
    """Raise ForecastError where `path` is missing, empty, or plainly something else than `wanted` (text)."""
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise ForecastError(f"{path}: cannot be read ({error.strerror}); give the path of a {wanted} file") from error
    if not head.strip():
        raise ForecastError(f"{path} is empty; give a {wanted} file with a header and at least one row")
    for magic, kind, fix in _MAGIC:
        if head.startswith(magic):
            raise ForecastError(f"{path} is {kind}, not {wanted}; {fix}")
    if head[8:12] == b"DUCK":
        raise ForecastError(f"{path} is a DuckDB file, not {wanted}; name it .duckdb")
    if b"\x00" in head:
        raise ForecastError(f"{path} is a binary file, not {wanted}; give the table as CSV")
