"""What a run printed: its part of its job's output, and the trace of its error."""

from __future__ import annotations

import json
from pathlib import Path

from forecast.errors import ForecastError
from runner.spec import run_folder

__all__ = ["MARK", "read_log"]

MARK = "== platocast run"
"""How a job begins a run's part of its output."""


def read_log(folder: Path, run_id: str, attempt: int | None = None) -> str:
    """The output of one attempt (the last, if None) at a run. ForecastError where nothing is left of it."""
    run = run_folder(folder, run_id)
    if not run.spec.exists():
        raise ForecastError(f"{folder} has no run {run_id}; platocast status {folder} --runs lists them")
    records = run.attempts
    if not records:
        raise ForecastError(f"run {run_id} was not begun yet, so it has no log")
    number = len(records) if attempt is None else attempt
    if not run.attempt(number).exists():
        raise ForecastError(f"run {run_id} has attempts 1 to {len(records)}, not {number}")
    record = json.loads(run.attempt(number).read_bytes())
    parts = [
        part
        for path in _outputs(folder, str(record["job_id"]))
        for part in _parts(path.read_text("utf-8", errors="replace"), f"{MARK} {run_id} attempt {number} ")
    ]
    trace = run.attempt(number).with_suffix(".trace.txt")
    if trace.exists():
        parts.append(trace.read_text("utf-8", errors="replace"))
    if not parts:
        raise ForecastError(f"the output of job {record['job_id']} is gone; the run's record is {run.attempt(number)}")
    return "\n".join(part.rstrip("\n") for part in parts) + "\n"


def _outputs(folder: Path, job_id: str) -> list[Path]:
    found = (folder / "submissions").glob(f"*/*/{job_id}_*_log.out")
    return sorted(found, key=lambda path: int(path.name.removesuffix("_log.out").rsplit("_", 1)[1]))


def _parts(text: str, mark: str) -> list[str]:
    """What lies between this mark and the next mark of any run."""
    found, keep = [], False
    for line in text.splitlines():
        if line.startswith(MARK):
            keep = line.startswith(mark)
        if keep:
            found.append(line)
    return ["\n".join(found)] if found else []
