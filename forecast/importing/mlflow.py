"""MLflow: a tracking folder (`mlruns`) or its SQLite database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forecast.errors import ForecastError
from forecast.importing.databases import open_sqlite
from forecast.importing.objects import Found, table_of
from forecast.importing.table import Table
from forecast.importing.yaml_files import read_yaml

__all__ = ["is_mlflow_database", "read_mlflow_database", "read_mlflow_folder"]

_STATUS = {1: "running", 2: "scheduled", 3: "finished", 4: "failed", 5: "killed"}


def read_mlflow_folder(root: Path) -> Table:
    """One run per folder with `meta.yaml` and `params` below `root`; of each metric the last value."""

    def runs() -> Iterator[Found]:
        for meta in sorted(root.rglob("meta.yaml")):
            folder, facts = meta.parent, read_yaml(meta)
            if "run_id" not in facts or facts.get("lifecycle_stage") == "deleted":
                continue
            status: Any = facts.get("status")
            yield Found(
                {name: path.read_text(encoding="utf-8") for name, path in _files(folder / "params")},
                {name: _last(path) for name, path in _files(folder / "metrics")},
                {"run_id": facts["run_id"], "status": _STATUS.get(status, str(status).lower())},
            )

    return table_of(str(root), runs())


def is_mlflow_database(tables: list[str]) -> bool:
    """Whether these are the tables of an MLflow database."""
    return {"runs", "params", "latest_metrics"} <= set(tables)


def read_mlflow_database(path: Path) -> Table:
    """One run per row of MLflow's `runs`; of each metric the last value."""

    def runs() -> Iterator[Found]:
        with open_sqlite(path) as connection:
            params: dict[str, dict[str, Any]] = {}
            for run_id, key, value in connection.execute("SELECT run_uuid, key, value FROM params"):
                params.setdefault(run_id, {})[key] = value
            metrics: dict[str, dict[str, Any]] = {}
            query = "SELECT run_uuid, key, CASE WHEN is_nan THEN 'nan' ELSE value END FROM latest_metrics"
            for run_id, key, value in connection.execute(query):
                metrics.setdefault(run_id, {})[key] = value
            query = "SELECT run_uuid, lower(status) FROM runs WHERE lifecycle_stage = 'active' ORDER BY start_time, 1"
            for run_id, status in connection.execute(query):
                facts = {"run_id": run_id, "status": status}
                yield Found(params.get(run_id, {}), metrics.get(run_id, {}), facts)

    return table_of(str(path), runs())


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Names (with `/` where MLflow made subfolders) and paths."""
    if folder.is_dir():
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            yield path.relative_to(folder).as_posix(), path


def _last(path: Path) -> str:
    """The value of the last line `timestamp value step` of a metric's file, by step and then time."""
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if not lines or any(len(line) < 2 for line in lines):
        raise ForecastError(f"{path} holds no lines of time, value and step; restore the file")
    return max(lines, key=lambda line: (int(line[2]) if len(line) > 2 else 0, int(line[0])))[1]
