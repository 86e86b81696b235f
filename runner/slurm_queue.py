"""What SLURM says of our jobs: one squeue for all, sacct as the second source, both with a time-out."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from forecast.errors import ForecastError

__all__ = ["Patient", "QueuedJob", "SlurmAway", "Tasks", "find_by_name", "max_array_size", "query", "verdict"]

_SQUEUE_S, _SACCT_S = 15, 20

FINAL = frozenset({"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE"})
"""States after which SLURM does not run a job again by itself."""

UNTIL_UNLISTED = frozenset({"NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "REVOKED"})
"""States that SLURM may follow by a requeue: final only once squeue has forgotten the job."""


class SlurmAway(ForecastError):
    """The controller does not answer: nothing is known, so nothing is concluded."""


@dataclass(frozen=True)
class QueuedJob:
    """One array task. state: SLURM's word; reason: why it waits, or why it ended; listed: squeue knows it."""

    job_id: str
    state: str
    reason: str = ""
    listed: bool = True


Tasks = dict[tuple[str, int], QueuedJob]


def query(tasks: Sequence[tuple[str, int]], environment: Mapping[str, str] | None = None) -> Tasks:
    """By array name and index, the tasks of these arrays that squeue knows, and sacct where squeue lacks some.

    Jobs are matched by their unique names: an older job of the same id is never taken for ours.
    Raises SlurmAway if squeue does not answer.
    """
    if not tasks:
        return {}
    found = _by_task(_squeue(sorted({name for name, _ in tasks}), environment))
    lacking = sorted({name for name, index in tasks if (name, index) not in found})
    return (_by_task(_sacct(lacking, environment)) if lacking else {}) | found


class Patient:
    """Asks SLURM through `ask` less and less often: at most every 2 s at first, every 60 s in the end."""

    def __init__(self, ask: Callable[[Sequence[tuple[str, int]]], Tasks] = query) -> None:
        self._ask, self._wait_s, self._at = ask, 2.0, float("-inf")
        self._tasks: set[tuple[str, int]] = set()
        self._answer: Tasks | SlurmAway = {}

    def __call__(self, tasks: Sequence[tuple[str, int]]) -> Tasks:
        """The last answer if it is fresh enough and covers `tasks`, else a new one. Raises SlurmAway."""
        at = time.monotonic()
        if at - self._at > self._wait_s or not self._tasks >= set(tasks):
            try:
                self._answer = self._ask(tasks)
            except SlurmAway as away:
                self._answer = away
            self._tasks, self._at, self._wait_s = set(tasks), at, min(self._wait_s * 1.3, 60)
        if isinstance(self._answer, SlurmAway):
            raise self._answer
        return self._answer


def _by_task(jobs: Iterable[tuple[str, QueuedJob]]) -> Tasks:
    """Of two jobs of one name (sent again while a sleeping controller still had the first), the one not ended."""
    found: Tasks = {}
    for name, job in jobs:
        task = (name, int(job.job_id.partition("_")[2] or 0))
        if task not in found or _word(found[task]) in FINAL:
            found[task] = job
    return found


def verdict(
    job: QueuedJob | None, *, submitted_s_ago: float, patience_s: float = 60
) -> Literal["waiting", "running", "ended", "unknown"]:
    """What becomes of a job. One that nobody knows has ended, unless it was submitted just now."""
    if job is None:
        return "ended" if submitted_s_ago > patience_s else "unknown"
    state = _word(job)
    if state in FINAL or (state in UNTIL_UNLISTED and not job.listed):
        return "ended"
    if not job.listed:
        return "ended" if submitted_s_ago > patience_s else "unknown"
    return "running" if state in ("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING") else "waiting"


def _word(job: QueuedJob) -> str:
    """ "CANCELLED by 0" and "CANCELLED+" are CANCELLED."""
    return job.state.split()[0].rstrip("+") if job.state else ""


def find_by_name(name: str, environment: Mapping[str, str] | None = None) -> list[str]:
    """The ids (of whole arrays) of jobs called `name`, finished ones too. Raises SlurmAway."""
    known = [*_sacct([name], environment), *_squeue([name], environment)]
    return sorted({job.job_id.split("_")[0] for _, job in known}, key=int)


def max_array_size(environment: Mapping[str, str] | None = None) -> int:
    """The cluster's MaxArraySize: the most tasks of one array. Raises SlurmAway."""
    found = re.search(r"^MaxArraySize\s*=\s*(\d+)", _run(["scontrol", "show", "config"], _SQUEUE_S, environment), re.M)
    return int(found[1]) if found else 1001


def _squeue(names: Sequence[str], environment: Mapping[str, str] | None) -> Iterable[tuple[str, QueuedJob]]:
    command = ["squeue", "-h", "-r", "-t", "all", "-n", ",".join(names), "-o", "%j|%i|%T|%r"]
    for line in _run(command, _SQUEUE_S, environment).splitlines():
        name, job_id, state, reason = line.split("|", 3)
        yield name, QueuedJob(job_id, state, "" if reason == "None" else reason)


def _sacct(names: Sequence[str], environment: Mapping[str, str] | None) -> Iterable[tuple[str, QueuedJob]]:
    """Nothing where accounting is disabled or away: squeue and the run files are enough then."""
    command = [
        "sacct",
        "-X",
        "-n",
        "-P",
        "-S",
        "now-60days",
        "--name",
        ",".join(names),
        "-o",
        "JobName,JobID,State,ExitCode",
    ]
    try:
        output = _run(command, _SACCT_S, environment)
    except SlurmAway:
        return
    for line in output.splitlines():
        name, job_id, state, code = line.split("|", 3)
        for one in _expand(job_id):
            yield name, QueuedJob(one, state, "" if code == "0:0" else f"exit code {code}", listed=False)


def _expand(job_id: str) -> list[str]:
    """ "7_[0-2,5%3]" as "7_0" ... "7_5": how sacct names tasks that have not started."""
    found = re.fullmatch(r"(\d+)_\[([\d,-]+)(?:%\d+)?\]", job_id)
    if found is None:
        return [job_id]
    tasks: list[int] = []
    for part in found[2].split(","):
        first, _, last = part.partition("-")
        tasks += range(int(first), int(last or first) + 1)
    return [f"{found[1]}_{task}" for task in tasks]


def _run(command: Sequence[str], timeout_s: float, environment: Mapping[str, str] | None) -> str:
    try:
        done = subprocess.run(
            command,
            env=dict(environment or os.environ),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise SlurmAway(f"{command[0]} is not on PATH; is this a machine of the cluster?") from error
    except subprocess.TimeoutExpired as error:
        raise SlurmAway(f"{command[0]} did not answer in {timeout_s:.0f} s; try again later") from error
    if done.returncode != 0:
        raise SlurmAway(f"{command[0]}: {done.stderr.strip()}; try again later")
    return done.stdout
