"""How the runs of a launch folder stand, from their files and from the jobs that are alive."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from forecast.errors import ForecastError
from runner.living import Ask, Job, jobs_of, process_lives
from runner.slurm_queue import query
from runner.spec import RunFolder

__all__ = ["STATES", "FolderStatus", "RunStatus", "State", "clock", "read_status"]

State = Literal["finished", "running", "requeued", "pending", "failed", "lost"]
STATES: tuple[State, ...] = ("finished", "running", "requeued", "pending", "failed", "lost")


@dataclass(frozen=True)
class RunStatus:
    """One run. lost: an attempt was begun, ended without an outcome, and no living job will do it.

    progress: in [0, 1]; eta_s: seconds to the end of a running run, None if unknown.
    """

    run_id: str
    state: State
    attempts: int
    progress: float | None = None
    eta_s: float | None = None
    job_id: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class FolderStatus:
    """All runs, and the jobs; eta_s: seconds until all is done if nothing changes, None if unknown."""

    runs: tuple[RunStatus, ...]
    jobs: tuple[Job, ...]
    eta_s: float | None = None

    def counts(self) -> dict[str, int]:
        """How many runs are in each state."""
        found = Counter(run.state for run in self.runs)
        return {state: found[state] for state in STATES}

    @property
    def active(self) -> bool:
        """Whether a job may still change something."""
        if any(job.alive for job in self.jobs):
            return True
        unsure = {run for job in self.jobs if job.alive is None for run in job.runs}
        return any(run.run_id in unsure and run.state not in ("finished", "failed") for run in self.runs)


def read_status(folder: Path, *, ask: Ask = query) -> FolderStatus:
    """The state of every run of `folder`; `ask`: how SLURM is asked. Raises ForecastError if it is no launch folder."""
    if not (folder / "runs").is_dir():
        raise ForecastError(f"{folder} holds no runs; give the folder of `platocast launch --folder`")
    jobs = tuple(jobs_of(folder, ask=ask))
    known = _Known(
        holders={run: job for job in jobs if job.alive is not False for run in job.runs},
        by_id={(job.job_id, run): job for job in jobs if job.job_id for run in job.runs},
        last={run: job for job in jobs for run in job.runs},
    )
    paths = sorted(path for path in (folder / "runs").iterdir() if (path / "spec.json").exists())
    runs = tuple(_run_status(RunFolder(path), known) for path in paths)
    return FolderStatus(runs, jobs, _eta(runs, jobs, folder))


@dataclass(frozen=True)
class _Known:
    """Jobs: the living one that has a run, by job id and run, and the last one that had a run.

    A job id alone is no name: two clusters, or one that was set up anew, may give it twice.
    """

    holders: dict[str, Job]
    by_id: dict[tuple[str, str], Job]
    last: dict[str, Job]


def _run_status(run: RunFolder, known: _Known) -> RunStatus:
    attempts = run.attempts
    count, name = len(attempts), run.run_id
    outcome = _json(run.outcome)
    if outcome is not None:
        return RunStatus(name, outcome["status"], count, reason=outcome.get("failure"))
    holder = known.holders.get(name)
    last = _json(attempts[-1]) if attempts else None
    if last and last["status"] == "running":
        job = known.by_id.get((last["job_id"] or "", name))
        if _lives(last, job) is not False:
            return _running(run, last, count, job)
        last |= {"reason": (job.reason if job else None) or "its process is gone"}
    if holder is not None:
        waits = f"job {holder.job_id} {holder.state}" + (f": {holder.reason}" if holder.reason else "")
        if last and last["status"] == "stopped":
            return RunStatus(name, "requeued", count, job_id=holder.job_id, reason=f"after {last['reason']}; {waits}")
        return RunStatus(name, "pending", count, job_id=holder.job_id, reason=waits)
    if run.cancelled.exists():
        return RunStatus(name, "pending", count, reason="cancelled; launch again to take it up")
    ended = known.last.get(name)
    if last is None:
        reason = f"its job {ended.reason}; launch again" if ended and ended.reason else "has no job; launch again"
        return RunStatus(name, "pending", count, reason=reason)
    return RunStatus(name, "lost", count, job_id=last["job_id"], reason=f"{last['reason']}; launch again")


def _lives(attempt: dict[str, Any], job: Job | None) -> bool | None:
    """Whether an attempt that says "running" is; on SLURM as the queue says, for its process is elsewhere."""
    if job is not None and job.executor == "slurm":
        return job.alive
    return process_lives(attempt["host"], attempt["pid"], attempt["created"])


def _running(run: RunFolder, last: dict[str, Any], count: int, job: Job | None) -> RunStatus:
    seen = _json(run.progress)
    number = int(last["number"])
    heard = seen is not None and seen["attempt"] == number
    unsure = None
    if job is not None and job.alive is None:
        at = seen["at"] if seen and heard else datetime.fromisoformat(last["started"]).timestamp()
        unsure = f"{job.reason}; its last word is {clock(max(time.time() - at, 0))} old"
    if not seen or not heard or not seen["total"]:
        return RunStatus(run.run_id, "running", count, job_id=last["job_id"], reason=unsure)
    share = seen["done"] / seen["total"]
    spent = seen["at"] - seen["started"]
    eta = max(spent / share - (time.time() - seen["started"]), 0.0) if share > 0 else None
    return RunStatus(run.run_id, "running", count, share, eta, last["job_id"], unsure)


def _eta(runs: tuple[RunStatus, ...], jobs: tuple[Job, ...], folder: Path) -> float | None:
    """Remaining work over the number of working jobs, from the wall time per size of what is finished."""
    working = sum(1 for job in jobs if job.alive and job.state == "running")
    sizes = {run.run_id: _size(folder, run.run_id) for run in runs}
    pace = _pace(folder, [run.run_id for run in runs if run.state == "finished"], sizes)
    todo = [run for run in runs if run.state in ("running", "requeued", "pending")]
    if not working or not todo or pace is None:
        return None
    work = [sizes[run.run_id] * pace * (1 - (run.progress or 0)) for run in todo]
    return max(sum(work) / working, *work)


def _pace(folder: Path, finished: list[str], sizes: dict[str, float]) -> float | None:
    spent = size = 0.0
    for run_id in finished[-50:]:
        counters = (_json(RunFolder(folder / "runs" / run_id).outcome) or {}).get("counters") or {}
        if counters.get("wall_s"):
            spent, size = spent + counters["wall_s"], size + sizes[run_id]
    return spent / size if size else None


def _size(folder: Path, run_id: str) -> float:
    spec = _json(RunFolder(folder / "runs" / run_id).spec) or {}
    return float(spec.get("design", {}).get("settings", {}).get("n_samples") or 1)


def clock(seconds: float) -> str:
    """Seconds as people read them: 45 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _json(path: Path) -> dict[str, Any] | None:
    try:
        return dict(json.loads(path.read_bytes()))
    except (OSError, ValueError):
        return None
