"""From run folders to a ledger."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from launching import Place

from forecast.errors import ForecastError
from forecast.files import write_atomically
from forecast.ledger import read_ledger
from runner.cli import main
from runner.collect import Collected, collect
from runner.spec import JobSpec, run_folder


def finish(folder: Path, name: str, *, value: float | None) -> None:
    """A run folder as a job leaves it; no outcome if `value` is None, a failure if it is negative."""
    spec = JobSpec.model_validate({"run_id": name, "study": "s", "design": {"settings": {"n_samples": 1}}, "seed": 0})
    write_atomically(run_folder(folder, name).spec, spec.model_dump_json().encode())
    if value is not None:
        run = spec.failed("broken").model_dump(mode="json")
        if value >= 0:
            run |= {"status": "finished", "failure": None}
            run["evaluations"] = [{"metric": {"name": "m"}, "value": value}]
        write_atomically(run_folder(folder, name).outcome, json.dumps(run).encode())


def test_outcomes_are_appended_once_while_others_still_run(tmp_path: Path) -> None:
    for name, value in (("a", 0.5), ("b", -1.0), ("c", None)):
        finish(tmp_path, name, value=value)
    ledger = tmp_path / "runs.jsonl"
    first = collect(tmp_path, ledger)
    again = collect(tmp_path, ledger)
    finish(tmp_path, "c", value=0.25)
    later = collect(tmp_path, ledger)

    assert Collected(finished=1, failed=1, open=1, added=2) == first
    assert Collected(finished=1, failed=1, open=1, added=0) == again
    assert Collected(finished=2, failed=1, open=0, added=1) == later
    assert [run.run_id for run in read_ledger(ledger)] == ["a", "b", "c"]
    assert [run.evaluations[0].value if run.evaluations else None for run in read_ledger(ledger)] == [0.5, None, 0.25]


def test_a_corrupt_outcome_is_named_and_nothing_is_added(tmp_path: Path) -> None:
    finish(tmp_path, "a", value=0.5)
    finish(tmp_path, "b", value=0.5)
    run_folder(tmp_path, "b").outcome.write_text('{"run_id": "b"}')

    with pytest.raises(ForecastError, match=r"runs/b/run.json is not a run: design Field required"):
        collect(tmp_path, tmp_path / "runs.jsonl")
    assert not (tmp_path / "runs.jsonl").exists()


def test_a_changed_outcome_is_refused(tmp_path: Path) -> None:
    finish(tmp_path, "a", value=0.5)
    collect(tmp_path, tmp_path / "runs.jsonl")
    finish(tmp_path, "a", value=0.75)

    with pytest.raises(ForecastError, match="another run"):
        collect(tmp_path, tmp_path / "runs.jsonl")


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ForecastError, match="holds no runs"):
        collect(tmp_path, tmp_path / "runs.jsonl")


def test_the_command_collects_what_jobs_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = Place(tmp_path)
    place.write("[grid]\nn_samples = [10, 20]\n")
    place.launch()
    with pytest.raises(SystemExit) as ended:
        main(["collect", str(place.folder), "--ledger", str(tmp_path / "runs.jsonl"), "--json"])

    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out) == {"finished": 2, "failed": 0, "open": 0, "added": 2}
    assert sorted(run.evaluations[0].value for run in read_ledger(tmp_path / "runs.jsonl")) == [0.01, 0.02]
