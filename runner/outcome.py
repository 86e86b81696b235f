"""One attempt at one run: train, evaluate, measure; what goes wrong in the training is a failed run."""

from __future__ import annotations

import importlib
import inspect
import io
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pydantic

from forecast.errors import ForecastError
from forecast.files import write_atomically
from forecast.records import Counters, Provenance, Run
from runner.attempt import Attempt, now
from runner.checkpoint import Checkpoint
from runner.joblist import JobList
from runner.peak_memory import peak_memory_bytes, reset_peak_memory
from runner.spec import JobSpec, RunFolder
from runner.stopping import StopRequest

__all__ = ["follow_run", "outcome_of", "reason_of"]


def outcome_of(run: RunFolder, spec: JobSpec, jobs: JobList, attempt: Attempt, request: StopRequest) -> Run:
    """Train and evaluate. What goes wrong in the training becomes a failed run; a stop is passed on."""
    _limit_threads(spec.threads)
    reset_peak_memory()
    clock, cpu = time.monotonic(), time.process_time()
    try:
        entry = _entry(spec.entry)
        progress, checkpoint = (
            _Progress(run, attempt, request),
            Checkpoint(run.checkpoint, request, spec_hash=spec.hash),
        )
        result = entry(spec.design.settings, **_arguments(entry, spec, progress, checkpoint))
        _keep_losses(run, result)
        counters = _measured(result.counters, time.monotonic() - clock, time.process_time() - cpu, attempt.gpus)
        provenance = _provenance(spec, jobs, attempt, result.data_hash)
        fields = spec.failed("-").model_dump() | {"status": "finished", "failure": None}
        return Run.model_validate(
            fields | {"evaluations": result.evaluations, "counters": counters, "provenance": provenance}
        )
    except (Exception, SystemExit) as error:
        write_atomically(run.attempt(attempt.number).with_suffix(".trace.txt"), traceback.format_exc().encode())
        provenance = _provenance(spec, jobs, attempt, None)
        return spec.failed(_by_rank(error)).model_copy(update={"provenance": provenance})


def _entry(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ForecastError(f"entry {name} cannot be loaded: {error}; give 'module:function' on PYTHONPATH") from error
    if not callable(found):
        raise ForecastError(f"entry {name} is not a function but {type(found).__name__}")
    return found  # type: ignore[no-any-return]


def _by_rank(error: BaseException) -> str:
    count = int(os.environ.get("SLURM_NTASKS", "1"))
    return reason_of(error) if count == 1 else f"rank 0 of {count}: {reason_of(error)}"


def follow_run(run: RunFolder, rank: int, count: int) -> None:
    """What a task of rank > 0 does: the same run, without a word; its failure is the run's, by name."""
    spec = JobSpec.model_validate_json(run.spec.read_bytes())
    _limit_threads(spec.threads)
    deaf = StopRequest()
    try:
        entry = _entry(spec.entry)
        checkpoint = Checkpoint(run.checkpoint, deaf, spec_hash=spec.hash)
        entry(spec.design.settings, **_arguments(entry, spec, lambda done, total: None, checkpoint))
    except (Exception, SystemExit) as error:
        if not run.outcome.exists():
            failed = spec.failed(f"rank {rank} of {count}: {reason_of(error)}")
            write_atomically(run.outcome, failed.model_dump_json(indent=1).encode() + b"\n")
        raise


def _arguments(
    entry: Callable[..., Any], spec: JobSpec, progress: Callable[[int, int], None], checkpoint: Checkpoint
) -> dict[str, Any]:
    given: dict[str, Any] = {"seed": spec.seed, "threads": spec.threads, "progress": progress}
    if "checkpoint" in inspect.signature(entry).parameters:
        given["checkpoint"] = checkpoint
    return given


def _keep_losses(run: RunFolder, result: Any) -> None:
    """Save the loss curve, (steps, parts), where the training gives one."""
    losses = getattr(result, "losses", None)
    if losses is None:
        return
    import numpy as np

    buffer = io.BytesIO()
    np.save(buffer, np.asarray(losses, dtype=np.float32), allow_pickle=False)
    write_atomically(run.path / "losses.npy", buffer.getvalue())


def _limit_threads(threads: int) -> None:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(threads)


def _measured(counters: Counters, wall_s: float, cpu_s: float, gpus: int) -> Counters:
    """`counters` with time and memory as this process saw them, where the training gave none."""
    seen: dict[str, float | None] = {"wall_s": wall_s, "cpu_s": cpu_s, "peak_memory_bytes": peak_memory_bytes()}
    seen["gpu_s"] = gpus * wall_s if gpus else None
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
        world_size=int(os.environ.get("SLURM_NTASKS", "1")),
        submitted=attempt.slurm_submit or jobs.submitted,
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


def reason_of(error: BaseException) -> str:
    """The error in one line, as a run states it."""
    if isinstance(error, pydantic.ValidationError):
        first = error.errors()[0]
        return f"{error.title}: {'.'.join(map(str, first['loc']))} {first['msg']}".strip()
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return f"out of memory: {error}".rstrip(": ")
    return f"{type(error).__name__}: {error}".rstrip(": ")


class _Progress:
    """Writes how far a run is, at most once a second; a safe point at which a job that was told to stop does."""

    def __init__(self, run: RunFolder, attempt: Attempt, request: StopRequest) -> None:
        self._request = request
        self._path, self._attempt, self._started, self._last = run.progress, attempt.number, time.time(), 0.0

    def __call__(self, done: int, total: int) -> None:
        self._request.raise_if_told()
        at = time.time()
        if at - self._last < 1 and done < total:
            return
        self._last = at
        temporary = self._path.with_suffix(".tmp")
        content = {"done": done, "total": total, "at": at, "started": self._started, "attempt": self._attempt}
        temporary.write_text(json.dumps(content))
        os.replace(temporary, self._path)
