"""What a registration asks for: its runs as job specs, and the signed word that they were launched."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from forecast.errors import CheckFailed, ForecastError
from forecast.files import sha256_hex, write_atomically
from forecast.records import Design
from prereg.log import Log
from prereg.seeds import derived_seed
from prereg.signature import public_key_of
from prereg.statement import SignedRegistration, find_registration
from prereg.verify import verify_log, walk
from runner.own_training import OwnTraining
from runner.spec import ENTRY, JobSpec, run_folder
from runner.study import refuse_unfilled

__all__ = ["refuse_foreign", "registered_specs", "require_key", "sign_launches", "verified_registration"]


def verified_registration(path: Path) -> SignedRegistration:
    """The registration in LOG/NNNN-register.json, after the whole log was verified. CheckFailed if it is bad."""
    verify_log(path.parent).raise_if_failed()
    registration = find_registration(path)
    standing = walk(path.parent).standings.all.get(registration.digest)
    if standing is not None and standing.withdrawn is not None:
        raise CheckFailed(
            f"{path} was withdrawn by entry {standing.withdrawn}; launch another registration, "
            "or its designs as a study"
        )
    return registration


def registered_specs(
    registration: SignedRegistration, *, threads: int = 1, entry: str = ENTRY, own: OwnTraining | None = None
) -> list[JobSpec]:
    """One job spec a target and replicate, with the seed that the registration's digest gives.

    own: the user's own training, for an entry that is not ours. Refuses a command that cannot be filled in.
    """
    digest, launch = registration.digest, registration.statement.launch
    if own is not None and own.command is not None:
        refuse_unfilled(own.command, [claim.design for claim in registration.statement.targets])
    named = "{target}" in launch.job_name and "{replicate}" in launch.job_name
    return [
        JobSpec(
            run_id=launch.name(digest, claim.target, k) if named else f"pc-{digest[:16]}-{claim.target}-{k}",
            study=f"registration-{digest[:16]}",
            registration=digest,
            target=claim.target,
            replicate=k,
            design=claim.design,
            seed=derived_seed(digest, claim.target, k),
            threads=threads,
            entry=entry,
            own=own,
        )
        for claim in registration.statement.targets
        for k in range(claim.replicates)
    ]


def refuse_foreign(designs: Iterable[Design]) -> None:
    """Refuse designs that are not settings of our own training."""
    from runner.settings import complete_settings

    for design in designs:
        try:
            complete_settings(design.settings)
        except ForecastError as error:
            raise ForecastError(
                f"the registration's designs are not of our own training ({error}); "
                "give the study that names their command or entry: --presets STUDY.toml"
            ) from error


def require_key(log: Path, key: Path) -> None:
    """Refuse a key that cannot sign in `log`, before any job is submitted."""
    active, mine = Log(log).active_key(), public_key_of(key)
    if active != mine:
        raise ForecastError(f"the log's key is {active.fingerprint}, {key} is {mine.fingerprint}; give the log's key")


def sign_launches(folder: Path, log: Path, key: Path) -> list[Path]:
    """Write a `launch` entry for each submission of `folder` that has none; the new entries' files.

    A launcher that was killed between submission and signature leaves one, and the next launch signs it.
    """
    written = []
    for submission in sorted((folder / "submissions").glob("[0-9]*")):
        mark, record = submission / "entry.json", _json(submission / "submitted.json")
        if mark.exists() or record is None:
            continue
        body = _body(folder, submission, record)
        if body is None:
            continue
        entry = Log(log).append("launch", body, key=key)
        write_atomically(mark, json.dumps({"entry": entry.path.name, "digest": entry.digest}).encode())
        written.append(entry.path)
    return written


def _body(folder: Path, submission: Path, record: dict[str, Any]) -> dict[str, Any] | None:
    lists = [content for path in sorted(submission.glob("job-*.json")) if (content := _json(path))]
    specs = [_spec(folder, run) for run in dict.fromkeys(run for content in lists for run in content["runs"])]
    if not specs or specs[0].registration is None:
        return None
    own = specs[0].own
    return {
        "registration": specs[0].registration,
        "jobs": [_job(folder, spec) for spec in specs],
        "code_hash": lists[0]["code_hash"],
        "lock_hash": lists[0]["lock_hash"],
        "executor": record["executor"],
        "job_ids": [job["job_id"] for job in record.get("arrays") or record["jobs"]],
        "submitted": lists[0]["submitted"],
    } | ({"training_hash": own.files_hash} if own and own.files_hash else {})


def _job(folder: Path, spec: JobSpec) -> dict[str, Any]:
    data = run_folder(folder, spec.run_id).spec.read_bytes()
    return {"target": spec.target, "replicate": spec.replicate, "seed": spec.seed, "spec_sha256": sha256_hex(data)}


def _spec(folder: Path, run_id: str) -> JobSpec:
    return JobSpec.model_validate_json(run_folder(folder, run_id).spec.read_bytes())


def _json(path: Path) -> dict[str, Any] | None:
    try:
        return dict(json.loads(path.read_bytes()))
    except (OSError, ValueError):
        return None


def refuse_other_code(registration: SignedRegistration, found: str) -> None:
    """Refuse code that is not the registered one."""
    stated = registration.statement.launch.code_hash
    if stated is not None and stated != found:
        raise ForecastError(
            f"the registration is for code {stated[:16]}, this is {found[:16]}; check out the registered code, "
            "or go on with --other-code (the check will say so)"
        )


def unsigned(folder: Path) -> Sequence[Path]:
    """Submissions for which the log has no launch entry yet."""
    return [p for p in sorted((folder / "submissions").glob("[0-9]*")) if not (p / "entry.json").exists()]
