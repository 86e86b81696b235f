"""When the controller, its accounting or the launcher goes away."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from conftest import Cluster
from launching import Place, until
from test_slurm_launch import only, outcomes

from runner.slurm_queue import SlurmAway, find_by_name, query
from runner.status import read_status


def stand_in(folder: Path, name: str, script: str) -> str:
    """A PATH on which the command `name` is `script`."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_a_controller_that_sleeps_during_sbatch_gets_the_job_once(place: Place, cluster: Cluster) -> None:
    place.write("[[designs]]\nn_samples = 1")
    pid = cluster.daemon("slurmctld")
    real = subprocess.run(["which", "sbatch"], capture_output=True, text=True, check=True).stdout.strip()
    asleep = f'kill -STOP {pid}; (sleep 14; kill -CONT {pid}) >/dev/null 2>&1 & exec {real} "$@"'
    path = stand_in(
        place.root / "bin",
        "sbatch",
        f'test -e {place.root}/once || {{ touch {place.root}/once; {asleep}; }}\nexec {real} "$@"',
    )
    command = place.command("launch", place.study, "--folder", place.folder)
    done = subprocess.run(
        command, env=place.environment | {"PATH": path}, capture_output=True, text=True, timeout=180, check=False
    )
    (name,) = {array["name"] for array in submitted(place)["arrays"]}

    assert done.returncode == 0
    assert "SLURM does not answer" in done.stderr
    assert 1 == len(find_by_name(name)) == len(place.started()) == len(outcomes(place))


def submitted(place: Place) -> dict[str, list[dict[str, str]]]:
    import json

    (path,) = place.folder.glob("submissions/*/submitted.json")
    return dict(json.loads(path.read_bytes()))


def test_status_is_useful_while_the_controller_is_away_and_launch_submits_nothing(
    place: Place, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write("[[designs]]\nn_samples = 1\ndo = 'wait'")
    place.launch("--no-wait")
    until(lambda: only(place).state == "running")
    monkeypatch.setenv(
        "PATH", stand_in(place.root / "bin", "squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    )
    away = only(place)
    second = place.launch("--no-wait")
    monkeypatch.undo()
    place.go.touch()
    place.launch()

    assert (away.state, away.progress) == ("running", 0.25)
    assert "SLURM does not answer" in str(away.reason)
    assert "1 with living jobs" in second.stderr
    assert 1 == len(place.started()) == len(outcomes(place))


def test_accounting_that_hangs_or_fails_is_done_without(
    place: Place, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write("[[designs]]\nn_samples = 1\ndo = 'wait'")
    place.launch("--no-wait")
    until(lambda: only(place).state == "running")
    monkeypatch.setattr("runner.slurm_queue._SACCT_S", 0.5)
    monkeypatch.setenv("PATH", stand_in(place.root / "bin", "sacct", "exec sleep 30"))
    hung = only(place)
    monkeypatch.undo()

    assert hung.state == "running"


def test_a_squeue_that_hangs_is_said_not_concluded_from(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.slurm_queue._SQUEUE_S", 0.3)
    monkeypatch.setenv("PATH", stand_in(tmp_path / "bin", "squeue", "exec sleep 30"))

    with pytest.raises(SlurmAway, match="squeue did not answer"):
        query([("pc-any", 0)])


def test_an_older_job_of_another_name_is_never_taken_for_ours(place: Place, cluster: Cluster) -> None:
    other = [("pc-other", 0), ("pc-other", 1)]
    cluster.run("sbatch", "--array=0-1", "-J", "pc-other", "-o", "/dev/null", "--wrap", "true")
    until(lambda: len(query(other)) == 2)

    assert query([("pc-toy-1", 0)]) == {}
    assert set(other) == set(query(other))


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_a_launcher_killed_at_random_moments_leaves_every_run_to_be_done_once(
    place: Place, cluster: Cluster, kills: int
) -> None:
    place.write("[grid]\nn_samples = [1, 2, 3, 4]")
    command = place.command("launch", place.study, "--folder", place.folder)
    began = time.monotonic()
    place.launch("--dry-run")
    usual, moments = time.monotonic() - began, random.Random(kills)
    for _ in range(kills):
        launcher = subprocess.Popen(
            command, env=place.environment, cwd=place.work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        timer = threading.Timer(usual * moments.uniform(0.5, 2.5), launcher.send_signal, [signal.SIGKILL])
        timer.start()
        launcher.wait()
        timer.cancel()
    until(lambda: place.launch().returncode == 0 and read_status(place.folder).counts()["finished"] == 4)

    assert 4 == len(place.started()) == len(set(place.started())) == len(outcomes(place))
