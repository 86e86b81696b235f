"""Runs of a user's own training from the study to the ledger, on this machine."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from launching import Place, end_all, until

from forecast.records import Run
from runner.status import read_status
from runner.waiting import wait_for

TRAIN = """
import json, os, pathlib, signal, sys, time
import mine  # a sibling
do, n, seed, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), pathlib.Path(sys.argv[4])
assert out.is_dir() and str(out) == os.environ["PLATOCAST_RUN_DIR"]
with open(os.environ["TOY_STARTS"], "a") as file:
    file.write(f"{n}/{do}/{seed}\\n")
if do == "exit":
    print("CRASH: no such file", file=sys.stderr)
    sys.exit(3)
if do == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if do == "slow":
    time.sleep(1000)
if do in ("wait", "term"):
    (out / "progress.json").write_text('{"done": 1, "total": 4}')
    if do == "term":
        signal.signal(signal.SIGTERM, lambda *_: ((out / "metrics.json").write_text('{"score": 9}'), sys.exit(0)))
    while not pathlib.Path(os.environ["TOY_GO"]).exists():
        time.sleep(0.02)
if do != "nothing":
    value = float("nan") if do == "nan" else mine.score(n) + seed / 1e6
    (out / "metrics.json").write_text(json.dumps({"score": value, "counters": {"steps": n}}))
print(json.dumps({name: os.environ.get(name) for name in ("PYTHONSAFEPATH", "PYTHONPATH", "OMP_NUM_THREADS")}))
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A folder with a study whose command is a script of the user's, beside files named like ours."""
    place = Place(tmp_path)
    mine = tmp_path / 'it\'s a "study"'
    mine.mkdir()
    place.study = mine / "study.toml"
    (mine / "train.py").write_text(TRAIN)
    (mine / "mine.py").write_text("def score(n):\n    return n / 100\n")
    (mine / "runner.py").write_text("raise RuntimeError('a file of the user')\n")
    yield place
    end_all(place)


def write(place: Place, *actions: str, more: str = "") -> None:
    python = psutil.Process().exe()
    command = f"{python} train.py {{do}} {{n_samples}} {{seed}} {{run_dir}}"
    designs = "".join(f"[[designs]]\ndo = '{do}'\nn_samples = {10 + k}\n" for k, do in enumerate(actions))
    metric = "[metric.score]\nlower = 0\nupper = 100\nchance = 0.5\n"
    place.study.write_text(f'name = "own"\ncommand = "{command}"\n{more}\n{metric}{designs}')


def outcomes(place: Place) -> dict[str, Run]:
    runs = [Run.model_validate_json(path.read_bytes()) for path in place.folder.glob("runs/*/run.json")]
    return {str(run.design.settings["do"]): run for run in runs}


def test_a_command_s_runs_are_finished_or_failed_with_the_reason(place: Place) -> None:
    write(place, "good", "exit", "kill", "nothing", "nan", "slow", more="time_limit_min = 0.05")
    ended = place.launch("--jobs", "2")
    found = outcomes(place)
    good, failures = found["good"], {do: str(run.failure) for do, run in found.items() if run.failure}
    log = place.run("logs", place.folder, good.run_id).stdout
    trace = place.run("logs", place.folder, found["exit"].run_id).stdout

    assert 1 == ended.returncode
    assert 0.1 == good.evaluations[0].value
    assert (0.5, 0.0, 100.0) == tuple(
        getattr(good.evaluations[0].metric, name) for name in ("chance", "lower", "upper")
    )
    assert {"exit", "kill", "nothing", "nan", "slow"} == failures.keys()
    assert failures["exit"].endswith("ended with exit code 3; standard error ends: CRASH: no such file")
    assert "was ended by SIGKILL" in failures["kill"]
    assert "wrote no metrics.json" in failures["nothing"]
    assert "score must be a finite number, got nan" in failures["nan"]
    assert "time limit" in failures["slow"]
    assert "its standard error ends:\nCRASH: no such file" in trace
    assert '"PYTHONSAFEPATH": null' in log
    assert str(place.root / "lib") in log
    assert "snapshot" not in log.split("PYTHONPATH", 1)[1]


def test_an_outcome_says_what_the_command_used_and_was_made_of(place: Place) -> None:
    write(place, "good")
    place.launch()
    (run,) = outcomes(place).values()
    (path,) = place.folder.glob("runs/*/attempts/001.json")
    attempt = json.loads(path.read_bytes())

    assert run.counters is not None
    assert run.provenance is not None
    assert (10, True) == (run.counters.steps, (run.counters.peak_memory_bytes or 0) > 1e6)
    assert (run.counters.cpu_s or 0) > 0
    assert run.provenance.training_hash == run.provenance.training_launched is not None
    assert (run.design.hash, run.seed, 10) == (attempt["design_hash"], attempt["seed"], attempt["counters"]["steps"])
    assert run.provenance.training_hash == attempt["provenance"]["training_hash"]


def test_training_that_was_edited_while_jobs_wait_is_on_record(place: Place) -> None:
    write(place, "good", "wait")  # the larger run, the one that waits, is begun first
    place.launch("--no-wait")
    until(place.started)
    (place.study.parent / "mine.py").write_text("def score(n):\n    return n / 50\n")
    place.go.touch()
    wait_for(place.folder)
    second = outcomes(place)["good"].provenance

    assert second is not None
    assert second.training_hash != second.training_launched


def test_a_command_is_told_to_stop_and_its_last_words_are_no_outcome(place: Place) -> None:
    write(place, "term")
    place.launch("--no-wait")
    until(place.started)
    until(lambda: [run.progress for run in read_status(place.folder).runs] == [0.25])
    (run,) = [run.run_id for run in read_status(place.folder).runs]
    place.run("cancel", place.folder)
    until(lambda: not read_status(place.folder).active)

    assert {} == outcomes(place)
    assert (place.folder / "runs" / run / "own" / "metrics.json").exists()
    place.go.touch()
    assert 0 == place.launch().returncode
    assert 0.1 == outcomes(place)["term"].evaluations[0].value


def test_a_job_that_is_killed_takes_its_command_with_it(place: Place) -> None:
    write(place, "wait")
    place.launch("--no-wait")
    until(place.started)
    (path,) = place.folder.glob("runs/*/attempts/001.json")
    job = psutil.Process(json.loads(path.read_bytes())["pid"])
    (child,) = [process for process in job.children(recursive=True) if "train.py" in process.cmdline()]
    os.kill(job.pid, signal.SIGKILL)

    until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def test_a_python_entry_beside_the_study_may_return_a_mapping(place: Place) -> None:
    (place.study.parent / "mine.py").write_text(
        "import helper\n"
        "def train(settings, seed, run_dir):\n"
        "    (run_dir / 'model').write_text('x')\n"
        "    return {'score': helper.K * settings['n_samples'], 'other': 1}\n"
    )
    (place.study.parent / "helper.py").write_text("K = 2\n")
    place.study.write_text('name = "own"\nentry = "mine:train"\n[metric.score]\n[design]\ndo = "x"\nn_samples = 4\n')
    ended = place.launch()
    (run,) = outcomes(place).values()

    assert 0 == ended.returncode
    assert [("score", 8.0)] == [(e.metric.name, e.value) for e in run.evaluations]


def test_a_registration_of_others_designs_asks_for_their_study(tmp_path: Path) -> None:
    from test_registered import signed_registration

    registration, _ = signed_registration(tmp_path)
    place = Place(tmp_path / "place")
    refused = place.run("launch", registration, "--folder", place.folder)

    assert 2 == refused.returncode
    assert "--presets STUDY.toml" in refused.stderr
