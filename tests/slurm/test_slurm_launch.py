"""Launching on a real SLURM: arrays, states, stops, requeues."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conftest import Cluster
from launching import Place

from forecast.records import Run
from runner.status import RunStatus, read_status


def outcomes(place: Place) -> list[Run]:
    return [Run.model_validate_json(path.read_bytes()) for path in sorted(place.folder.glob("runs/*/run.json"))]


def attempts(place: Place) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in sorted(place.folder.glob("runs/*/attempts/*.json"))]


def only(place: Place) -> RunStatus:
    (run,) = read_status(place.folder).runs
    return run


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Poll until `condition()` holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


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
