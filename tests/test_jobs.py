"""`logs`, `cancel` and `retry`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from launching import Place, end_all, until

from forecast.ledger import read_ledger
from runner.collect import collect
from runner.status import read_status


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A folder with the toy in it; what it started is ended."""
    place = Place(tmp_path)
    yield place
    end_all(place)


def states(place: Place) -> dict[str, str]:
    """By n_samples, the state of each run."""
    found: dict[str, str] = {}
    for run in read_status(place.folder).runs:
        spec = json.loads((place.folder / "runs" / run.run_id / "spec.json").read_bytes())
        found[str(spec["design"]["settings"]["n_samples"])] = run.state
    return found


def run_of(place: Place, size: int) -> str:
    """The id of the run with so many samples."""
    for path in place.folder.glob("runs/*/spec.json"):
        if json.loads(path.read_bytes())["design"]["settings"]["n_samples"] == size:
            return path.parent.name
    raise LookupError(size)


def test_a_failed_run_is_retried_and_its_failure_stays_on_record(place: Place) -> None:
    place.write("[[designs]]\nn_samples = 10\ndo = 'until-go'\n[[designs]]\nn_samples = 20\n")
    failed = place.launch()
    ledger = place.root / "runs.jsonl"
    collect(place.folder, ledger)
    place.go.touch()
    again = place.run("retry", place.folder, "--failed")
    added = collect(place.folder, ledger)
    runs = sorted(read_ledger(ledger), key=lambda run: (len(run.run_id), run.run_id))
    third = place.launch()

    assert (1, 0, 0) == (failed.returncode, again.returncode, third.returncode)
    assert (1, 3) == (added.added, len(runs))
    assert f"{run_of(place, 10)}.retry1" == runs[-1].run_id
    assert ["failed", "finished"] == [run.status for run in runs if run.design.settings["n_samples"] == 10]
    assert 3 == len(place.started())


def test_only_a_failed_run_can_be_retried(place: Place) -> None:
    place.write("[[designs]]\nn_samples = 10\n")
    place.launch()
    refused = place.run("retry", place.folder, "--run", run_of(place, 10))
    unknown = place.run("retry", place.folder, "--run", "nobody")
    none = place.run("retry", place.folder, "--failed")
    neither = place.run("retry", place.folder)

    assert (2, 2, 0, 2) == (refused.returncode, unknown.returncode, none.returncode, neither.returncode)
    assert "has not failed" in refused.stderr
    assert "has no run nobody" in unknown.stderr


def test_cancel_ends_all_jobs_and_the_next_launch_does_the_rest(place: Place) -> None:
    place.write("[[designs]]\nn_samples = 20\ndo = 'wait'\n[[designs]]\nn_samples = 10\n")
    place.launch("--no-wait")
    until(place.started)
    cancelled = place.run("cancel", place.folder, "--json")
    stopped = states(place)
    place.go.touch()
    ended = place.launch()

    assert {"cancelled_jobs": 1, "unseen_jobs": 0} == json.loads(cancelled.stdout)
    assert {"10": "pending", "20": "lost"} == stopped
    assert (0, {"10": "finished", "20": "finished"}) == (ended.returncode, states(place))


def test_cancel_ends_a_job_that_does_not_listen(place: Place) -> None:
    from runner.cancel import cancel_jobs

    place.write("[[designs]]\nn_samples = 20\ndo = 'deaf'\n")
    place.launch("--no-wait")
    until(place.started)
    ended, unseen = cancel_jobs(place.folder, patience_s=0.3)

    assert (1, 0) == (len(ended), len(unseen))
    assert {"20": "lost"} == states(place)


def test_one_run_can_be_cancelled_and_its_job_goes_on(place: Place) -> None:
    place.write("[[designs]]\nn_samples = 30\ndo = 'wait'\n[[designs]]\nn_samples = 20\n[[designs]]\nn_samples = 10\n")
    place.launch("--no-wait")
    until(place.started)
    done = place.run("cancel", place.folder, "--run", run_of(place, 30), "--run", run_of(place, 10), "--json")
    until(lambda: not read_status(place.folder).active)
    cancelled = states(place)
    place.go.touch()
    ended = place.launch()

    assert {"cancelled_runs": 2, "of_them_running": 1} == json.loads(done.stdout)
    assert {"10": "pending", "20": "finished", "30": "pending"} == cancelled
    assert (0, {"10", "20", "30"}, {"finished"}) == (ended.returncode, {*states(place)}, {*states(place).values()})


def test_logs_show_a_run_s_own_part_and_its_trace(place: Place) -> None:
    place.write("[[designs]]\nn_samples = 20\ndo = 'raise'\n[[designs]]\nn_samples = 10\n")
    place.launch()
    failed = place.run("logs", place.folder, run_of(place, 20))
    good = place.run("logs", place.folder, run_of(place, 10), "--tail", "1")

    assert "the toy says 20" in failed.stdout
    assert "Traceback" in failed.stdout
    assert "the toy was told to fail" in failed.stdout
    assert "the toy says 10" not in failed.stdout
    assert "the toy says 10" == good.stdout.strip()


def test_logs_of_what_is_not_there_are_refused(place: Place) -> None:
    place.write("[[designs]]\nn_samples = 10\n")
    place.launch()
    unknown = place.run("logs", place.folder, "nobody")
    attempt = place.run("logs", place.folder, run_of(place, 10), "--attempt", "7")

    assert (2, 2) == (unknown.returncode, attempt.returncode)
    assert "attempts 1 to 1, not 7" in attempt.stderr
