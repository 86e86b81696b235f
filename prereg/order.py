"""Was the registration there before its runs? What shows it, and what does not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from forecast.errors import ForecastError
from forecast.records import Run
from prereg.finding import Finding
from prereg.statement import SignedRegistration
from prereg.witness import Witness

__all__ = ["SACCT", "Submission", "order_of", "read_sacct"]

SACCT = "SLURM_TIME_FORMAT=%s sacct -D -X -P -S now-365days --format=JobID,JobName%200,Submit"
"""-S: without it sacct shows the jobs of today only."""

_SECOND = timedelta(seconds=1)
REHEARSAL = "rehearsal: cannot be excluded"
SEEDS_ALONE = (
    "the order rests on the derived seeds alone, which show that the runs are later than the registration's bytes"
)


@dataclass(frozen=True)
class Submission:
    """One job as SLURM's accounting reports it. submitted: UTC, in whole seconds, cut off and not rounded."""

    job_id: str
    name: str
    submitted: datetime


def read_sacct(path: Path | str) -> list[Submission]:
    """The jobs in a file that the command `SACCT` printed; ForecastError with the line and the rule.

    The times must be seconds since 1970 (SLURM_TIME_FORMAT=%s): sacct's own form has no time zone.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise ForecastError(f"{path}: cannot be read as text: {error}") from error
    header = lines[0].split("|") if lines else []
    try:
        columns = [header.index(name) for name in ("JobID", "JobName", "Submit")]
    except ValueError as error:
        raise ForecastError(f"{path}: no JobID, JobName and Submit in its first line; make it with: {SACCT}") from error
    jobs = []
    for number, line in enumerate(lines[1:], start=2):
        cells = line.split("|")
        if len(cells) != len(header) or not re.fullmatch(r"[0-9]{1,11}", cells[columns[2]]):
            raise ForecastError(f"{path}: line {number}: Submit must be seconds since 1970; make it with: {SACCT}")
        job_id, name, submit = (cells[column] for column in columns)
        jobs.append(Submission(job_id, name, datetime.fromtimestamp(int(submit), UTC)))
    return jobs


def order_of(
    registration: SignedRegistration,
    witness: Witness,
    *,
    sacct: Sequence[Submission] | None = None,
    runs: Sequence[Run] = (),
) -> Finding:
    """One sentence on whether the registration is older than its runs.

    verified: every run's job is in the accounting under the digest, and the token's time is before every such Submit.
    failed: a job or a run says it was earlier, or a job was submitted in the future.
    """
    seq, digest = registration.signed.seq, registration.digest
    token = witness.evidence(seq)
    if token is None:
        shown = witness.earliest(seq)
        why = "TEST token, no evidence" if shown and shown.test else "token's CA not checked" if shown else "time owed"
        return _unproved(seq, f"{why}: {SEEDS_ALONE}")
    early = _early_runs(runs, digest, token.time)
    if early:
        return _failed(seq, f"{len(early)} runs say they were submitted before {token.text}: {', '.join(early[:5])}")
    if sacct is None:
        return _unproved(seq, f"registered by {token.text}; SLURM's submit times were not given: {SEEDS_ALONE}")
    mine = [job for job in sacct if digest[:16] in job.name]
    if not mine:
        return _unproved(seq, f"registered by {token.text}; no job has {digest[:16]} in its name: {SEEDS_ALONE}")
    first = min(mine, key=lambda job: job.submitted)
    said = f"{first.submitted:%Y-%m-%dT%H:%M:%SZ} (job {first.job_id}, the earliest of {len(mine)})"
    if first.submitted + _SECOND <= token.time:
        return _failed(seq, f"jobs submitted before the registration: {said}, registered by {token.text}")
    if first.submitted <= token.time:
        text = f"registered by {token.text}, its first job was submitted in the same second: {said}; {SEEDS_ALONE}"
        return _unproved(seq, text)
    if max(job.submitted for job in mine) > datetime.now(UTC) + timedelta(days=1):
        return _failed(seq, "the accounting says that a job was submitted in the future")
    own = [run for run in runs if run.registration == digest]
    if not own:
        text = f"registered by {token.text}, before {said}; which jobs made the runs was not examined (--ledger)"
        return _unproved(seq, f"{text}: {SEEDS_ALONE}")
    strangers = _without_job(own, mine)
    if strangers:
        text = f"{len(strangers)} of {len(own)} runs have no job under this digest in the accounting"
        return _unproved(seq, f"registered by {token.text}; {text} ({', '.join(strangers[:5])}): {SEEDS_ALONE}")
    text = (
        f"registered by {token.text}, before its first job was submitted at {said}; the accounting is as it was given"
    )
    return Finding(level="verified", code="order", seq=seq, text=text)


def _without_job(runs: Sequence[Run], jobs: Sequence[Submission]) -> list[str]:
    """The runs that state no job among `jobs`; an array's line 7_[0-3] or 7 stands for its tasks."""
    known = {job.job_id for job in jobs}
    arrays = {job.job_id.partition("_")[0] for job in jobs if "_" not in job.job_id or "[" in job.job_id}
    stated = {run.run_id: run.provenance.job_id if run.provenance else None for run in runs}
    return [name for name, job in stated.items() if job not in known and (job or "").partition("_")[0] not in arrays]


def _early_runs(runs: Sequence[Run], digest: str, time: datetime) -> list[str]:
    return [run.run_id for run in runs if run.registration == digest and _any_before(run, time)]


def _any_before(run: Run, time: datetime) -> bool:
    """Whether any time that the run states of itself is before `time`."""
    stated = (run.provenance.submitted, run.provenance.started, run.provenance.ended) if run.provenance else ()
    for text in stated:
        try:
            moment = datetime.fromisoformat(text) if text else None
        except ValueError:
            continue
        if text and moment:
            latest = moment + (timedelta(milliseconds=1) if "." in text else _SECOND)  # SLURM's are cut to seconds
            if (latest if latest.tzinfo else latest.replace(tzinfo=UTC)) <= time:
                return True
    return False


def _unproved(seq: int, text: str) -> Finding:
    return Finding(level="not examined", code="order", seq=seq, text=f"entry {seq}: {text}; {REHEARSAL}")


def _failed(seq: int, text: str) -> Finding:
    return Finding(level="failed", code="order", seq=seq, text=f"entry {seq}: {text}")
