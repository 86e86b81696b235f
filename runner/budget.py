"""What runs cost: time and GPU-hours, used so far and expected, from the history of finished runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from forecast.errors import ForecastError
from forecast.ledger import read_ledger
from forecast.records import Run
from runner.collect import read_outcomes
from runner.presets import ExecutorChoice, Preset
from runner.spec import JobSpec

__all__ = ["Pace", "gpu_hours_used", "pace_of", "read_pace", "refuse_beyond_budget"]


@dataclass(frozen=True)
class Pace:
    """Seconds per unit of size (a sample), the median over `runs` finished runs."""

    seconds_per_size: float
    runs: int

    def seconds(self, specs: Iterable[JobSpec]) -> float:
        """The expected time of `specs` one after the other."""
        return self.seconds_per_size * sum(spec.size for spec in specs)


def pace_of(runs: Iterable[Run]) -> Pace | None:
    """The pace of finished runs that counted their time; None if there is none."""
    paces = []
    for run in runs:
        size = run.design.settings.get("n_samples")
        wall = run.counters.wall_s if run.counters else None
        if run.status == "finished" and wall and isinstance(size, (int, float)) and size > 0:
            paces.append(wall / size)
    return Pace(median(paces), len(paces)) if paces else None


def read_pace(folder: Path, history: Path | None = None) -> Pace | None:
    """The pace of the ledger `history`, or of what is finished in `folder`."""
    if history is not None:
        return pace_of(read_ledger(history))
    return pace_of(read_outcomes(folder)[0]) if (folder / "runs").is_dir() else None


def gpu_hours_used(folder: Path) -> float:
    """GPU-hours allocated to all attempts so far, those that failed or were stopped included."""
    total = 0.0
    for path in (folder / "runs").glob("*/attempts/[0-9]*.json"):
        attempt = json.loads(path.read_bytes())
        if attempt.get("gpus"):
            ended = attempt["ended"] or (datetime.now(UTC).isoformat() if attempt["status"] == "running" else None)
            total += attempt["gpus"] * _hours(attempt["started"], ended)
    return total


def refuse_beyond_budget(
    specs: Sequence[JobSpec], folder: Path, *, choice: ExecutorChoice, preset: Preset, pace: Pace | None
) -> None:
    """Refuse a launch whose expected GPU-hours and those used already pass `budget_gpu_hours`.

    Without any finished run to go by, each run is taken to need its whole time limit.
    """
    gpus = preset.gpus_per_node * preset.nodes
    if choice.budget_gpu_hours is None or not gpus or not specs:
        return
    used = gpu_hours_used(folder)
    seconds = pace.seconds(specs) if pace else len(specs) * preset.time_min * 60
    expected = gpus * seconds / 3600
    if used + expected > choice.budget_gpu_hours:
        basis = f"the pace of {pace.runs} finished run(s)" if pace else "the time limit of each run"
        raise ForecastError(
            f"{used:.2f} GPU-hours are used and {expected:.2f} more expected (by {basis}), "
            f"budget_gpu_hours is {choice.budget_gpu_hours:g}; launch fewer with --limit, or raise the budget"
        )


def _hours(started: str, ended: str | None) -> float:
    if ended is None:
        return 0.0
    first, last = (datetime.fromisoformat(text.replace("Z", "+00:00")) for text in (started, ended))
    return max((last - first).total_seconds(), 0.0) / 3600
