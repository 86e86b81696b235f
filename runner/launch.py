"""From job specs to submitted jobs: resumable, never the same run twice at a time, signed where a log governs."""

from __future__ import annotations

import heapq
import json
import os
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forecast.errors import ForecastError
from forecast.files import canonical_json, write_atomically
from runner.attempt import now
from runner.budget import Pace, refuse_beyond_budget
from runner.claim import exclusive
from runner.joblist import JobList
from runner.living import jobs_of
from runner.presets import ExecutorChoice, Preset
from runner.settling import settle
from runner.snapshot import Snapshot, job_environment, take_snapshot
from runner.spec import JobSpec, run_folder

__all__ = ["Placing", "Plan", "deal", "launch", "plan"]


@dataclass(frozen=True)
class Plan:
    """What a launch would do: runs by what becomes of them, and the lists of the new jobs."""

    finished: tuple[str, ...]
    failed: tuple[str, ...]
    with_jobs: tuple[str, ...]
    left_out: tuple[str, ...]
    lists: tuple[tuple[JobSpec, ...], ...]

    @property
    def to_do(self) -> list[JobSpec]:
        """The runs that get a new job, each once."""
        return list({spec.run_id: spec for specs in self.lists for spec in specs}.values())


@dataclass(frozen=True)
class Placing:
    """Where runs go, and how many. limit: at most so many runs now; keep_order: not the longest first."""

    choice: ExecutorChoice
    preset: Preset
    limit: int | None = None
    keep_order: bool = False


def plan(specs: Sequence[JobSpec], folder: Path, place: Placing) -> Plan:
    """Which of `specs` need a job, dealt to jobs."""
    _refuse_doubles(specs)
    specs = [_as_retried(folder, spec) for spec in specs]
    with_jobs = {run for job in jobs_of(folder) if job.alive is not False for run in job.runs}
    finished, failed, busy, to_do = [], [], [], []
    for spec in specs:
        status = _status(folder, spec)
        if status == "finished":
            finished.append(spec.run_id)
        elif status == "failed":
            failed.append(spec.run_id)
        elif spec.run_id in with_jobs:
            busy.append(spec.run_id)
        else:
            to_do.append(spec)
    chosen = to_do if place.limit is None else to_do[: place.limit]
    tries = {spec.run_id: len(run_folder(folder, spec.run_id).attempts) for spec in chosen}
    lists = deal(chosen, place, tries)
    left_out = tuple(spec.run_id for spec in to_do[len(chosen) :])
    return Plan(tuple(finished), tuple(failed), tuple(busy), left_out, lists)


