"""A cluster without accounting: squeue and the run files are all there is."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import EXECUTOR, Cluster, start
from launching import Place, until
from test_slurm_launch import only, outcomes


@pytest.fixture(scope="module")
def bare() -> Iterator[Cluster]:
    """One node, no accounting; finished jobs are forgotten at once."""
    yield from start(ST_ACCT="0", ST_MINJOBAGE="2")


@pytest.fixture
def place(tmp_path: Path, bare: Cluster) -> Iterator[Place]:
    """A folder with the toy, whose study runs on the bare cluster."""
    del bare
    place = Place(tmp_path)
    place.executor = EXECUTOR
    yield place
    place.go.touch()
    subprocess.run(["scancel", "-u", str(os.getuid())], timeout=60, check=False)


def test_a_study_runs(place: Place) -> None:
    place.write("[grid]\nn_samples = [1, 2, 3]")
    ended = place.launch()

    assert (0, 3) == (ended.returncode, len(outcomes(place)))


def test_a_job_that_dies_without_a_word_is_not_waited_for(place: Place, bare: Cluster) -> None:
    place.write("[[designs]]\nn_samples = 1\ndo = 'die'")
    ended = place.launch()

    assert 1 == ended.returncode
    assert "lost" == only(place).state


def test_a_cancelled_job_is_found_out_once_squeue_has_forgotten_it(place: Place, bare: Cluster) -> None:
    place.write("[[designs]]\nn_samples = 1\ndo = 'wait'")
    place.launch("--no-wait")
    until(lambda: only(place).state == "running")
    bare.run("scancel", str(only(place).job_id))
    until(lambda: only(place).state == "lost")
    place.go.touch()
    again = place.launch()

    assert (0, 1) == (again.returncode, len(outcomes(place)))
