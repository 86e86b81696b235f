"""What runs inside a job: a list of job specs in, one run.json a run out."""

from __future__ import annotations

import json
import os
import socket
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

from forecast.files import write_atomically
from forecast.records import Run
from runner.attempt import Attempt, JobState, close_attempt, job_id, now, open_attempt, this_process
from runner.claim import claimed, slot
from runner.joblist import JobList
from runner.logs import MARK
from runner.outcome import follow_run, outcome_of, reason_of
from runner.ranks import Ranks
from runner.snapshot import verify_running_code
from runner.spec import JobSpec, RunFolder, run_folder
from runner.stopping import Stop, StopRequest, requeue

__all__ = ["TO_BE_REQUEUED", "do_jobs"]

TO_BE_REQUEUED = 75
"""The exit code of a job that stopped before its end (EX_TEMPFAIL)."""


def do_jobs(path: str) -> dict[str, int]:
    """Do the runs of the job list at `path`; how many finished and failed here.

    A run that has an outcome, or that another job is doing, is passed over; one whose job died is
    taken up again, at most `attempts` times a job. Told to stop, the job is requeued where SLURM runs it.
    """
    listed = Path(path)
    folder = listed.resolve().parents[2]
    jobs = JobList.model_validate_json(listed.read_bytes())
    ranks = Ranks.here(listed.with_suffix(".turns"))
    request = StopRequest(jobs.limit_s, jobs.signal_delay_s).listen()
    verify_running_code(folder / jobs.snapshot, jobs.code_hash, jobs.content_hash)
    if ranks.rank > 0:
        for run_id in ranks.follow():
            follow_run(run_folder(folder, run_id), ranks.rank, ranks.count)
        return {}
    return _lead(folder, listed.with_suffix(".state"), jobs, request, ranks)


def _lead(folder: Path, state: Path, jobs: JobList, request: StopRequest, ranks: Ranks) -> dict[str, int]:
    """What the job's first task does: everything that is written."""
    try:
        _say(state, "waiting")
        with slot(folder / "slots" / socket.gethostname(), jobs.slots) if jobs.slots else nullcontext() as number:
            _say(state, "running")
            _take_gpu(jobs, number)
            done = _work(folder, jobs, request, ranks)
    except Stop as stop:
        problem = requeue() if stop.cause != "terminated" else None
        _say(state, "stopped", f"{stop.cause}; {problem}" if problem else stop.cause)
        raise SystemExit(TO_BE_REQUEUED) from stop
    except BaseException as error:
        _say(state, "failed", reason_of(error))
        raise
    print(f"{MARK}s of this job are done: {done}", flush=True)
    _say(state, "finished")
    return done


def _work(folder: Path, jobs: JobList, request: StopRequest, ranks: Ranks) -> dict[str, int]:
    """Pass over the list until every run has an outcome, is being done elsewhere, or was tried often enough.

    Runs that were tried before come last, so that one that kills its job does not keep the rest from being done.
    """
    done = {"finished": 0, "failed": 0}
    tries = dict.fromkeys(jobs.runs, 0)
    again = True
    while again:
        again = False
        for run in sorted((run_folder(folder, name) for name in jobs.runs), key=lambda run: len(run.attempts)):
            request.raise_if_told()
            if run.outcome.exists() or run.cancelled.exists() or tries[run.run_id] >= jobs.attempts:
                continue
            with claimed(run.lock) as ours:
                if not ours or run.outcome.exists():
                    continue
                ranks.announce(sum(tries.values()), run.run_id)
                tries[run.run_id] += 1
                outcome = _attempt(run, jobs, request)
            again = True
            if outcome is not None:
                done[outcome.status] += 1
    ranks.announce(sum(tries.values()), None)
    return done


def _attempt(run: RunFolder, jobs: JobList, request: StopRequest) -> Run | None:
    """The outcome, None if the run was cancelled and the job goes on with others."""
    spec = JobSpec.model_validate_json(run.spec.read_bytes())
    gpus = jobs.gpus_allocated or (len(os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")) if jobs.gpus else 0)
    attempt = open_attempt(run, spec, code_hash=jobs.code_hash, submitted=jobs.submitted, gpus=gpus)
    print(f"{MARK} {run.run_id} attempt {attempt.number} {attempt.started}", flush=True)
    try:
        outcome = outcome_of(run, spec, jobs, attempt, request)
        verify_running_code(run.path.parents[1] / jobs.snapshot, jobs.code_hash, jobs.content_hash)
    except Stop as stop:
        if stop.cause == "terminated" and run.cancelled.exists():
            request.cause = None
            close_attempt(run, attempt, "stopped", "cancelled")
            return None
        close_attempt(run, attempt, "stopped", stop.cause)
        if stop.cause != "time limit" or _times_at_limit(run) <= jobs.requeues:
            raise
        outcome = spec.failed(
            f"time limit: stopped {jobs.requeues + 1} times; give the preset more time_min or the run a checkpoint"
        )
    except BaseException as error:
        close_attempt(run, attempt, "stopped", reason_of(error))
        raise
    return _settle(run, attempt, outcome)


def _settle(run: RunFolder, attempt: Attempt, outcome: Run) -> Run:
    """Write the outcome, unless another task of this job has said why the run failed."""
    if run.outcome.exists():
        outcome = Run.model_validate_json(run.outcome.read_bytes())
    else:
        write_atomically(run.outcome, outcome.model_dump_json(indent=1).encode() + b"\n")
    close_attempt(run, attempt, outcome.status, outcome.failure)
    run.checkpoint.unlink(missing_ok=True)
    return outcome


def _times_at_limit(run: RunFolder) -> int:
    records = [Attempt.model_validate_json(path.read_bytes()) for path in run.attempts]
    return sum(record.status == "stopped" and record.reason == "time limit" for record in records)


def _take_gpu(jobs: JobList, number: int | None) -> None:
    """Local jobs: slot k takes the k-th share of the GPUs that the launcher saw."""
    if number is not None and jobs.gpus:
        share = max(1, len(jobs.gpus) // (jobs.slots or 1))
        first = number * share % len(jobs.gpus)
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(jobs.gpus[first : first + share])


def _say(
    path: Path, state: Literal["waiting", "running", "finished", "failed", "stopped"], reason: str | None = None
) -> None:
    host, pid, created = this_process()
    said = JobState(state=state, host=host, pid=pid, created=created, job_id=job_id(), reason=reason, at=now())
    write_atomically(path, said.model_dump_json().encode())


def _do_task(submission: Path, first: int) -> None:
    """Do one task of a SLURM array; first: the number of the array's first list.

    An array that a sleeping controller had taken without saying so, and that was sent a second time, does nothing.
    """
    record = json.loads((submission / "submitted.json").read_bytes())
    other = next(array["job_id"] for array in record["arrays"] if array["first"] == first)
    if other not in (None, os.environ["SLURM_ARRAY_JOB_ID"]):
        print(f"this array was sent twice; job {other} does its runs", flush=True)
        return
    do_jobs(str(submission / f"job-{first + int(os.environ['SLURM_ARRAY_TASK_ID']):04d}.json"))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        _do_task(Path(sys.argv[1]), int(sys.argv[2]))
    else:
        do_jobs(sys.argv[1])
