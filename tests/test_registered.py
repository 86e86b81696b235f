"""Launching what was registered: verified first, with derived seeds, on the log."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from launching import Place

from forecast.errors import CheckFailed, ForecastError
from forecast.files import sha256_hex
from forecast.records import LEVELS, Design
from prereg.log import Log
from prereg.registering import body_of
from prereg.seeds import derived_seed
from prereg.statement import Registration
from prereg.verify import verify_log
from runner.launch import Placing, launch
from runner.presets import ExecutorChoice, Preset
from runner.registered import refuse_other_code, registered_specs, sign_launches, verified_registration
from runner.waiting import wait_for


def statement(**changes: Any) -> Registration:
    """A registration of two toy designs, two and one replicates."""
    targets = []
    for name, size, replicates in (("n10", 10, 2), ("n20", 20, 1)):
        design = Design(settings={"n_samples": size})
        targets.append(
            {
                "target": name,
                "design": design.model_dump(),
                "design_hash": design.hash,
                "replicates": replicates,
                "point": 0.5,
                "quantiles": {level: str(round(0.4 + 0.2 * float(level), 4)) for level in LEVELS},
                "curve_sd": 0.01,
                "noise_sd": 0.02,
            }
        )
    fit = {"law": "toy", "settings": {"law": "toy"}, "data_hash": "0" * 64, "rows": 1, "run_ids": ["a"]}
    fit |= {"design_hashes": ["1" * 64], "parameters": [], "file_hash": "2" * 64}
    content = {
        "claim": "alignment grows",
        "refuted_by": "it does not",
        "access": {"level": "none"},
        "metric": {"name": "alignment", "higher_is_better": True},
        "fit": fit,
        "noise": {"sigma": 0.02, "degrees_of_freedom": 3},
        "targets": targets,
        "baselines": {},
        "rules": {"deadline": "2099-01-01", "primary": {"test": "single runs"}},
        "launch": {},
    }
    return Registration.model_validate(content | changes)


@pytest.fixture
def log(tmp_path: Path) -> tuple[Path, Path]:
    """A log with one registration, and its key."""
    return signed_registration(tmp_path)


def signed_registration(tmp_path: Path) -> tuple[Path, Path]:
    """A new log's registration entry, and its key."""
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    folder = tmp_path / "log"
    Log.create(folder, author="A. Person", key=key).append("register", body_of(statement()), key=key)
    return folder / "0002-register.json", key


def submit(path: Path, folder: Path) -> None:
    """Launch the registration with the toy as its training, and wait."""
    specs = registered_specs(verified_registration(path), entry="toy:run")
    launch(specs, folder, Placing(ExecutorChoice(), Preset(kind="local")))
    wait_for(folder)


def test_each_replicate_is_one_run_with_the_seed_of_the_digest(log: tuple[Path, Path]) -> None:
    registration = verified_registration(log[0])
    specs = registered_specs(registration)
    digest = sha256_hex(log[0].read_bytes())

    assert [(spec.target, spec.replicate) for spec in specs] == [("n10", 0), ("n10", 1), ("n20", 0)]
    assert [derived_seed(digest, "n10", 0), derived_seed(digest, "n10", 1)] == [spec.seed for spec in specs[:2]]
    assert f"pc-{digest[:16]}-n10-1" == specs[1].run_id
    assert {digest} == {spec.registration for spec in specs}


def test_a_tampered_registration_is_refused(log: tuple[Path, Path]) -> None:
    log[0].write_bytes(log[0].read_bytes().replace(b"0.5", b"0.6"))

    with pytest.raises(CheckFailed):
        verified_registration(log[0])


def test_a_withdrawn_registration_is_refused(log: tuple[Path, Path]) -> None:
    digest = sha256_hex(log[0].read_bytes())
    Log(log[0].parent).append("withdraw", {"registration": digest, "reason": "wrong"}, key=log[1])

    with pytest.raises(CheckFailed, match="withdrawn"):
        verified_registration(log[0])


def test_a_launch_is_signed_with_specs_seeds_and_hashes(
    log: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path / "place")
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    submit(log[0], place.folder)
    (entry,) = sign_launches(place.folder, log[0].parent, log[1])
    body = json.loads(entry.read_bytes())["body"]
    specs = sorted(place.folder.glob("runs/*/spec.json"))
    outcomes = [json.loads(path.read_bytes()) for path in sorted(place.folder.glob("runs/*/run.json"))]

    assert entry.name == "0003-launch.json"
    assert {sha256_hex(path.read_bytes()) for path in specs} == {job["spec_sha256"] for job in body["jobs"]}
    assert [run["seed"] for run in outcomes] == [
        job["seed"] for job in sorted(body["jobs"], key=lambda job: (job["target"], job["replicate"]))
    ]
    assert {body["code_hash"]} == {run["provenance"]["code_hash"] for run in outcomes}
    assert len(body["job_ids"]) == 1
    assert sign_launches(place.folder, log[0].parent, log[1]) == []
    assert verify_log(log[0].parent).ok


def test_code_that_is_not_the_registered_one_is_refused(tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    body = body_of(statement(launch={"code_hash": "a" * 64}))
    Log.create(tmp_path / "log", author="A. Person", key=key).append("register", body, key=key)
    registration = verified_registration(tmp_path / "log/0002-register.json")

    refuse_other_code(registration, "a" * 64)
    with pytest.raises(ForecastError, match="--other-code"):
        refuse_other_code(registration, "b" * 64)


def test_a_wrong_key_is_refused_before_anything_is_submitted(log: tuple[Path, Path], tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    place = Place(tmp_path / "place")
    refused = place.run("launch", log[0], "--folder", place.folder, "--key", other)

    assert refused.returncode == 2
    assert "give the log's key" in refused.stderr
    assert not place.folder.exists()
