"""The job specs on disk against those that `launch` entries signed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from forecast.errors import ForecastError
from forecast.files import sha256_hex
from prereg.finding import Finding
from prereg.log import SignedEntry
from prereg.statement import SignedRegistration

__all__ = ["examine_jobs", "job_files"]


def job_files(folder: Path | str) -> dict[str, bytes]:
    """The bytes of each run's spec.json in a launch folder; ForecastError where there is none."""
    found = {path.parent.name: path.read_bytes() for path in sorted(Path(folder).glob("runs/*/spec.json"))}
    if not found:
        raise ForecastError(f"{folder} holds no runs/*/spec.json; give the folder that `launch --folder` named")
    return found


def examine_jobs(
    registration: SignedRegistration, launches: Sequence[SignedEntry], files: dict[str, bytes]
) -> list[Finding]:
    """The job specs of `registration` in `files` (run folder -> bytes): each must be one that was signed."""
    seq, signed = registration.signed.seq, _signed(launches)
    found, problems = set(), []
    for name, data in files.items():
        spec = _object(data)
        if spec is None:
            problems.append(f"{name}: spec.json is no JSON object")
        elif spec.get("registration") == registration.digest:
            replicate = (spec.get("target"), spec.get("replicate"))
            found.add(replicate)
            if sha256_hex(data) not in signed.get(replicate, ()):
                problems.append(f"{name}: JOB CHANGED: its spec.json is not the one that was signed")
    if problems:
        return [_finding("failed", text, seq) for text in problems[:20]]
    if not found:
        return [_finding("not examined", "the folder given holds no job of this registration", seq)]
    absent = len(signed.keys() - found)
    text = f"{len(found)} job specs are those that were signed"
    text += f"; {absent} signed ones are not there" if absent else ""
    return [_finding("verified", text, seq)]


def _signed(launches: Sequence[SignedEntry]) -> dict[tuple[Any, Any], set[str]]:
    """Per target and replicate every spec hash that was signed: a retry is launched anew."""
    hashes: dict[tuple[Any, Any], set[str]] = defaultdict(set)
    for entry in launches:
        jobs = entry.body.get("jobs")
        for job in jobs if isinstance(jobs, list) else []:
            if isinstance(job, dict):
                hashes[job.get("target"), job.get("replicate")].add(str(job.get("spec_sha256")))
    return hashes


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _finding(level: Any, text: str, seq: int) -> Finding:
    return Finding(level=level, code="jobs", seq=seq, text=f"entry {seq}: {text}")
