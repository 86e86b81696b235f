"""Runs from whatever a person has: a ledger, a store, or a foreign file."""

from __future__ import annotations

from pathlib import Path

from forecast.errors import ForecastError
from forecast.ledger import read_ledger
from forecast.records import Run

__all__ = ["read_runs"]


def read_runs(path: Path | str) -> list[Run]:
    """The runs at `path`: a ledger (.jsonl), a store (.duckdb), or a file or folder that `platocast import` reads.

    Raises ForecastError where nothing is there, where no run is in it, or where a row breaks a rule.
    """
    path = Path(path)
    if not path.exists() and "*" not in str(path):
        raise ForecastError(f"{path} does not exist; give a ledger (.jsonl), a store (.duckdb) or a table (.csv)")
    suffix = path.suffix.lower()
    if suffix == ".jsonl":
        return read_ledger(path)
    if suffix == ".duckdb":
        return _stored(path)
    from forecast.importing.importer import runs_from

    return runs_from(path)


def _stored(path: Path) -> list[Run]:
    from forecast.store import Store

    with Store(path, read_only=True) as store:
        stale = store.stale()
        runs = store.runs()
    if stale:
        names = ", ".join(str(p) for p in stale)
        raise ForecastError(f"{path} is out of date: {names} changed or is gone; run `platocast runs {path} --refresh`")
    if not runs:
        raise ForecastError(f"{path} holds no run; import some with `platocast import FILE --store {path}`")
    return runs
