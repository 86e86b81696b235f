"""What runs inside a job: a list of job specs in, one run.json a run out."""

from __future__ import annotations

import importlib
import json
import os
import platform
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pydantic

from forecast.errors import ForecastError
from forecast.files import write_atomically
from forecast.records import Counters, Provenance, Record, Run, Sha256
from runner.attempt import Attempt, JobState, close_attempt, job_id, now, open_attempt, this_process
from runner.claim import claimed, slot
from runner.peak_memory import peak_memory_bytes, reset_peak_memory
from runner.snapshot import verify_running_code
from runner.spec import JobSpec, RunFolder, run_folder

__all__ = ["JobList", "do_jobs"]


class JobList(Record):
    """What one job is to do. Paths are relative to the launch folder.

    runs: run ids in the order in which they are tried; several jobs may share a list.
    slots: the most jobs of the folder that work at a time on one machine, None: no limit.
    """

    format: Literal["platocast-joblist-1"] = "platocast-joblist-1"
    runs: tuple[str, ...]
    snapshot: str
    code_hash: Sha256
    content_hash: Sha256
    lock_hash: Sha256 | None = None
    code_commit: str | None = None
    code_dirty: bool | None = None
    submitted: str
    slots: int | None = None
    attempts: int = 3


def do_jobs(path: str) -> dict[str, int]:
    """Do the runs of the job list at `path`; how many finished and failed here.

    A run that has an outcome, or that another job is doing, is passed over; one whose job died is
    taken up again, at most `attempts` times a job.
    """
    listed = Path(path)
    folder = listed.resolve().parents[2]
    jobs = JobList.model_validate_json(listed.read_bytes())
    state = listed.with_suffix(".state")
    try:
        verify_running_code(folder / jobs.snapshot, jobs.code_hash, jobs.content_hash)
        if jobs.slots is None:
            _say(state, "running")
            done = _work(folder, jobs)
        else:
            _say(state, "waiting")
            with slot(folder / "slots" / socket.gethostname(), jobs.slots) as number:
                _say(state, "running")
                os.environ["PLATOCAST_SLOT"] = str(number)
                done = _work(folder, jobs)
    except BaseException as error:
        _say(state, "failed", _reason(error))
        raise
    _say(state, "finished")
    return done


def _work(folder: Path, jobs: JobList) -> dict[str, int]:
    """Pass over the list until every run has an outcome, is being done elsewhere, or was tried often enough.

    Runs that were tried before come last, so that one that kills its job does not keep the rest from being done.
    """
    done = {"finished": 0, "failed": 0}
    tries = dict.fromkeys(jobs.runs, 0)
    again = True
    while again:
        again = False
        for run in sorted((run_folder(folder, name) for name in jobs.runs), key=lambda run: len(run.attempts)):
            run_id = run.run_id
            if run.outcome.exists() or tries[run_id] >= jobs.attempts:
                continue
            with claimed(run.lock) as ours:
                if not ours or run.outcome.exists():
                    continue
                tries[run_id] += 1
                outcome = _attempt(run, jobs)
            again = True
            done[outcome.status] += 1
    return done


def _attempt(run: RunFolder, jobs: JobList) -> Run:
    spec = JobSpec.model_validate_json(run.spec.read_bytes())
    attempt = open_attempt(run, spec, code_hash=jobs.code_hash, submitted=jobs.submitted)
    try:
        outcome = _outcome(run, spec, jobs, attempt)
        verify_running_code(run.path.parents[1] / jobs.snapshot, jobs.code_hash, jobs.content_hash)
    except BaseException as error:
        close_attempt(run, attempt, "stopped", _reason(error))
        raise
    write_atomically(run.outcome, outcome.model_dump_json(indent=1).encode() + b"\n")
    close_attempt(run, attempt, outcome.status, outcome.failure)
    return outcome


