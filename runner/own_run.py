"""Run a user's command as one attempt: in its own environment and folder, and what it leaves is the outcome."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from forecast.errors import ForecastError
from forecast.records import Scalar
from runner.child import Child
from runner.own_metrics import METRICS, RUN, OwnOutcome, read_outcome
from runner.own_training import OwnTraining, fill
from runner.spec import JobSpec, RunFolder
from runner.stopping import StopRequest

__all__ = ["run_command", "user_environment"]


def run_command(
    settings: Mapping[str, Scalar],
    *,
    seed: int,
    threads: int,
    progress: Callable[[int, int], None],
    spec: JobSpec,
    run: RunFolder,
    request: StopRequest,
) -> OwnOutcome:
    """Run the job spec's command and read what it leaves. Raises CommandFailed, ForecastError, or Stop when told to.

    The run's folder is kept from attempt to attempt, so that a training can go on from its own checkpoint; what
    an earlier attempt wrote as its outcome is removed first, so that it can never be taken for this one's.
    """
    own, place = _own(spec), run.own(spec.retry)
    first = os.environ.get("SLURM_PROCID", "0") == "0"
    place.mkdir(parents=True, exist_ok=True)
    for name in (METRICS, RUN) if first else ():
        (place / name).unlink(missing_ok=True)
    values = {
        **settings,
        "run_dir": str(place),
        "run_id": spec.run_id,
        "seed": seed,
        "spec": str(run.spec),
        "threads": threads,
    }
    words = fill(own.command or (), values)
    ended = Child(words, Path(own.folder), _environment(spec, run, place)).wait(
        request, own.time_limit_s, lambda: _pass_on(place, progress)
    )
    ended.raise_if_bad()
    if not first:
        return OwnOutcome(())
    outcome = read_outcome(place, spec)
    measured = {"cpu_s": round(ended.cpu_s, 3), "peak_memory_bytes": ended.peak_memory_bytes}
    told = {name: value for name, value in measured.items() if getattr(outcome.counters, name) is None}
    return replace(outcome, counters=outcome.counters.model_copy(update=told))


def user_environment(environment: Mapping[str, str], snapshot: Path) -> dict[str, str]:
    """`environment` without what we put in it for our own jobs: the snapshot on PYTHONPATH, and PYTHONSAFEPATH."""
    clean = {name: value for name, value in environment.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    parts = [part for part in environment.get("PYTHONPATH", "").split(os.pathsep) if part]
    kept = [part for part in parts if not Path(part).resolve().is_relative_to(snapshot.resolve())]
    return clean | ({"PYTHONPATH": os.pathsep.join(kept)} if kept else {})


def _own(spec: JobSpec) -> OwnTraining:
    if spec.own is None or spec.own.command is None:
        raise ForecastError(f"run {spec.run_id} names no command; launch it from a study that has one")
    return spec.own


def _environment(spec: JobSpec, run: RunFolder, place: Path) -> dict[str, str]:
    snapshots = run.path.parents[1] / "snapshot"
    return user_environment(os.environ, snapshots) | {
        "PLATOCAST_RUN_DIR": str(place),
        "PLATOCAST_SEED": str(spec.seed),
        "PLATOCAST_SPEC": str(run.spec),
    }


def _pass_on(place: Path, progress: Callable[[int, int], None]) -> None:
    """Pass on how far the command says it is in progress.json, {"done": 3, "total": 10}; a safe point."""
    done, total = 0, 1
    try:
        said = json.loads((place / "progress.json").read_bytes())
        done, total = int(said["done"]), int(said["total"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    progress(min(done, total), total)
