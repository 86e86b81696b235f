"""End jobs, or single runs, and note it: a cancelled run is one that the next launch may take up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from forecast.errors import ForecastError
from forecast.files import write_atomically
from runner.attempt import Attempt, now
from runner.living import Job, jobs_of, process_lives
from runner.spec import RunFolder, run_folder

__all__ = ["cancel_jobs", "cancel_runs"]


def cancel_jobs(
    folder: Path, *, patience_s: float = 10, pause: Callable[[float], None] = time.sleep
) -> tuple[list[Job], list[Job]]:
    """End every living job of `folder`: those that were ended, and those that cannot be seen from here.

    Local jobs get SIGTERM, and SIGKILL after `patience_s` seconds; SLURM's get scancel.
    """
    jobs = jobs_of(folder)
    living, unseen = [job for job in jobs if job.alive], [job for job in jobs if job.alive is None]
    for job in living:
        path = folder / "submissions" / job.submission / f"{job.name}.cancelled"
        write_atomically(path, json.dumps({"at": now()}).encode())
    _scancel([str(job.job_id) for job in living if job.executor == "slurm"])
    local = [job for job in living if job.executor != "slurm"]
    for number, wait in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 5)):
        still = [job for job in local if _signal(folder, job, number)]
        end = time.monotonic() + wait
        while time.monotonic() < end and any(_lives(folder, job) for job in still):
            pause(0.05)
    return living, unseen


def cancel_runs(folder: Path, run_ids: Sequence[str]) -> list[str]:
    """Leave these runs out of the jobs that have them, and stop those that are running; what was stopped."""
    stopped = []
    for run_id in run_ids:
        run = run_folder(folder, run_id)
        if not run.spec.exists():
            raise ForecastError(f"{folder} has no run {run_id}; platocast status {folder} --runs lists them")
        write_atomically(run.cancelled, json.dumps({"at": now()}).encode())
        if _stop(folder, run):
            stopped.append(run_id)
    return stopped


def _stop(folder: Path, run: RunFolder) -> bool:
    """Signal the job that is doing `run`, if one is."""
    if run.outcome.exists() or not run.attempts:
        return False
    attempt = Attempt.model_validate_json(run.attempts[-1].read_bytes())
    if attempt.status != "running":
        return False
    job = next((job for job in jobs_of(folder) if job.job_id == attempt.job_id and job.alive), None)
    if job is not None and job.executor == "slurm":
        command = ["scancel", "--signal=TERM", str(attempt.job_id)]
        return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
    if process_lives(attempt.host, attempt.pid, attempt.created):
        os.kill(attempt.pid, signal.SIGTERM)
        return True
    return False


def _scancel(job_ids: Sequence[str], at_once: int = 200) -> None:
    for first in range(0, len(job_ids), at_once):
        command = ["scancel", *job_ids[first : first + at_once]]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ForecastError(f"scancel did not work ({error}); cancel again when SLURM answers") from error
        if done.returncode != 0 and "Invalid job id" not in done.stderr:
            raise ForecastError(f"scancel: {done.stderr.strip()}; cancel again when SLURM answers")


def _signal(folder: Path, job: Job, number: signal.Signals) -> bool:
    """Signal a local job's worker, or its whole session where it has not said its pid or must die."""
    if not _lives(folder, job):
        return False
    pid = _worker(folder, job)
    try:
        if pid is not None and number == signal.SIGTERM:
            os.kill(pid, number)
        else:
            os.killpg(int(str(job.job_id)), number)
    except ProcessLookupError:
        return False
    return True


def _lives(folder: Path, job: Job) -> bool:
    return any(
        other.alive and (other.submission, other.name) == (job.submission, job.name) for other in jobs_of(folder)
    )


def _worker(folder: Path, job: Job) -> int | None:
    try:
        said = json.loads((folder / "submissions" / job.submission / f"{job.name}.state").read_bytes())
    except (OSError, ValueError):
        return None
    return int(said["pid"])
