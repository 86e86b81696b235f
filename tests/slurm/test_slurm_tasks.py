"""Several tasks, forked workers, real time limits."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Cluster
from launching import Place, until
from test_slurm_launch import attempts, only, outcomes


def test_two_tasks_with_gloo_give_the_result_of_one(place: Place) -> None:
    two = "[presets.test]\ntasks_per_node = 2"
    place.executor = place.executor.replace("[presets.test]", two)
    place.write("[grid]\nn_samples = [20, 30]", entry="pair")
    ended = place.launch("--runs-per-job", "2")
    one = Place(place.root / "one")
    one.write("[grid]\nn_samples = [20, 30]", entry="pair")
    one.launch("--executor", "local")

    assert ended.returncode == 0
    assert [run.evaluations for run in outcomes(one)] == [run.evaluations for run in outcomes(place)]
    assert [run.provenance.world_size for run in outcomes(place) if run.provenance] == [2, 2]


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_fails_ends_the_job_and_is_named(place: Place, rank: int) -> None:
    place.executor = place.executor.replace("[presets.test]", "[presets.test]\ntasks_per_node = 2")
    place.write(f"[[designs]]\nn_samples = 20\nbroken_rank = {rank}", entry="pair")
    place.launch()

    assert f"rank {rank} of 2: ValueError: this rank was told to fail" == only(place).reason


def test_forked_workers_neither_checkpoint_nor_requeue(place: Place, cluster: Cluster) -> None:
    place.write("[[designs]]\nn_samples = 100\nstep_s = 0.03", entry="loaders")
    place.launch("--no-wait")
    for _ in range(2):
        until(lambda: only(place).state == "running" and (only(place).progress or 0) > 0.1)
        cluster.run("scancel", "--signal=USR2", str(only(place).job_id))
        until(lambda: only(place).state != "running")
    place.launch()
    starts = [int(word) for word in Path(f"{place.starts}.steps").read_text().split()]

    assert [attempt["status"] for attempt in attempts(place)] == ["stopped", "stopped", "finished"]
    assert 0 == starts[0] < starts[1] <= starts[2]
    assert len(starts) == 3


@pytest.mark.slow
def test_a_time_limit_is_survived_with_a_checkpoint_and_a_bit_equal_result(place: Place) -> None:
    place.executor = place.executor.replace("time_min = 5", "time_min = 2")
    place.write("[[designs]]\nn_samples = 400\nstep_s = 0.25", entry="walk")
    ended = place.launch()
    undisturbed = Place(place.root / "again")
    undisturbed.write("[[designs]]\nn_samples = 400\nstep_s = 0", entry="walk")
    undisturbed.launch("--executor", "local")

    assert ended.returncode == 0
    assert attempts(place)[0]["reason"] == "time limit"
    assert len(attempts(place)) > 1
    assert outcomes(undisturbed)[0].evaluations == outcomes(place)[0].evaluations


@pytest.mark.slow
def test_a_run_that_never_gets_through_its_time_limit_fails_by_name(place: Place) -> None:
    place.executor = place.executor.replace("time_min = 5", "time_min = 2\nrequeues = 0")
    place.write("[[designs]]\nn_samples = 1\ndo = 'wait'")
    place.launch()

    assert str(only(place).reason).startswith("time limit: stopped 1 times")
