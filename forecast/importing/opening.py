"""Which reader opens which file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from forecast.errors import ForecastError
from forecast.importing.delimited import read_delimited
from forecast.importing.table import Table

__all__ = ["open_table"]

_READERS: Mapping[str, Callable[[Path], Table]] = {
    ".csv": read_delimited,
    ".tsv": read_delimited,
    ".tab": read_delimited,
}


def open_table(path: Path) -> Table:
    """The table at `path`, by its suffix. Raises ForecastError for what no reader knows."""
    if not path.exists():
        raise ForecastError(f"{path} does not exist; give a file to import")
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        kind = path.suffix or "a name without suffix"
        raise ForecastError(f"{path}: no reader for {kind}; there are readers for {', '.join(_READERS)}")
    return reader(path)
