"""Folders with one run each: JSON files, Hydra multiruns and Weights & Biases' offline runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from forecast.errors import ForecastError
from forecast.importing.objects import Found, flatten, table_of
from forecast.importing.table import Table
from forecast.importing.yaml_files import read_yaml

__all__ = ["read_hydra", "read_json_files", "read_wandb"]

_METRIC_FILES = ("metrics.json", "run.json", "results.json")


def read_json_files(paths: Sequence[Path], source: str) -> Table:
    """One run per JSON file; a file without a `run_id` is called by its folder (its name, where all share a folder)."""
    several = len({path.parent for path in paths}) > 1

    def runs() -> Iterator[Found]:
        for path in sorted(paths):
            found = Found.of_json(read_json(path))
            name = path.parent.name if several else path.stem
            yield Found(found.settings, found.metrics, {"run_id": name, **found.facts})

    return table_of(source, runs())


def read_hydra(root: Path) -> Table:
    """One run per folder with `.hydra/config.yaml` below `root`; outcomes from its metrics.json (or the like)."""

    def runs() -> Iterator[Found]:
        for config in sorted(root.rglob(".hydra/config.yaml")):
            folder = config.parent.parent
            metrics = next((folder / name for name in _METRIC_FILES if (folder / name).is_file()), None)
            if metrics is None:
                raise ForecastError(
                    f"{folder} has none of {', '.join(_METRIC_FILES)}; write the outcomes there as JSON"
                )
            found = Found.of_json(read_json(metrics))
            outcomes = {**found.facts, **found.metrics}
            name = folder.relative_to(root).as_posix()
            yield Found(flatten(read_yaml(config)), outcomes, {"run_id": name})

    return table_of(str(root), runs())


def read_wandb(root: Path) -> Table:
    """One run per offline run folder below `root` (files/wandb-summary.json and files/config.yaml)."""

    def runs() -> Iterator[Found]:
        for summary in sorted(root.rglob("wandb-summary.json")):
            folder = summary.parent.parent if summary.parent.name == "files" else summary.parent
            config = summary.parent / "config.yaml"
            settings = _wandb_config(read_yaml(config)) if config.is_file() else {}
            metrics = {k: v for k, v in flatten(read_json(summary)).items() if _is_outcome(k, v)}
            yield Found(settings, metrics, {"run_id": folder.name.rpartition("-")[2]})

    return table_of(str(root), runs())


def read_json(path: Path) -> Mapping[str, Any]:
    """The object in a JSON file."""
    try:
        value = json.loads(path.read_bytes())
    except ValueError as error:
        raise ForecastError(f"{path} is not JSON ({error}); write it again or delete it") from error
    if not isinstance(value, dict):
        raise ForecastError(f"{path} is not a JSON object; write names and values")
    return value


def _wandb_config(value: Mapping[str, Any]) -> dict[str, Any]:
    """wandb writes each setting as {value: ..., desc: ...} and keeps its own affairs under `_wandb`."""
    own = {"_wandb", "wandb_version"}
    bare = {k: v["value"] if isinstance(v, dict) and "value" in v else v for k, v in value.items() if k not in own}
    return dict(flatten(bare))


def _is_outcome(name: str, value: object) -> bool:
    return not name.startswith("_") and isinstance(value, (int, float)) and not isinstance(value, bool)
