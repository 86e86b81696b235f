"""Small logs, registrations and outcomes for the tests of `prereg`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from forecast.records import LEVELS, Design, Evaluation, Metric, Run
from prereg.log import Log, SignedEntry
from prereg.registering import body_of
from prereg.seeds import derived_seed
from prereg.statement import Registration, SignedRegistration, find_registration

METRIC = Metric(name="knn", chance=0.01, lower=0.0, upper=1.0, items_hash="ab" * 32)
SIGMA = 0.01
Z = dict(zip(LEVELS, (-1.96, -1.645, -1.282, -0.674, 0.0, 0.674, 1.282, 1.645, 1.96), strict=True))


def make_key(path: Path, *, kind: str = "ed25519", passphrase: str = "") -> Path:
    """A new SSH key at `path`."""
    command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "test", "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return path


def target_body(name: str, point: float, *, replicates: int, width: float = 1.5, n: int = 1000) -> dict[str, Any]:
    """A target's claim whose interval is `width` times that of seed noise."""
    design = Design(settings={"good_view_fraction": 0.5, "n_samples": n, "objective": "jepa", "name": name})
    return {
        "target": name,
        "design": {"settings": dict(design.settings)},
        "design_hash": design.hash,
        "replicates": replicates,
        "point": point,
        "quantiles": {level: f"{point + z * width * SIGMA:.9g}" for level, z in Z.items()},
        "curve_sd": SIGMA * (width**2 - 1) ** 0.5,
        "noise_sd": SIGMA,
        "curve_factor": [SIGMA * (width**2 - 1) ** 0.5],
    }


def statement_body(*, targets: int = 10, replicates: int = 3, deadline: str = "2999-12-31") -> dict[str, Any]:
    """A registration as plain JSON values; change what a test is about."""
    claims = [target_body(f"t{i:03d}", 0.3 + 0.01 * i, replicates=replicates, n=1000 * (i + 1)) for i in range(targets)]
    return {
        "claim": "the law forecasts new runs as well as a rerun would",
        "refuted_by": "the primary test says WORSE THAN SEED NOISE",
        "access": {"level": "pilot", "seen": ["pilot-1"]},
        "metric": METRIC.model_dump(),
        "fit": {
            "law": "hill",
            "settings": {"loss": "squared"},
            "data_hash": "cd" * 32,
            "rows": 45,
            "run_ids": [f"r{i}" for i in range(45)],
            "design_hashes": ["ef" * 32],
            "parameters": [{"name": "ceiling", "value": 0.9}],
            "file_hash": "01" * 32,
        },
        "noise": {"sigma": SIGMA, "degrees_of_freedom": 40},
        "targets": claims,
        "baselines": {"mean": {claim["target"]: 0.0 for claim in claims}},
        "rules": {
            "exclusions": [{"id": "node-failure", "rule": "the node died; the scheduler says so"}],
            "deadline": deadline,
            "primary": {"test": "replicates" if replicates > 1 and targets > 1 else "single runs"},
        },
        "launch": {"code_hash": "23" * 32},
    }


def statement(**options: Any) -> Registration:
    """The record of `statement_body`."""
    return Registration.model_validate(statement_body(**options))


def new_log(folder: Path, *, author: str = "Ada <ada@example.org>") -> tuple[Path, Path]:
    """A log in folder/log and its key in folder/key."""
    key = make_key(folder / "key")
    Log.create(folder / "log", author=author, key=key)
    return folder / "log", key


def registered(folder: Path, body: dict[str, Any] | None = None) -> tuple[SignedRegistration, Path, Path]:
    """A log with one registration: it, the log's folder, the key."""
    log, key = new_log(folder)
    written = Registration.model_validate(body or statement_body())
    signed: SignedEntry = Log(log).append("register", body_of(written), key=key)
    return find_registration(signed.path), log, key


def outcomes(
    registration: SignedRegistration,
    rng: np.random.Generator,
    *,
    noise: float = SIGMA,
    bias: Callable[[int], float] = lambda i: 0.0,
) -> list[Run]:
    """Finished runs of every registered replicate: point + bias(i) + noise."""
    runs = []
    for i, claim in enumerate(registration.statement.targets):
        for replicate in range(claim.replicates):
            value = claim.point + bias(i) + noise * rng.standard_normal()
            runs.append(
                Run(
                    run_id=f"{claim.target}-{replicate}",
                    registration=registration.digest,
                    target=claim.target,
                    replicate=replicate,
                    design=claim.design,
                    seed=derived_seed(registration.digest, claim.target, replicate),
                    status="finished",
                    evaluations=(Evaluation(metric=METRIC, value=float(np.clip(value, 0, 1))),),
                )
            )
    return runs
