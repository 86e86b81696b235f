"""Signs that several rows are checkpoints of one training: they share their noise and are not independent runs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from forecast.errors import ForecastError
from forecast.records import Run

__all__ = ["refuse_repeated", "remarks_on_checkpoints"]

STEPS = ("step", "global_step", "_step", "epoch", "iteration", "checkpoint", "ckpt")
TRAININGS = ("run", "run_name", "training", "trajectory", "parent_run", "trial")
SAVED = re.compile(r"^(.*?)[-_/@. ]*(?:step|ckpt|checkpoint|epoch|iter|@)[-_=@ ]*\d+(?:\.\d+)?$", re.IGNORECASE)


def refuse_repeated(runs: Sequence[Run]) -> None:
    """Raises ForecastError where a run id stands twice: a second row is a checkpoint or a copy, never a second run."""
    seen: set[str] = set()
    for run in runs:
        if run.run_id in seen:
            raise ForecastError(
                f"the run id {run.run_id!r} stands twice; checkpoints of one training are not independent runs, "
                "and a copy counts twice: keep one row a run"
            )
        seen.add(run.run_id)


def remarks_on_checkpoints(runs: Sequence[Run], mapping: Mapping[str, str]) -> list[str]:
    """A sentence where rows look like several states of one training: by a setting, or by their ids."""
    groups: dict[str, set[str]] = defaultdict(set)
    why = ""
    for run in runs:
        settings = run.design.settings
        training = next((settings[name] for name in TRAININGS if settings.get(name) is not None), None)
        saved = SAVED.match(run.run_id)
        if training is not None:
            groups[f"{training}|{run.seed}"].add(run.run_id)
            why = "they share the setting that names the training"
        elif saved and saved[1]:
            groups[saved[1]].add(run.run_id)
            why = "their ids differ only in a step"
    several = {name.partition("|")[0]: rows for name, rows in groups.items() if len(rows) > 1}
    if several:
        rows = sum(len(found) for found in several.values())
        return [
            f"{rows} rows look like checkpoints of {len(several)} training(s), such as {next(iter(several))!r}: {why}; "
            "they share their noise, so they are no independent runs and the intervals are too narrow; "
            "keep one row a training"
        ]
    used = set(mapping.values())
    steps = [name for name in STEPS if name not in used and len({r.design.settings.get(name) for r in runs}) > 1]
    if steps:
        return [
            f"runs differ in {steps[0]!r}: if these are checkpoints of one training they are not independent runs "
            "and the intervals are too narrow; keep one row a training"
        ]
    return []
