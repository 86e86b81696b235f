"""Launching on a real SLURM: arrays, states, stops, requeues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from conftest import Cluster
from launching import Place, until

from forecast.records import Run
from runner.status import RunStatus, read_status


def outcomes(place: Place) -> list[Run]:
    return [Run.model_validate_json(path.read_bytes()) for path in sorted(place.folder.glob("runs/*/run.json"))]


def attempts(place: Place) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in sorted(place.folder.glob("runs/*/attempts/*.json"))]


def only(place: Place) -> RunStatus:
    (run,) = read_status(place.folder).runs
    return run


def test_a_study_of_more_runs_than_an_array_takes_runs_each_once(place: Place, cluster: Cluster) -> None:
    place.write(f"[grid]\nn_samples = {list(range(1, 13))}")
    ended = place.launch("--json")
    names = cluster.run("sacct", "-X", "-n", "-P", "-o", "JobName").split()

    assert (ended.returncode, json.loads(ended.stdout)["finished"]) == (0, 12)
    assert 12 == len(set(place.started())) == len(place.started()) == len(outcomes(place))
    assert {8, 4} == {names.count(name) for name in names}
    assert all(name.startswith("pc-toy-") for name in names)


def test_several_runs_go_into_one_job(place: Place) -> None:
    place.write("[grid]\nn_samples = [1, 2, 3, 4, 5]")
    place.launch("--runs-per-job", "2")

    assert len({run.provenance.job_id for run in outcomes(place) if run.provenance}) == 3
    assert 5 == len(place.started()) == len(outcomes(place))


def test_a_failure_of_the_training_is_not_requeued(place: Place) -> None:
    place.write("[[designs]]\nn_samples = 1\ndo = 'raise'")
    ended = place.launch()

    assert (ended.returncode, len(place.started())) == (1, 1)
    assert only(place).reason == "ValueError: the toy was told to fail"


def test_a_stopped_run_goes_on_from_its_checkpoint_to_the_undisturbed_result(place: Place, cluster: Cluster) -> None:
    place.write("[[designs]]\nn_samples = 100\nstep_s = 0.02", entry="walk")
    place.launch("--no-wait")
    until(lambda: (only(place).progress or 0) > 0.1)
    cluster.run("scancel", "--signal=USR2", str(only(place).job_id))
    until(lambda: only(place).state in ("requeued", "finished"))
    place.launch()
    undisturbed = Place(place.root / "again")
    undisturbed.write("[[designs]]\nn_samples = 100\nstep_s = 0.02", entry="walk")
    undisturbed.launch("--executor", "local")
    starts = [int(word) for word in Path(f"{place.starts}.steps").read_text().split()]

    assert len(starts) == 2
    assert 0 == starts[0] < starts[1]
    assert outcomes(undisturbed)[0].evaluations == outcomes(place)[0].evaluations
    assert [attempt["status"] for attempt in attempts(place)] == ["stopped", "finished"]
    assert attempts(place)[0]["reason"] == "preempted"


def test_a_run_without_a_checkpoint_starts_again_when_stopped(place: Place, cluster: Cluster) -> None:
    place.write("[[designs]]\nn_samples = 4\ndo = 'wait'")
    place.launch("--no-wait")
    until(place.started)
    until(lambda: only(place).state == "running")
    cluster.run("scancel", "--signal=USR2", str(only(place).job_id))
    until(lambda: only(place).state == "requeued")
    place.go.touch()
    ended = place.launch()

    assert (ended.returncode, len(place.started())) == (0, 2)
    assert outcomes(place)[0].provenance.attempt == 2  # type: ignore[union-attr]


def test_a_cancelled_waiting_task_is_found_out_and_done_by_the_next_launch(place: Place, cluster: Cluster) -> None:
    place.executor = place.executor.replace("time_min = 5", "time_min = 5\nparallel = 1")
    place.write("[grid]\nn_samples = [1, 2]\n[design]\ndo = 'wait'")
    place.launch("--no-wait")
    until(place.started)
    pending = next(run for run in read_status(place.folder).runs if run.state == "pending")
    cluster.run("scancel", str(pending.job_id))
    age(place, seconds=120)
    until(lambda: "launch again" in str(state_of(place, pending.run_id).reason))
    vanished = state_of(place, pending.run_id)
    place.go.touch()
    ended = place.launch()

    assert "JobArrayTaskLimit" in str(pending.reason)
    assert vanished.state == "pending"
    assert "SLURM" in str(vanished.reason)
    assert (ended.returncode, len(outcomes(place))) == (0, 2)


def age(place: Place, *, seconds: float) -> None:
    """Make the submissions look `seconds` older."""
    for path in place.folder.glob("submissions/*/submitted.json"):
        record = json.loads(path.read_bytes())
        path.write_text(json.dumps(record | {"at": record["at"] - seconds}))


def state_of(place: Place, run_id: str) -> RunStatus:
    return next(run for run in read_status(place.folder).runs if run.run_id == run_id)


def test_a_node_that_fails_leaves_the_run_requeued_not_lost(place: Place, cluster: Cluster) -> None:
    place.write("[[designs]]\nn_samples = 1\ndo = 'wait'")
    place.launch("--no-wait")
    until(lambda: only(place).state == "running")
    cluster.run("scontrol", "update", "nodename=localhost", "state=down", "reason=test")
    states = {only(place).state for _ in range(20)}
    job = str(only(place).job_id)
    until(lambda: f"{job}|" in cluster.run("squeue", "-h", "-r", "-t", "PENDING", "-o", "%i|"))
    waiting = only(place)
    until(lambda: not attempt_lives(place))
    cluster.try_to("scontrol", "update", "nodename=localhost", "state=resume")
    cluster.try_to("scontrol", "release", job)
    place.go.touch()
    ended = place.launch()

    assert "lost" not in states
    assert waiting.state != "lost"
    assert ended.returncode == 0
    assert len(outcomes(place)) == 1


def attempt_lives(place: Place) -> bool:
    """Whether the process of the last attempt is there."""
    from runner.living import process_lives

    last = attempts(place)[-1]
    return bool(process_lives(last["host"], last["pid"], last["created"]))


def test_a_run_preempted_without_grace_is_done_in_the_end_and_never_failed(place: Place, cluster: Cluster) -> None:
    place.executor = place.executor.replace("[presets.test]", "[presets.test]\npartition = 'nograce'")
    place.write("[[designs]]\nn_samples = 1\ndo = 'wait'")
    place.launch("--no-wait")
    until(lambda: only(place).state == "running")
    urgent = cluster.run("sbatch", "--parsable", "-p", "urgent", "-n", "16", "-o", "/dev/null", "--wrap", "sleep 3")
    seen = set()
    until(lambda: seen.add(only(place).state) or len(place.started()) == 2, seconds=90)  # type: ignore[func-returns-value]
    place.go.touch()
    ended = place.launch()

    assert urgent.isdigit()
    assert not {"failed", "lost"} & seen
    assert (ended.returncode, len(outcomes(place))) == (0, 1)


def test_memory_is_told_apart_from_failure_and_from_preemption(place: Place) -> None:
    place.executor = place.executor.replace("memory_gb = 2", "memory_gb = 0.25")
    place.write("[[designs]]\nn_samples = 1\nmegabytes = 600", entry="eat")
    place.launch()
    lost = only(place)
    again = place.launch()

    assert lost.state == "lost"
    assert "ran out of memory" in str(lost.reason)
    assert (only(place).state, only(place).attempts) == ("failed", 1)
    assert "give the preset more memory_gb" in str(only(place).reason)
    assert "1 failed before" in again.stderr


def test_setup_lines_fail_loudly(place: Place) -> None:
    place.executor = place.executor.replace("[presets.test]", "[presets.test]\nsetup = ['cd /does/not/exist']")
    place.write("[[designs]]\nn_samples = 1")
    ended = place.launch()

    assert ended.returncode == 2
    assert place.started() == []
    assert "/does/not/exist: No such file" in str(only(place).reason)


def test_a_setup_line_that_changes_the_python_path_does_not_hide_our_code(place: Place) -> None:
    setup = "setup = ['export PYTHONPATH=/nowhere', 'unset PYTHONSAFEPATH']"
    place.executor = place.executor.replace("[presets.test]", f"[presets.test]\n{setup}")
    place.write("[[designs]]\nn_samples = 1")

    assert place.launch().returncode == 0


def test_a_job_that_can_never_start_shows_why(place: Place) -> None:
    place.executor = place.executor.replace("[presets.test]", "[presets.test]\ncpus_per_task = 64")
    place.write("[[designs]]\nn_samples = 1")
    place.launch("--no-wait")

    assert only(place).state == "pending"
    assert "PartitionConfig" in str(only(place).reason)


def test_a_launch_from_inside_a_job_works(place: Place, cluster: Cluster) -> None:
    import os
    import shlex
    import subprocess

    place.write("[[designs]]\nn_samples = 1")
    command = shlex.join(place.command("launch", place.study, "--folder", place.folder))
    words = ["srun", "-n", "1", "--mem", "500", "bash", "-c", command]
    done = subprocess.run(
        words, env=place.environment, cwd=place.work, capture_output=True, text=True, timeout=120, check=False
    )

    assert os.environ["SLURM_CONF"]
    assert (done.returncode, done.stderr if done.returncode else "") == (0, "")
    assert len(outcomes(place)) == 1


def test_code_that_changes_while_jobs_wait_is_not_what_runs(place: Place, cluster: Cluster) -> None:
    cluster.run("scontrol", "update", "partitionname=main", "state=down")
    place.write("[[designs]]\nn_samples = 1")
    place.launch("--no-wait")
    for path in (place.folder / "snapshot").glob("*/runner/claim.py"):
        path.write_text(path.read_text() + "\n# changed while the job waited\n")
    cluster.run("scontrol", "update", "partitionname=main", "state=up")
    until(lambda: "launch again" in str(only(place).reason))

    assert place.started() == []
    assert outcomes(place) == []


def test_deleted_logs_and_folders_lose_no_outcome(place: Place) -> None:
    import shutil

    place.write("[[designs]]\nn_samples = 1\ndo = 'wait'")
    place.launch("--no-wait")
    until(lambda: only(place).state == "running")
    for path in place.folder.glob("submissions/*/slurm"):
        shutil.rmtree(path)
    place.go.touch()
    until(lambda: outcomes(place))

    assert only(place).state == "finished"
