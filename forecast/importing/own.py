"""Runs that are ours already: ledgers, and folders of `run.json` as jobs write them."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from pathlib import Path

from forecast.ledger import iterate_ledger
from forecast.records import Run

__all__ = ["own_runs"]

_MARK = b'"platocast-run-1"'


def own_runs(path: Path) -> Iterator[tuple[str, Run | str]] | None:
    """Where each run stands, and the run or what is wrong with it; None where `path` is something foreign."""
    if path.is_file() and path.suffix.lower() == ".jsonl" and _marked(path):
        return ((f"line {number}", found) for number, found in iterate_ledger(path))
    if path.is_dir():
        files = sorted(path.rglob("run.json"))
    else:
        files = sorted(Path(name) for name in glob.glob(str(path), recursive=True) if name.endswith(".json"))
    if files and _marked(files[0]):
        return ((str(file), _read(file)) for file in files)
    return None


def _marked(path: Path) -> bool:
    with open(path, "rb") as file:
        return _MARK in file.read(100_000)


def _read(path: Path) -> Run | str:
    from pydantic import ValidationError

    try:
        return Run.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the file"
        return f"{path}, field {field}: {first['msg']}; write it again or delete it"
