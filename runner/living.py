"""Which jobs of a launch folder are alive, as seen from any process."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pydantic

from runner.attempt import JobState

__all__ = ["Job", "jobs_of", "process_lives"]


@dataclass(frozen=True)
class Job:
    """One submitted job. alive is None where it cannot be known from here (another machine)."""

    submission: str
    name: str
    job_id: str | None
    runs: tuple[str, ...]
    state: Literal["waiting", "running", "finished", "failed", "lost", "unknown"]
    alive: bool | None
    reason: str | None = None


def process_lives(host: str, pid: int, created: float) -> bool | None:
    """Whether the process that started at `created` (seconds since 1970) lives; None on another machine."""
    import psutil

    if host != socket.gethostname():
        return None
    try:
        process = psutil.Process(pid)
        return bool(abs(process.create_time() - created) < 2 and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def jobs_of(folder: Path) -> Iterator[Job]:
    """Every job that was ever submitted for `folder`, oldest first."""
    for submission in sorted((folder / "submissions").glob("[0-9]*")):
        known = _submitted(submission)
        for path in sorted(submission.glob("job-*.json")):
            yield _job(submission, path, known)


def _submitted(submission: Path) -> dict[str, dict[str, object]]:
    try:
        content = json.loads((submission / "submitted.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return {job["list"]: job | {"host": content["host"]} for job in content["jobs"]}


def _job(submission: Path, path: Path, known: dict[str, dict[str, object]]) -> Job:
    runs = tuple(json.loads(path.read_bytes())["runs"])
    record = known.get(path.name)
    said = _said(path.with_suffix(".state"))
    job_id = said.job_id if said else str(record["job_id"]) if record else None
    if said and said.state in ("finished", "failed"):
        return Job(submission.name, path.stem, job_id, runs, said.state, False, said.reason)
    alive = [process_lives(said.host, said.pid, said.created)] if said else []
    if record and record.get("pid"):
        alive.append(process_lives(str(record["host"]), int(str(record["pid"])), float(str(record["created"]))))
    living = True if True in alive else None if None in alive else False
    state = (said.state if said else "waiting") if living else "unknown" if living is None else "lost"
    return Job(submission.name, path.stem, job_id, runs, state, living)


def _said(path: Path) -> JobState | None:
    try:
        return JobState.model_validate_json(path.read_bytes())
    except (OSError, pydantic.ValidationError):
        return None
