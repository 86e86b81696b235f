"""What one job is told (a JSON job spec), and where its files lie."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from forecast.files import canonical_json, sha256_hex
from forecast.records import Design, Record, Run, Sha256, TargetId
from runner.own_training import OwnTraining

__all__ = ["COMMAND_ENTRY", "ENTRY", "JobSpec", "RunFolder", "run_folder"]

ENTRY = "runner.experiment:run_experiment"
"""The entry point of our own training; a job spec may name another ("module:function")."""

COMMAND_ENTRY = "runner.own_run:run_command"
"""The entry point that runs a study's `command`."""

_LONGEST_NAME = 150


class JobSpec(Record):
    """One run to be done. Everything a job needs to know, nothing live.

    entry: "module:function", called as function(settings, seed=, threads=, progress=, ...) -> Outcome.
    own: what the study says of the user's own training, null for ours.
    threads: CPU threads that the run may use.
    retry: how often the run failed and was begun anew.
    """

    format: Literal["platocast-job-1"] = "platocast-job-1"
    run_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=_LONGEST_NAME)]
    study: str
    registration: Sha256 | None = None
    target: TargetId | None = None
    replicate: Annotated[int, Field(ge=0)] | None = None
    design: Design
    seed: Annotated[int, Field(ge=0)]
    threads: Annotated[int, Field(ge=1)] = 1
    entry: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")] = ENTRY
    own: OwnTraining | None = None
    retry: Annotated[int, Field(ge=0)] = 0

    @property
    def outcome_id(self) -> str:
        """The run id of the outcome: a retry's is its own, for a failed outcome is never rewritten."""
        return f"{self.run_id}.retry{self.retry}" if self.retry else self.run_id

    @property
    def hash(self) -> str:
        """Lower-case hex sha256 of the spec's RFC 8785 bytes."""
        return sha256_hex(canonical_json(self.model_dump(mode="json")))

    @property
    def size(self) -> float:
        """How long the run takes, in arbitrary units: its samples, 1 where the design names none."""
        samples = self.design.settings.get("n_samples")
        return float(samples) if isinstance(samples, (int, float)) else 1.0

    def failed(self, reason: str) -> Run:
        """The outcome of this run if it failed for `reason`: no number."""
        return Run(
            run_id=self.outcome_id,
            study=self.study,
            registration=self.registration,
            target=self.target,
            replicate=self.replicate,
            design=self.design,
            seed=self.seed,
            status="failed",
            failure=reason,
        )


@dataclass(frozen=True)
class RunFolder:
    """The files of one run: spec.json, run.json, progress.json, lock, attempts/N.json, own/ of a user's training."""

    path: Path

    @property
    def run_id(self) -> str:
        """The run's id: the folder's name."""
        return self.path.name

    @property
    def spec(self) -> Path:
        """What the run is told."""
        return self.path / "spec.json"

    @property
    def outcome(self) -> Path:
        """The run's one outcome, written by the job."""
        return self.path / "run.json"

    @property
    def progress(self) -> Path:
        """How far the running attempt is."""
        return self.path / "progress.json"

    @property
    def checkpoint(self) -> Path:
        """The saved state of a run that is to be continued."""
        return self.path / "checkpoint"

    @property
    def cancelled(self) -> Path:
        """There if the run is to be left out until it is launched again."""
        return self.path / "cancelled.json"

    @property
    def lock(self) -> Path:
        """Held by the job that does this run, so that no two do."""
        return self.path / "lock"

    def own(self, retry: int = 0) -> Path:
        """Where a user's own training writes; a retry begins with an empty folder."""
        return self.path / ("own" if retry == 0 else f"own-{retry}")

    @property
    def attempts(self) -> list[Path]:
        """The records of all attempts, oldest first."""
        return sorted((self.path / "attempts").glob("[0-9]*.json"))

    def attempt(self, number: int) -> Path:
        """The record of attempt `number`, counted from 1."""
        return self.path / "attempts" / f"{number:03d}.json"


def run_folder(folder: Path, run_id: str) -> RunFolder:
    """The folder of run `run_id` in the launch folder `folder`."""
    return RunFolder(folder / "runs" / re.sub(r"[^A-Za-z0-9._-]", "_", run_id))
