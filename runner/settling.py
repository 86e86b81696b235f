"""Runs that ended without a word, for a reason that a repetition would meet again, become failed outcomes."""

from __future__ import annotations

from pathlib import Path

from forecast.files import write_atomically
from forecast.records import Provenance
from runner.attempt import Attempt, close_attempt
from runner.claim import claimed
from runner.living import OUT_OF_MEMORY
from runner.spec import JobSpec, RunFolder
from runner.status import read_status

__all__ = ["settle"]


def settle(folder: Path) -> list[str]:
    """Give runs that died of memory their failed outcome; their ids. A preempted or cancelled run gets none."""
    settled = []
    for run in read_status(folder).runs:
        if run.state == "lost" and run.reason and OUT_OF_MEMORY in run.reason:
            files = RunFolder(folder / "runs" / run.run_id)
            with claimed(files.lock) as ours:
                if ours and not files.outcome.exists():
                    _fail(files, run.reason.removesuffix("; launch again"))
                    settled.append(run.run_id)
    return settled


def _fail(run: RunFolder, reason: str) -> None:
    spec = JobSpec.model_validate_json(run.spec.read_bytes())
    attempt = Attempt.model_validate_json(run.attempts[-1].read_bytes())
    provenance = Provenance(
        code_hash=attempt.code_hash,
        submitted=attempt.submitted,
        started=attempt.started,
        job_id=attempt.job_id,
        attempt=attempt.number,
        threads=spec.threads,
        source="platocast",
    )
    failed = spec.failed(f"{reason}; give the preset more memory_gb and retry").model_copy(
        update={"provenance": provenance}
    )
    write_atomically(run.outcome, failed.model_dump_json(indent=1).encode() + b"\n")
    close_attempt(run, attempt, "failed", reason)
