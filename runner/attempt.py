"""One try of one run, on record: opened and closed by the job, never removed."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal

from forecast.files import write_atomically
from forecast.records import Counters, LossCurve, Provenance, Record, Sha256
from runner.spec import JobSpec, RunFolder

__all__ = ["Attempt", "JobState", "close_attempt", "job_id", "note_attempt", "now", "open_attempt", "this_process"]


class JobState(Record):
    """What a job says of itself, beside its list."""

    state: Literal["waiting", "running", "finished", "failed", "stopped"]
    host: str
    pid: int
    created: float
    job_id: str | None = None
    reason: str | None = None
    at: str


class Attempt(Record):
    """One try of one run. Never removed; closed by the job, or by the next attempt if the job died.

    gpus: allocated to the job. slurm_submit, slurm_start: UTC, as the controller says.
    counters, provenance, loss_curve: of this attempt, also of one that failed or was stopped.
    """

    number: int
    status: Literal["running", "finished", "failed", "stopped", "lost"]
    reason: str | None = None
    host: str
    pid: int
    created: float
    job_id: str | None = None
    submitted: str
    started: str
    ended: str | None = None
    spec_hash: Sha256
    code_hash: Sha256
    gpus: int = 0
    slurm_submit: str | None = None
    slurm_start: str | None = None
    run_id: str | None = None
    registration: Sha256 | None = None
    design_hash: Sha256 | None = None
    seed: int | None = None
    counters: Counters | None = None
    provenance: Provenance | None = None
    loss_curve: LossCurve | None = None


def now() -> str:
    """The time, UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def open_attempt(run: RunFolder, spec: JobSpec, *, code_hash: str, submitted: str, gpus: int = 0) -> Attempt:
    """Begin an attempt; the lock is ours, so an earlier one that still says "running" has died."""
    earlier = run.attempts
    for path in earlier:
        attempt = Attempt.model_validate_json(path.read_bytes())
        if attempt.status == "running":
            close_attempt(
                run, attempt, "lost", "the job ended without a word (killed, out of memory, or the machine stopped)"
            )
    host, pid, created = this_process()
    attempt = Attempt(
        number=int(earlier[-1].name.split(".")[0]) + 1 if earlier else 1,
        status="running",
        host=host,
        pid=pid,
        created=created,
        job_id=job_id(),
        submitted=submitted,
        started=now(),
        spec_hash=spec.hash,
        code_hash=code_hash,
        gpus=gpus,
        run_id=spec.outcome_id,
        registration=spec.registration,
        design_hash=spec.design.hash,
        seed=spec.seed,
        **slurm_times(),
    )
    write_atomically(run.attempt(attempt.number), attempt.model_dump_json(indent=1).encode())
    return attempt


def close_attempt(
    run: RunFolder, attempt: Attempt, status: Literal["finished", "failed", "stopped", "lost"], reason: str | None
) -> None:
    """Write how an attempt ended, beside what is on record of it; the time of a lost one is unknown."""
    ended = None if status == "lost" else now()
    note_attempt(run, attempt.number, status=status, reason=reason, ended=ended)


def note_attempt(run: RunFolder, number: int, **fields: Any) -> None:
    """Put `fields` into the record of attempt `number`."""
    path = run.attempt(number)
    attempt = Attempt.model_validate_json(path.read_bytes()).model_copy(update=fields)
    write_atomically(path, attempt.model_dump_json(indent=1).encode())


def this_process() -> tuple[str, int, float]:
    """This process: host, pid, and the time of its start (seconds since 1970), which tells it from a later one."""
    import psutil

    return socket.gethostname(), os.getpid(), psutil.Process().create_time()


@cache
def slurm_times() -> dict[str, str]:
    """When SLURM took and started this job, as its controller says; nothing outside of SLURM or if it is away."""
    number = os.environ.get("SLURM_JOB_ID")
    if number is None:
        return {}
    command = ["scontrol", "show", "job", "-o", number]
    try:
        # UTC whatever the cluster's time zone is
        said = subprocess.run(
            command, env=os.environ | {"TZ": "UTC"}, capture_output=True, text=True, timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    names = {"slurm_submit": "SubmitTime", "slurm_start": "StartTime"}
    found = {key: re.search(rf"\b{name}=(\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d)", said) for key, name in names.items()}
    return {key: f"{match[1]}Z" for key, match in found.items() if match}


def job_id() -> str | None:
    """The id of the job in which we run, None outside of one."""
    array, task = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    if array and task:
        return f"{array}_{task}"
    return os.environ.get("SLURM_JOB_ID") or os.environ.get("SUBMITIT_LOCAL_JOB_ID")
