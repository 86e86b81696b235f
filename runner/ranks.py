"""Several tasks in one job: rank 0 decides which run is next, the others follow."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from forecast.errors import ForecastError
from forecast.files import write_atomically

__all__ = ["Ranks"]

_PATIENCE_S = 600


@dataclass(frozen=True)
class Ranks:
    """This task's rank among `count`, and the folder in which rank 0 announces runs."""

    rank: int
    count: int
    folder: Path

    @classmethod
    def here(cls, folder: Path) -> Ranks:
        """From SLURM's environment; one task of one elsewhere. Each start of a job has its own announcements."""
        start = f"{os.environ.get('SLURM_JOB_ID', 'local')}-{os.environ.get('SLURM_RESTART_COUNT', '0')}"
        count = int(os.environ.get("SLURM_NTASKS", "1"))
        return cls(int(os.environ.get("SLURM_PROCID", "0")), count, folder / start)

    def announce(self, number: int, run_id: str | None) -> None:
        """Tell the other ranks the next run, None at the end."""
        if self.count > 1:
            write_atomically(self.folder / f"{number:06d}.json", json.dumps({"run": run_id}).encode())

    def follow(self) -> Iterator[str]:
        """The runs that rank 0 announces, in order."""
        number = 0
        while (run_id := self._await(self.folder / f"{number:06d}.json")) is not None:
            yield run_id
            number += 1

    def _await(self, path: Path) -> str | None:
        end = time.monotonic() + _PATIENCE_S
        while not path.exists():
            if time.monotonic() > end:
                raise ForecastError(f"rank {self.rank} waited {_PATIENCE_S} s for rank 0 to announce a run")
            time.sleep(0.05)
        run_id = json.loads(path.read_bytes())["run"]
        return None if run_id is None else str(run_id)