def _outcome(run: RunFolder, spec: JobSpec, jobs: JobList, attempt: Attempt) -> Run:
    """Train and evaluate. What goes wrong in the training becomes a failed run; a stop is passed on."""
    _limit_threads(spec.threads)
    reset_peak_memory()
    clock, cpu = time.monotonic(), time.process_time()
    try:
        entry = _entry(spec.entry)
        result = entry(spec.design.settings, seed=spec.seed, threads=spec.threads, progress=_Progress(run, attempt))
        counters = _measured(result.counters, time.monotonic() - clock, time.process_time() - cpu)
        provenance = _provenance(spec, jobs, attempt, result.data_hash)
        fields = spec.failed("-").model_dump() | {"status": "finished", "failure": None}
        return Run.model_validate(
            fields | {"evaluations": result.evaluations, "counters": counters, "provenance": provenance}
        )
    except (Exception, SystemExit) as error:
        write_atomically(run.attempt(attempt.number).with_suffix(".trace.txt"), traceback.format_exc().encode())
        provenance = _provenance(spec, jobs, attempt, None)
        return spec.failed(_reason(error)).model_copy(update={"provenance": provenance})


def _entry(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ForecastError(f"entry {name} cannot be loaded: {error}; give 'module:function' on PYTHONPATH") from error
    if not callable(found):
        raise ForecastError(f"entry {name} is not a function but {type(found).__name__}")
    return found  # type: ignore[no-any-return]


def _limit_threads(threads: int) -> None:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(threads)


def _measured(counters: Counters, wall_s: float, cpu_s: float) -> Counters:
    """`counters` with time and memory as this process saw them, where the training gave none."""
    seen = {"wall_s": wall_s, "cpu_s": cpu_s, "peak_memory_bytes": peak_memory_bytes()}
    return counters.model_copy(update={k: v for k, v in seen.items() if getattr(counters, k) is None})


def _provenance(spec: JobSpec, jobs: JobList, attempt: Attempt, data_hash: str | None) -> Provenance:
    return Provenance(
        code_hash=jobs.code_hash,
        code_commit=jobs.code_commit,
        code_dirty=jobs.code_dirty,
        lock_hash=jobs.lock_hash,
        data_hash=data_hash,
        hardware=_hardware(),
        threads=spec.threads,
        submitted=jobs.submitted,
        started=attempt.started,
        ended=now(),
        job_id=attempt.job_id,
        attempt=attempt.number,
        source="platocast",
    )


def _hardware() -> str:
    """The processor's name, and the GPU's where the training used one."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    text = names[0] if names else platform.processor() or platform.machine()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        text += f" + {torch.cuda.get_device_name()}"
    return text


def _say(path: Path, state: Literal["waiting", "running", "finished", "failed"], reason: str | None = None) -> None:
    host, pid, created = this_process()
    said = JobState(state=state, host=host, pid=pid, created=created, job_id=job_id(), reason=reason, at=now())
    write_atomically(path, said.model_dump_json().encode())


def _reason(error: BaseException) -> str:
    if isinstance(error, pydantic.ValidationError):
        first = error.errors()[0]
        return f"{error.title}: {'.'.join(map(str, first['loc']))} {first['msg']}".strip()
    if isinstance(error, MemoryError):
        return f"out of memory: {error}".rstrip(": ")
    return f"{type(error).__name__}: {error}".rstrip(": ")


class _Progress:
    """Writes how far a run is, at most once a second."""

    def __init__(self, run: RunFolder, attempt: Attempt) -> None:
        self._path, self._attempt, self._started, self._last = run.progress, attempt.number, time.time(), 0.0

    def __call__(self, done: int, total: int) -> None:
        at = time.time()
        if at - self._last < 1 and done < total:
            return
        self._last = at
        temporary = self._path.with_suffix(".tmp")
        content = {"done": done, "total": total, "at": at, "started": self._started, "attempt": self._attempt}
        temporary.write_text(json.dumps(content))
        os.replace(temporary, self._path)


if __name__ == "__main__":
    do_jobs(sys.argv[1])
