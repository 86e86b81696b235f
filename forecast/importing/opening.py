"""Which reader opens which file or folder."""

from __future__ import annotations

import glob
from pathlib import Path

from forecast.errors import ForecastError
from forecast.importing.columns import Choices
from forecast.importing.delimited import read_delimited
from forecast.importing.table import Table

__all__ = ["open_table"]

_FILES = ".csv, .tsv, .jsonl, .parquet, .duckdb, .sqlite, .db, .json"
_FOLDERS = "an MLflow folder, wandb's offline runs, a Hydra multirun, TensorBoard logs, folders with run.json"


def open_table(path: Path, choices: Choices | None = None) -> Table:
    """The table at `path`: a file by its suffix, a folder by what is in it, or a pattern of JSON files.

    Raises ForecastError for what no reader knows.
    """
    choices = choices or Choices()
    if not path.exists():
        if glob.has_magic(str(path)):
            return _pattern(path)
        raise ForecastError(f"{path} does not exist; give a file or folder to import")
    return _folder(path, choices) if path.is_dir() else _file(path, choices)


def _file(path: Path, choices: Choices) -> Table:
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv", ".tab"):
        return read_delimited(path)
    from forecast.importing import databases, folders, jsonlines, mlflow

    if suffix in (".jsonl", ".ndjson"):
        return jsonlines.read_jsonlines(path)
    if suffix in (".parquet", ".pq"):
        return databases.read_parquet(path)
    if suffix in (".duckdb", ".ddb"):
        return databases.read_duckdb(path, choices.table)
    if suffix in (".sqlite", ".sqlite3", ".db"):
        if choices.table is None and mlflow.is_mlflow_database(databases.sqlite_tables(path)):
            return mlflow.read_mlflow_database(path)
        return databases.read_sqlite(path, choices.table)
    if suffix == ".json":
        return folders.read_json_files([path], str(path))
    kind = path.suffix or "a name without suffix"
    raise ForecastError(f"{path}: no reader for {kind}; there are readers for {_FILES}, and for {_FOLDERS}")


def _folder(path: Path, choices: Choices) -> Table:
    from forecast.importing import folders, mlflow, tensorboard

    if any(path.glob("*/*/meta.yaml")) or any(path.glob("*/meta.yaml")):
        return mlflow.read_mlflow_folder(path)
    if next(path.rglob("wandb-summary.json"), None):
        return folders.read_wandb(path)
    if next(path.rglob(".hydra/config.yaml"), None):
        return folders.read_hydra(path)
    if next(path.rglob("events.out.tfevents.*"), None):
        return tensorboard.read_tensorboard(path, choices.tag)
    for name in ("run.json", "metrics.json"):
        if found := list(path.rglob(name)):
            return folders.read_json_files(found, str(path))
    raise ForecastError(f"{path}: no run was found in this folder; there are readers for {_FOLDERS}")


def _pattern(path: Path) -> Table:
    from forecast.importing.folders import read_json_files

    found = sorted(Path(name) for name in glob.glob(str(path), recursive=True))
    if not found:
        raise ForecastError(f"{path} matches no file; correct the pattern")
    other = [name for name in found if name.suffix.lower() != ".json"]
    if other:
        raise ForecastError(f"{path} matches {other[0]}, which is no JSON file; import other files one by one")
    return read_json_files(found, str(path))
