"""Where jobs run: this machine, this process, or a named SLURM preset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from forecast.errors import ForecastError
from forecast.records import Record
from runner.naming import nearest

__all__ = ["ExecutorChoice", "Preset"]


class Preset(Record):
    """What one job asks of a machine.

    time_min: the job's time limit in minutes; memory_gb: per node, in GB.
    signal_delay_s: how long before the limit a job is told to save its state.
    parallel: the most jobs of one array at a time.
    requeues: how often a run may be stopped by the time limit and go on.
    container: an OCI bundle for sbatch --container; srun_args: more words for srun.
    setup: shell lines before the job; one that fails ends the job.
    """

    kind: Literal["local", "debug", "slurm"] = "slurm"
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    nodes: Annotated[int, Field(gt=0)] = 1
    tasks_per_node: Annotated[int, Field(gt=0)] = 1
    cpus_per_task: Annotated[int, Field(gt=0)] = 1
    gpus_per_node: Annotated[int, Field(ge=0)] = 0
    memory_gb: Annotated[float, Field(gt=0)] | None = None
    time_min: Annotated[int, Field(gt=0)] = 60
    signal_delay_s: Annotated[int, Field(gt=0)] = 90
    parallel: Annotated[int, Field(gt=0)] = 256
    requeues: Annotated[int, Field(ge=0)] = 5
    setup: tuple[str, ...] = ()
    container: str | None = None
    srun_args: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _the_signal_comes_after_the_start(self) -> Preset:
        if self.kind == "slurm" and self.time_min * 60 <= self.signal_delay_s + 60:
            raise ValueError(
                f"time_min = {self.time_min} must be more than signal_delay_s + 60 s = {self.signal_delay_s + 60} s: "
                "SLURM may send the signal 60 s early, and before the job listens it kills it"
            )
        return self


_BUILT_IN = {"local": Preset(kind="local"), "debug": Preset(kind="debug")}


class ExecutorChoice(Record):
    """Which preset a study uses, and how its runs are dealt to jobs.

    jobs: the most local jobs at a time. threads: CPU threads a run.
    runs_per_job: runs that one job does in turn; null: chosen by the executor.
    budget_gpu_hours: a launch that is expected to pass it is refused.
    """

    preset: str = "local"
    jobs: Annotated[int, Field(gt=0)] = 1
    threads: Annotated[int, Field(gt=0)] = 1
    runs_per_job: Annotated[int, Field(gt=0)] | None = None
    budget_gpu_hours: Annotated[float, Field(gt=0)] | None = None

    def resolve(self, presets: Mapping[str, Preset]) -> Preset:
        """The preset by its name; `presets` are the study's own. Refuses an unknown name."""
        known = _BUILT_IN | dict(presets)
        if self.preset not in known:
            raise ForecastError(f"executor preset {self.preset!r} is not defined; {nearest(self.preset, known)}")
        return known[self.preset]
