"""One attempt at one run: train, evaluate, measure; what goes wrong in the training is a failed run."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pydantic

from forecast.errors import ForecastError
from forecast.files import write_atomically
from forecast.records import Counters, Provenance, Run
from runner.attempt import Attempt, note_attempt, now
from runner.checkpoint import Checkpoint
from runner.child import CommandFailed
from runner.gpu_use import GpuUse, watch_gpus
from runner.joblist import JobList
from runner.loss_curve import keep_losses
from runner.own_metrics import outcome_from
from runner.own_training import training_hash
from runner.peak_memory import peak_memory_bytes, reset_peak_memory
from runner.spec import JobSpec, RunFolder
from runner.stopping import Stop, StopRequest

__all__ = ["follow_run", "outcome_of", "reason_of"]

_TOLD = ("data_hash", "precision", "seeds", "text_authors")
"""What a training's result may say of itself, as attributes."""


def outcome_of(run: RunFolder, spec: JobSpec, jobs: JobList, attempt: Attempt, request: StopRequest) -> Run:
    """Train and evaluate. What goes wrong in the training becomes a failed run; a stop is passed on.

    The attempt's record gets what it consumed and where it comes from, however it ends.
    """
    if spec.own is None or spec.own.command is None:
        _limit_threads(spec.threads)
    reset_peak_memory()
    provenance = _provenance(spec, jobs, attempt)
    note_attempt(run, attempt.number, provenance=provenance)
    clock = _Clock(attempt.gpus)
    with watch_gpus(attempt.gpus) as use:
        try:
            result = _trained(run, spec, attempt, request)
            fields: dict[str, Any] = {
                "evaluations": result.evaluations,
                "counters": clock.measured(result.counters, use),
                "loss_curve": keep_losses(run, result),
                "provenance": provenance.model_copy(update=_told(result) | {"hardware": _hardware(), "ended": now()}),
            }
            state = spec.failed("-").model_dump() | {"status": "finished", "failure": None}
            outcome = Run.model_validate(state | fields)
        except Stop:
            note_attempt(run, attempt.number, counters=clock.measured(_seen(run, spec, attempt), use))
            raise
        except (Exception, SystemExit) as error:
            _keep_trace(run, attempt, error)
            fields = {
                "counters": clock.measured(_seen(run, spec, attempt), use),
                "provenance": provenance.model_copy(update={"hardware": _hardware(), "ended": now()}),
            }
            outcome = spec.failed(_by_rank(error)).model_copy(update=fields)
    note_attempt(
        run,
        attempt.number,
        counters=outcome.counters,
        provenance=outcome.provenance,
        loss_curve=outcome.loss_curve,
    )
    return outcome


def _trained(run: RunFolder, spec: JobSpec, attempt: Attempt, request: StopRequest) -> Any:
    """What the spec's training leaves; a mapping that a user's function returns is read as a metrics.json is."""
    entry = _entry(spec)
    given = {
        "seed": spec.seed,
        "threads": spec.threads,
        "progress": _Progress(run, attempt, request),
        "checkpoint": Checkpoint(run.checkpoint, request, spec_hash=spec.hash),
        "run": run,
        "spec": spec,
        "request": request,
    }
    result = entry(spec.design.settings, **_taken(entry, given, run, spec))
    if isinstance(result, Mapping):
        return outcome_from(result, spec.own.metrics if spec.own else (), "what the entry returned")
    if not hasattr(result, "evaluations"):
        raise ForecastError(
            f"entry {spec.entry} returned {type(result).__name__}; return a mapping of metric names to numbers"
        )
    return result


def _entry(spec: JobSpec) -> Callable[..., Any]:
    module, _, function = spec.entry.partition(":")
    if spec.own is not None and spec.own.folder not in sys.path:
        sys.path.append(spec.own.folder)  # last: a user's runner.py must not replace ours
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ForecastError(
            f"entry {spec.entry} cannot be loaded: {error}; give 'module:function' of a module beside the study "
            "or on PYTHONPATH"
        ) from error
    if not callable(found):
        raise ForecastError(f"entry {spec.entry} is not a function but {type(found).__name__}")
    return found  # type: ignore[no-any-return]


