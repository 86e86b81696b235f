"""From run folders to a ledger: idempotent, and while jobs still run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pydantic

from forecast.errors import ForecastError
from forecast.ledger import append_runs
from forecast.records import Run
from runner.settling import settle
from runner.spec import RunFolder

__all__ = ["Collected", "collect", "read_outcomes"]


@dataclass(frozen=True)
class Collected:
    """What a collection found: outcomes by status, runs without one, and how many were new to the ledger."""

    finished: int
    failed: int
    open: int
    added: int


def read_outcomes(folder: Path) -> tuple[list[Run], int]:
    """The runs of `folder` that have an outcome, by run id, and how many have none."""
    if not (folder / "runs").is_dir():
        raise ForecastError(f"{folder} holds no runs; give the folder of `platocast launch --folder`")
    runs, missing = [], 0
    for path in sorted((folder / "runs").iterdir()):
        outcome = RunFolder(path).outcome
        try:
            runs += [_run(earlier) for earlier in sorted(path.glob("failed/*.json"))]
            runs.append(_run(outcome))
        except FileNotFoundError:
            missing += RunFolder(path).spec.exists()
    return runs, missing


def _run(outcome: Path) -> Run:
    try:
        return Run.model_validate_json(outcome.read_bytes())
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        rule = f"{'.'.join(map(str, first['loc']))} {first['msg']}"
        raise ForecastError(f"{outcome} is not a run: {rule}; move it away and launch again") from error


def collect(folder: Path, ledger: Path) -> Collected:
    """Append the outcomes of `folder` to `ledger`. A second call adds nothing."""
    runs, missing = read_outcomes(folder)
    if missing and settle(folder):
        runs, missing = read_outcomes(folder)
    finished = sum(run.status == "finished" for run in runs)
    added = append_runs(ledger, runs) if runs else 0
    return Collected(finished, len(runs) - finished, missing, added)
