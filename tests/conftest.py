"""Fixtures of more than one file: a place for the registration's commands, and an honest log to attack."""

import json
import shutil

import numpy as np
import pytest
from attack_cases import clock_office, copied, honest_case
from command_cases import AUTHOR, run_all
from registration_cases import make_key
from worlds_of_runs import run, simulated_runs

from forecast.fitting import fit
from forecast.ledger import append_runs
from prereg.signature import public_key_of
from runner.cli import main


@pytest.fixture(scope="session")
def command_base(tmp_path_factory):
    """A fit, targets, a key and a log with one registration."""
    folder = tmp_path_factory.mktemp("base")
    data = simulated_runs()
    append_runs(folder / "data.jsonl", data)
    fit(data, metric="mutual_knn", law="hill", rng=np.random.default_rng(7), seed=7).save(folder / "fit.json")
    targets = [
        {"target": f"g{int(100 * g):03d}-n{n}", "design": run("x", n, g, 0.1).design.model_dump(), "replicates": 3}
        for g in (0.1, 0.6, 0.9)
        for n in (24_000, 96_000)
    ]
    (folder / "targets.json").write_text(json.dumps(targets))
    make_key(folder / "key")
    (folder / "allowed").write_text(f'"{AUTHOR}" {public_key_of(folder / "key").line}\n')
    return folder


@pytest.fixture
def place(command_base, tmp_path, monkeypatch):
    shutil.copytree(command_base, tmp_path / "place")
    monkeypatch.chdir(tmp_path / "place")
    return tmp_path / "place"


@pytest.fixture(scope="session")
def registered_base(command_base, tmp_path_factory):
    """As `command_base`, with one registration in log/0002 and its outcomes in runs.jsonl."""
    folder = tmp_path_factory.mktemp("registered") / "place"
    shutil.copytree(command_base, folder)
    words = ["register", folder / "fit.json", folder / "targets.json", "--log", folder / "log", "--key", folder / "key"]
    words += ["--author", AUTHOR, "--yes", "--claim", "hill holds", "--exclude", "node-failure=the node died"]
    with pytest.raises(SystemExit):
        main([str(word) for word in words])
    run_all(folder)
    return folder


@pytest.fixture
def ready(registered_base, tmp_path, monkeypatch):
    shutil.copytree(registered_base, tmp_path / "ready")
    monkeypatch.chdir(tmp_path / "ready")
    return tmp_path / "ready"


@pytest.fixture(scope="session")
def clock(tmp_path_factory):
    """A time authority of our own, answering."""
    with clock_office(tmp_path_factory.mktemp("tsa")) as found:
        yield found


@pytest.fixture(scope="session")
def honest(tmp_path_factory, clock):
    """An honest log, its data and its runs; nobody may change it."""
    return honest_case(tmp_path_factory.mktemp("honest"), clock)


@pytest.fixture
def cheat(honest, tmp_path):
    """A copy of it to be damaged."""
    return copied(honest, tmp_path)
