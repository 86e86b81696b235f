"""What one job is to do: a JSON file that names its runs and the code that does them."""

from __future__ import annotations

from typing import Literal

from forecast.records import Record, Sha256

__all__ = ["JobList"]


class JobList(Record):
    """What one job is to do. Paths are relative to the launch folder.

    runs: run ids in the order in which they are tried; several jobs may share a list.
    slots: the most jobs of the folder that work at a time on one machine, None: no limit.
    attempts: how often one job tries a run whose earlier tries died.
    gpus: the GPUs of this machine, dealt out to its local jobs.
    gpus_allocated: how many GPUs a SLURM job has.
    limit_s: the job's time limit in seconds; signal_delay_s: how long before it the job is told to stop.
    requeues: how often a run may be stopped by the time limit.
    """

    format: Literal["platocast-joblist-1"] = "platocast-joblist-1"
    runs: tuple[str, ...]
    snapshot: str
    code_hash: Sha256
    content_hash: Sha256
    lock_hash: Sha256 | None = None
    code_commit: str | None = None
    code_dirty: bool | None = None
    code_diff_hash: Sha256 | None = None
    submitted: str
    slots: int | None = None
    attempts: int = 3
    gpus: tuple[str, ...] = ()
    gpus_allocated: int = 0
    limit_s: float | None = None
    signal_delay_s: float = 90
    requeues: int = 5