def _taken(entry: Callable[..., Any], given: dict[str, Any], run: RunFolder, spec: JobSpec) -> dict[str, Any]:
    """Of what we can give, what the function asks for by name; `run_dir` is a folder of the run's own."""
    parameters = inspect.signature(entry).parameters
    if "run_dir" in parameters:
        given = given | {"run_dir": run.own(spec.retry)}
        run.own(spec.retry).mkdir(parents=True, exist_ok=True)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return {name: given[name] for name in given if name in ("seed", "threads", "progress", *parameters)}
    return {name: value for name, value in given.items() if name in parameters}


def _told(result: Any) -> dict[str, Any]:
    """What the result says of where it comes from, as fields of Provenance."""
    told = {name: value for name in _TOLD if (value := getattr(result, name, None)) is not None}
    told |= dict(getattr(result, "told", None) or {})
    checked = Provenance.model_validate(told)
    return {name: getattr(checked, name) for name in told}


def _seen(run: RunFolder, spec: JobSpec, attempt: Attempt) -> Counters:
    """How far an attempt of our training came that did not end well; others need not count in samples."""
    if spec.own is not None:
        return Counters()
    try:
        said = json.loads(run.progress.read_bytes())
    except (OSError, ValueError):
        return Counters()
    return Counters(samples_seen=said["done"]) if said.get("attempt") == attempt.number and said["done"] else Counters()


def _keep_trace(run: RunFolder, attempt: Attempt, error: BaseException) -> None:
    """What `platocast logs` shows beside the output: the trace, or the end of a command's standard error."""
    if isinstance(error, CommandFailed):
        text = f"{error}\nits standard error ends:\n{error.tail}"
    else:
        text = traceback.format_exc()
    write_atomically(run.attempt(attempt.number).with_suffix(".trace.txt"), text.encode())


def _by_rank(error: BaseException) -> str:
    count = int(os.environ.get("SLURM_NTASKS", "1"))
    return reason_of(error) if count == 1 else f"rank 0 of {count}: {reason_of(error)}"


def follow_run(run: RunFolder, rank: int, count: int) -> None:
    """What a task of rank > 0 does: the same run, without a word; its failure is the run's, by name."""
    spec = JobSpec.model_validate_json(run.spec.read_bytes())
    if spec.own is None or spec.own.command is None:
        _limit_threads(spec.threads)
    deaf = StopRequest()
    given = {
        "seed": spec.seed,
        "threads": spec.threads,
        "progress": lambda done, total: None,
        "checkpoint": Checkpoint(run.checkpoint, deaf, spec_hash=spec.hash),
        "run": run,
        "spec": spec,
        "request": deaf,
    }
    try:
        entry = _entry(spec)
        entry(spec.design.settings, **_taken(entry, given, run, spec))
    except (Exception, SystemExit) as error:
        if not run.outcome.exists():
            failed = spec.failed(f"rank {rank} of {count}: {reason_of(error)}")
            write_atomically(run.outcome, failed.model_dump_json(indent=1).encode() + b"\n")
        raise


def _limit_threads(threads: int) -> None:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(threads)


class _Clock:
    """Time and memory as this process sees them."""

    def __init__(self, gpus: int) -> None:
        self._gpus, self._wall, self._cpu = gpus, time.monotonic(), time.process_time()

    def measured(self, counters: Counters, use: GpuUse) -> Counters:
        """`counters` with what was measured here, where the training gave none."""
        wall = time.monotonic() - self._wall
        seen: dict[str, float | None] = {
            "wall_s": wall,
            "cpu_s": time.process_time() - self._cpu,
            "gpu_s": self._gpus * wall if self._gpus else None,
            "gpu_used_s": use.used_s(wall),
            "peak_memory_bytes": peak_memory_bytes(),
            "peak_gpu_memory_bytes": use.peak_memory_bytes,
        }
        return counters.model_copy(
            update={name: value for name, value in seen.items() if getattr(counters, name) is None}
        )


def _provenance(spec: JobSpec, jobs: JobList, attempt: Attempt) -> Provenance:
    own = spec.own
    return Provenance(
        code_hash=jobs.code_hash,
        code_commit=jobs.code_commit,
        code_dirty=jobs.code_dirty,
        code_diff_hash=jobs.code_diff_hash,
        training_hash=training_hash(Path(own.folder), own.command or ()) if own else None,
        training_launched=own.files_hash if own else None,
        lock_hash=jobs.lock_hash,
        hardware=_hardware(),
        threads=spec.threads,
        world_size=int(os.environ.get("SLURM_NTASKS", "1")),
        submitted=attempt.slurm_submit or jobs.submitted,
        started=attempt.started,
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
    if isinstance(error, ForecastError):
        return str(error)
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