def deal(specs: Sequence[JobSpec], place: Placing, tries: dict[str, int]) -> tuple[tuple[JobSpec, ...], ...]:
    """The runs of each job, those tried least first, then longest first.

    Local jobs share one list, so each takes the next run when it is free and they end at about the
    same time. On SLURM each job has its own runs, dealt so that the jobs take equally long.
    """
    choice, preset = place.choice, place.preset
    order = sorted(specs, key=lambda spec: (tries.get(spec.run_id, 0), 0 if place.keep_order else -spec.size))
    if not order:
        return ()
    if preset.kind != "slurm":
        count = min(choice.jobs, len(order)) if preset.kind == "local" else 1
        return (tuple(order),) * count
    count = -(-len(order) // (choice.runs_per_job or 1))
    lists: list[list[JobSpec]] = [[] for _ in range(count)]
    loads = [(0.0, k) for k in range(count)]
    for spec in order:
        load, least = heapq.heappop(loads)
        lists[least].append(spec)
        if len(lists[least]) < (choice.runs_per_job or 1):
            heapq.heappush(loads, (load + spec.size, least))
    return tuple(tuple(job) for job in lists)


def launch(
    specs: Sequence[JobSpec],
    folder: Path,
    place: Placing,
    *,
    log: Path | None = None,
    pace: Pace | None = None,
    root: Path | None = None,
) -> tuple[Plan, Path | None]:
    """Submit what has no outcome and no living job; the plan, and the folder of the new submission.

    log: the registration's, remembered for a later retry. pace: how long runs take, for the budget.
    root: where our code lies (found by itself; tests give another).
    """
    folder = folder.resolve()
    _hold(folder, specs)
    with exclusive(folder / "launch.lock"):
        if (folder / "runs").is_dir():
            settle(folder)
        planned = plan(specs, folder, place)
        if not planned.lists:
            return planned, None
        choice, preset = place.choice, place.preset
        refuse_beyond_budget(planned.to_do, folder, choice=choice, preset=preset, pace=pace)
        snapshot = take_snapshot(folder, root)
        memory = {
            "choice": choice.model_dump(),
            "preset": preset.model_dump(),
            "log": str(log.resolve()) if log else None,
        }
        write_atomically(folder / "launched.json", json.dumps(memory, indent=1).encode())
        for spec in planned.to_do:
            run_folder(folder, spec.run_id).cancelled.unlink(missing_ok=True)
            write_atomically(run_folder(folder, spec.run_id).spec, canonical_json(spec.model_dump(mode="json")))
        submission = _new_submission(folder)
        paths = _write_lists(folder, submission, planned, snapshot, choice, preset)
        _submit(submission, paths, job_environment(snapshot.path), preset, specs[0])
    return planned, submission


def _submit(
    submission: Path, paths: Sequence[Path], environment: dict[str, str], preset: Preset, first: JobSpec
) -> None:
    record: dict[str, Any] = {"executor": preset.kind, "host": socket.gethostname(), "at": time.time(), "jobs": []}
    if preset.kind == "slurm":
        _submit_to_slurm(submission, len(paths), environment, preset, first, record)
        return
    from runner.local import run_here, submit_local  # loads submitit

    def submitted(path: Path, job_id: str, pid: int | None, created: float | None) -> None:
        record["jobs"].append({"list": path.name, "job_id": job_id, "pid": pid, "created": created})
        write_atomically(submission / "submitted.json", json.dumps(record, indent=1).encode())

    if preset.kind == "local":
        submit_local(paths, environment, submitted)
        return
    write_atomically(submission / "submitted.json", json.dumps(record, indent=1).encode())
    for path in paths:
        run_here(path, environment)


def _submit_to_slurm(
    submission: Path, count: int, environment: dict[str, str], preset: Preset, first: JobSpec, record: dict[str, Any]
) -> None:
    """Names are on disk before sbatch is called: whoever launches next can ask SLURM what became of them."""
    from runner.slurm import array_names, submit_arrays  # loads submitit

    name = f"pc-{first.registration[:16]}" if first.registration else f"pc-{first.study[:40]}"
    arrays = array_names(name, count)
    record["arrays"] = [{"name": n, "first": start, "count": size, "job_id": None} for n, start, size in arrays]
    write_atomically(submission / "submitted.json", json.dumps(record, indent=1).encode())

    def submitted(name: str, job_id: str) -> None:
        for array in record["arrays"]:
            if array["name"] == name:
                array["job_id"] = job_id
        write_atomically(submission / "submitted.json", json.dumps(record, indent=1).encode())

    submit_arrays(arrays, submission, environment, preset, submitted)


def _hold(folder: Path, specs: Sequence[JobSpec]) -> None:
    """Make `folder` the place of one study or one registration; refuse a second one."""
    if not specs:
        raise ForecastError("there is no run to launch; give the study a design and a seed")
    owner = {"format": "platocast-folder-1", "study": specs[0].study, "registration": specs[0].registration}
    path = folder / "folder.json"
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        write_atomically(path, json.dumps(owner, indent=1).encode())
        return
    found = json.loads(path.read_bytes())
    if found != owner:
        raise ForecastError(
            f"{folder} holds the runs of {found.get('registration') or found.get('study')}, "
            f"not of {owner['registration'] or owner['study']}; give another --folder"
        )


def _as_retried(folder: Path, spec: JobSpec) -> JobSpec:
    """`spec` with the number of retries that its folder says."""
    try:
        retry = int(json.loads(run_folder(folder, spec.run_id).spec.read_bytes()).get("retry", 0))
    except (OSError, ValueError):
        return spec
    return spec if retry == spec.retry else spec.model_copy(update={"retry": retry})


def _refuse_doubles(specs: Sequence[JobSpec]) -> None:
    seen = set()
    for spec in specs:
        if spec.run_id in seen:
            raise ForecastError(f"run {spec.run_id} is listed twice; state each design and seed once")
        seen.add(spec.run_id)


def _status(folder: Path, spec: JobSpec) -> str | None:
    path = run_folder(folder, spec.run_id).outcome
    try:
        return str(json.loads(path.read_bytes())["status"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError) as error:
        raise ForecastError(f"{path} is not a run: {error}; move it away and launch again") from error


def _new_submission(folder: Path) -> Path:
    """A fresh folder for each submission: results of an older job of the same id are never read."""
    number = max((int(p.name) for p in (folder / "submissions").glob("[0-9]*")), default=0) + 1
    path = folder / "submissions" / f"{number:04d}"
    os.makedirs(path)
    return path


def _gpus() -> tuple[str, ...]:
    """The GPUs that local jobs may use: those of CUDA_VISIBLE_DEVICES, or all that nvidia-smi lists."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return tuple(part.strip() for part in named.split(",") if part.strip() and part.strip() != "-1")
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(str(k) for k, line in enumerate(listed.splitlines()) if line.startswith("GPU"))


def _write_lists(
    folder: Path, submission: Path, planned: Plan, snapshot: Snapshot, choice: ExecutorChoice, preset: Preset
) -> list[Path]:
    submitted, paths = now(), []
    for number, specs in enumerate(planned.lists):
        content = JobList(
            runs=tuple(spec.run_id for spec in specs),
            snapshot=str(snapshot.path.relative_to(folder)),
            code_hash=snapshot.code_hash,
            content_hash=snapshot.content_hash,
            lock_hash=snapshot.lock_hash,
            code_commit=snapshot.commit,
            code_dirty=snapshot.dirty,
            code_diff_hash=snapshot.diff_hash,
            submitted=submitted,
            slots=choice.jobs if preset.kind == "local" else None,
            gpus=_gpus() if preset.kind == "local" else (),
            gpus_allocated=preset.gpus_per_node * preset.nodes if preset.kind == "slurm" else 0,
            limit_s=preset.time_min * 60 if preset.kind == "slurm" else None,
            signal_delay_s=preset.signal_delay_s,
            requeues=preset.requeues,
        )
        path = submission / f"job-{number:04d}.json"
        write_atomically(path, content.model_dump_json(indent=1).encode())
        paths.append(path)
    return paths
