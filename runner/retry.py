"""Try failed runs again: the failed outcome stays on record, the new one gets an id of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pydantic

from forecast.errors import ForecastError
from forecast.files import canonical_json, write_atomically
from runner.claim import claimed
from runner.presets import ExecutorChoice, Preset
from runner.spec import JobSpec, RunFolder, run_folder

__all__ = ["remembered", "reopen", "specs_of"]


def reopen(folder: Path, run_ids: Sequence[str] | None = None) -> list[JobSpec]:
    """Put failed runs (all, or those named) back to be done; their specs, each with one more retry."""
    if not (folder / "runs").is_dir():
        raise ForecastError(f"{folder} holds no runs; give the folder of `platocast launch --folder`")
    chosen = [run_folder(folder, name) for name in run_ids or ()] or _all(folder)
    reopened = []
    for run in chosen:
        if not run.spec.exists():
            raise ForecastError(f"{folder} has no run {run.run_id}; platocast status {folder} --runs lists them")
        with claimed(run.lock) as ours:
            if ours and _status(run) == "failed":
                reopened.append(_reopen(run))
            elif run_ids:
                raise ForecastError(f"run {run.run_id} has not failed, so there is nothing to retry")
    return reopened


def remembered(folder: Path) -> tuple[ExecutorChoice, Preset, Path | None]:
    """Where the folder's runs were last launched, and the log that governs them."""
    try:
        content = json.loads((folder / "launched.json").read_bytes())
        log = content["log"]
        return (
            ExecutorChoice.model_validate(content["choice"]),
            Preset.model_validate(content["preset"]),
            Path(log) if log else None,
        )
    except (OSError, ValueError, KeyError, pydantic.ValidationError) as error:
        raise ForecastError(f"{folder} does not say how it was launched ({error}); use platocast launch") from error


def specs_of(folder: Path) -> list[JobSpec]:
    """All runs of `folder` as their specs stand."""
    return [JobSpec.model_validate_json(run.spec.read_bytes()) for run in _all(folder)]


def _reopen(run: RunFolder) -> JobSpec:
    spec = JobSpec.model_validate_json(run.spec.read_bytes())
    kept = run.path / "failed" / f"{spec.retry:03d}.json"
    kept.parent.mkdir(exist_ok=True)
    again = spec.model_copy(update={"retry": spec.retry + 1})
    write_atomically(run.spec, canonical_json(again.model_dump(mode="json")))
    os.replace(run.outcome, kept)
    return again


def _all(folder: Path) -> list[RunFolder]:
    return [RunFolder(path) for path in sorted((folder / "runs").iterdir()) if (path / "spec.json").exists()]


def _status(run: RunFolder) -> str | None:
    try:
        return str(json.loads(run.outcome.read_bytes())["status"])
    except (OSError, ValueError, KeyError):
        return None
