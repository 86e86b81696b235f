"""Odd folders, names and times on SLURM."""

from __future__ import annotations

import hashlib
import json

import pytest
from conftest import Cluster
from launching import Place, until
from test_slurm_launch import attempts, only, outcomes


def test_a_folder_with_a_space_a_quote_and_files_of_the_user_runs_our_code(place: Place, cluster: Cluster) -> None:
    place.work = place.root / 'it\'s a "work" folder'
    place.folder = place.work / "the out put"
    for name in ("runner.py", "forecast.py", "prereg.py", "submitit.py", "data/__init__.py"):
        (place.work / name).parent.mkdir(parents=True, exist_ok=True)
        (place.work / name).write_text("raise RuntimeError('a file of the user')\n")
    place.write("[grid]\nn_samples = [1, 2]")
    ended = place.launch()

    assert (0, 2) == (ended.returncode, len(outcomes(place)))


def test_an_attempt_says_when_slurm_took_and_started_it(place: Place, cluster: Cluster) -> None:
    place.write("[[designs]]\nn_samples = 1")
    place.launch()
    (attempt,), (run,) = attempts(place), outcomes(place)
    words = ("env", "TZ=UTC", "sacct", "-X", "-n", "-P", "-j", attempt["job_id"], "-o", "Submit,Start")
    until(lambda: "T" in cluster.run(*words).partition("|")[2])  # accounting lags
    asked = cluster.run(*words)

    assert run.provenance is not None
    assert asked.replace("|", "Z|") + "Z" == f"{attempt['slurm_submit']}|{attempt['slurm_start']}"
    assert attempt["slurm_submit"] == run.provenance.submitted


def test_gpu_hours_are_counted_and_the_gpus_dealt(place: Place, cluster: Cluster) -> None:
    place.executor = place.executor.replace("[presets.test]", "[presets.test]\ngpus_per_node = 2")
    place.write("[[designs]]\nn_samples = 1")
    place.launch()
    status = json.loads(place.run("status", place.folder, "--json").stdout)
    (run,) = outcomes(place)

    assert 2 == attempts(place)[0]["gpus"]
    assert run.counters is not None
    assert run.counters.gpu_s == pytest.approx(2 * run.counters.wall_s)  # type: ignore[operator]
    assert status["gpu_hours"] >= 0


def test_cancel_ends_waiting_and_running_jobs_and_is_known_at_once(place: Place, cluster: Cluster) -> None:
    place.executor = place.executor.replace("[presets.test]", "[presets.test]\nparallel = 1")
    place.write("[grid]\nn_samples = [1, 2]\n[design]\ndo = 'wait'")
    place.launch("--no-wait")
    until(place.started)
    place.run("cancel", place.folder)
    until(lambda: "" == cluster.run("squeue", "-h", "-t", "R,PD,CG"))
    status = json.loads(place.run("status", place.folder, "--json").stdout)
    place.go.touch()
    ended = place.launch()

    assert 0 == status["running"] == status["living_jobs"]
    assert (0, 2) == (ended.returncode, len(outcomes(place)))


def test_a_run_s_log_is_found_from_its_name(place: Place, cluster: Cluster) -> None:
    place.write("[[designs]]\nn_samples = 1\ndo = 'raise'")
    place.launch()
    log = place.run("logs", place.folder, only(place).run_id).stdout

    assert "the toy says 1" in log
    assert "ValueError: the toy was told to fail" in log


def test_a_registration_s_digest_is_in_the_name_of_its_jobs(place: Place, cluster: Cluster) -> None:
    from test_registered import signed_registration

    path, key = signed_registration(place.root)
    place.write("[design]\nn_samples = 1")
    done = place.run("launch", path, "--folder", place.folder, "--presets", place.study, "--key", key)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    names = list(cluster.run("squeue", "-h", "-r", "-t", "all", "-o", "%j").splitlines())
    body = json.loads((path.parent / "0003-launch.json").read_bytes())["body"]

    assert (0, 3) == (done.returncode, len(outcomes(place)))
    assert 3 == sum(name.startswith(f"pc-{digest[:16]}-") for name in names)
    assert ("slurm", 3, digest) == (body["executor"], len(body["jobs"]), body["registration"])
    assert body["job_ids"] == [attempts(place)[0]["job_id"].split("_")[0]]
