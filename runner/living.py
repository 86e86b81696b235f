"""Which jobs of a launch folder are alive, as seen from any process."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pydantic

from runner.attempt import JobState
from runner.slurm_queue import QueuedJob, SlurmAway, Tasks, query, verdict

__all__ = ["OUT_OF_MEMORY", "Ask", "Job", "jobs_of", "process_lives"]

Ask = Callable[[Sequence[tuple[str, int]]], Tasks]


@dataclass(frozen=True)
class Job:
    """One submitted job. alive is None where it cannot be known from here.

    reason: why it waits, or how it ended. array: the SLURM array's unique name and the task's index.
    """

    submission: str
    name: str
    executor: str
    job_id: str | None
    runs: tuple[str, ...]
    state: Literal["waiting", "running", "finished", "failed", "lost", "unknown"]
    alive: bool | None
    reason: str | None = None
    array: tuple[str, int] | None = None
    submitted_s_ago: float = 0
    patience_s: float = 60


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


def jobs_of(folder: Path, *, ask: Ask = query) -> list[Job]:
    """Every job that was ever submitted for `folder`, oldest first. SLURM is asked once, for all that may live."""
    jobs = []
    for submission in sorted((folder / "submissions").glob("[0-9]*")):
        record = _json(submission / "submitted.json") or {}
        known = {job["list"]: job for job in record.get("jobs", [])}
        for path in sorted(submission.glob("job-*.json")):
            arrays = record.get("arrays", [])
            jobs.append(
                _slurm_job(submission, path, record, arrays)
                if arrays
                else _local_job(submission, path, known.get(path.name), record)
            )
    return _asked(folder, jobs, ask)


def _local_job(submission: Path, path: Path, known: dict[str, Any] | None, record: dict[str, Any]) -> Job:
    said, runs = _said(path), _runs(path)
    job_id = said.job_id if said else str(known["job_id"]) if known else None
    job = Job(submission.name, path.stem, record.get("executor", "local"), job_id, runs, "lost", False)
    if said and said.state in ("finished", "failed"):
        return replace(job, state=said.state, reason=said.reason)
    alive = [process_lives(said.host, said.pid, said.created)] if said else []
    if known and known.get("pid"):
        alive.append(process_lives(record["host"], known["pid"], known["created"]))
    if True in alive:
        return replace(job, state="running" if said and said.state == "running" else "waiting", alive=True)
    if None in alive:
        return replace(job, state="unknown", alive=None, reason="runs on another machine")
    return replace(job, reason=said.reason if said and said.state == "stopped" else None)


def _slurm_job(submission: Path, path: Path, record: dict[str, Any], arrays: list[dict[str, Any]]) -> Job:
    """As its own files say; SLURM is asked about it afterwards if they do not say that it has ended."""
    number = int(path.stem.split("-")[1])
    array = next(a for a in arrays if a["first"] <= number < a["first"] + a["count"])
    said, task = _said(path), number - array["first"]
    job = Job(
        submission=submission.name,
        name=path.stem,
        executor="slurm",
        job_id=f"{array['job_id']}_{task}" if array["job_id"] else said.job_id if said else None,
        runs=_runs(path),
        state="unknown",
        alive=None,
        array=(array["name"], task),
        submitted_s_ago=time.time() - record["at"],
        patience_s=60 if array["job_id"] else 15,
    )
    if said and said.state in ("finished", "failed"):
        return replace(job, state=said.state, alive=False, reason=said.reason)
    return job


def _asked(folder: Path, jobs: list[Job], ask: Ask) -> list[Job]:
    tasks = [job.array for job in jobs if job.array and job.alive is None]
    if not tasks:
        return jobs
    try:
        found = ask(tasks)
    except SlurmAway as away:
        reason = f"SLURM does not answer ({away})"
        return [replace(job, reason=reason) if job.array and job.alive is None else job for job in jobs]
    return [_judged(job, found.get(job.array), folder) if job.array and job.alive is None else job for job in jobs]


def _judged(job: Job, queued: QueuedJob | None, folder: Path) -> Job:
    word = verdict(queued, submitted_s_ago=job.submitted_s_ago, patience_s=job.patience_s)
    job_id = queued.job_id if queued else job.job_id
    if word == "unknown":
        return replace(job, job_id=job_id, reason="SLURM does not know it yet")
    if word == "ended" or (
        queued is None and (folder / "submissions" / job.submission / f"{job.name}.cancelled").exists()
    ):
        return replace(job, job_id=job_id, state="lost", alive=False, reason=_ending(job, queued, folder))
    assert queued is not None
    return replace(job, job_id=job_id, state=word, alive=True, reason=queued.reason or queued.state)


OUT_OF_MEMORY = "ran out of memory"
_MEMORY_WORDS = re.compile(rb"exceeded memory limit|oom.?kill|out of memory", re.IGNORECASE)
_ENDINGS = {
    "TIMEOUT": "reached its time limit",
    "OUT_OF_MEMORY": OUT_OF_MEMORY,
    "CANCELLED": "was cancelled",
    "NODE_FAIL": "lost its node",
    "PREEMPTED": "was preempted",
}


def _ending(job: Job, queued: QueuedJob | None, folder: Path) -> str:
    """Why a job ended, in words; SLURM calls an end by memory FAILED where it has no cgroups, so its log is read."""
    if queued is None:
        return "SLURM knows no such job (cancelled while it waited, or long forgotten)"
    words = _ENDINGS.get(queued.state.split()[0], "ended without an outcome")
    said = f"SLURM: {' '.join([queued.state, queued.reason]).strip()}"
    if queued.state == "FAILED":
        log = log_tail(folder, job.submission, queued.job_id)
        words = OUT_OF_MEMORY if _MEMORY_WORDS.search(log) else words
        lines = [line for line in log.decode(errors="replace").splitlines() if line.strip()]
        said += f"; its log ends: {lines[-1].strip()[:200]}" if lines else ""
    return f"{words} ({said})"


def log_tail(folder: Path, submission: str, job_id: str, size: int = 20_000) -> bytes:
    """The end of a job's output, empty where there is none."""
    try:
        with (folder / "submissions" / submission / "slurm" / f"{job_id}_0_log.out").open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - size))
            return file.read()
    except OSError:
        return b""


def _runs(path: Path) -> tuple[str, ...]:
    return tuple(json.loads(path.read_bytes())["runs"])


def _said(path: Path) -> JobState | None:
    try:
        return JobState.model_validate_json(path.with_suffix(".state").read_bytes())
    except (OSError, pydantic.ValidationError):
        return None


def _json(path: Path) -> dict[str, Any] | None:
    try:
        return dict(json.loads(path.read_bytes()))
    except (OSError, ValueError):
        return None
