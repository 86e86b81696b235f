"""Launching on this machine: every run once, whatever is killed, whatever lies in the working folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from launching import Place, end_all, until

from forecast.errors import ForecastError
from forecast.records import Run
from runner.launch import Placing, deal, plan
from runner.presets import ExecutorChoice, Preset
from runner.spec import JobSpec
from runner.status import read_status
from runner.waiting import wait_for


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A folder with the toy in it; what it started is ended."""
    place = Place(tmp_path)
    yield place
    end_all(place)


def outcomes(place: Place) -> dict[str, Run]:
    paths = sorted((place.folder / "runs").glob("*/run.json"))
    return {path.parent.name: Run.model_validate_json(path.read_bytes()) for path in paths}


def specs(*sizes: int) -> list[JobSpec]:
    return [
        JobSpec.model_validate(
            {"run_id": f"r{k}", "study": "s", "design": {"settings": {"n_samples": n, "k": k}}, "seed": 0}
        )
        for k, n in enumerate(sizes)
    ]


def test_a_study_runs_every_design_and_seed_once(place: Place) -> None:
    place.write("[grid]\nn_samples = [10, 30, 20]\n[seeds]\ndefault = [0, 1]\n")
    first = place.launch("--jobs", "2", "--json")
    found = outcomes(place)
    again = place.launch("--json")

    assert (
        first.returncode,
        json.loads(first.stdout),
    ) == (0, {"finished": 6, "running": 0, "requeued": 0, "pending": 0, "failed": 0, "lost": 0})
    assert sorted(place.started()) == ["10/None/0", "10/None/1", "20/None/0", "20/None/1", "30/None/0", "30/None/1"]
    assert {0.01, 0.02, 0.03, 1.01, 1.02, 1.03} == {run.evaluations[0].value for run in found.values()}
    assert (0, found) == (again.returncode, outcomes(place))
    assert "6 finished before" in again.stderr


def test_an_outcome_says_where_it_comes_from(place: Place) -> None:
    place.write("[grid]\nn_samples = [10]\n")
    place.launch()
    (run,) = outcomes(place).values()
    (snapshot,) = (place.folder / "snapshot").iterdir()

    assert run.provenance is not None
    assert run.counters is not None
    assert snapshot.name.startswith(str(run.provenance.code_hash)[:16])
    assert (run.provenance.attempt, run.provenance.threads, run.provenance.data_hash) == (1, 1, "ab" * 32)
    assert run.provenance.submitted <= run.provenance.started <= run.provenance.ended  # type: ignore[operator]
    assert run.counters.peak_memory_bytes > 1e6  # type: ignore[operator]
    assert run.counters.wall_s > 0  # type: ignore[operator]


@pytest.mark.parametrize(
    ("do", "reason"),
    [
        ("raise", "ValueError: the toy was told to fail"),
        ("exit", "SystemExit: 3"),
        ("nan", "Evaluation: value Input should be a finite number"),
    ],
)
def test_a_failed_run_has_a_reason_and_no_number(place: Place, do: str, reason: str) -> None:
    place.write(f"[[designs]]\nn_samples = 20\ndo = '{do}'\n[[designs]]\nn_samples = 10\n")
    ended = place.launch()
    runs = sorted(outcomes(place).values(), key=lambda run: run.status)

    assert ended.returncode == 1
    assert [run.status for run in runs] == ["failed", "finished"]
    assert (reason, ()) == (runs[0].failure, runs[0].evaluations)
    assert "1 run(s) failed" in ended.stderr


def test_a_failed_run_is_not_repeated_by_itself(place: Place) -> None:
    place.write("[[designs]]\nn_samples = 20\ndo = 'raise'\n")
    place.launch()
    again = place.launch()

    assert len(place.started()) == 1
    assert "1 failed before (not repeated)" in again.stderr


def test_a_user_s_own_files_neither_break_nor_replace_ours(place: Place) -> None:
    place.work = place.root / 'it\'s a "work" folder'
    for name in ("runner.py", "forecast.py", "prereg.py", "submitit.py", "data/__init__.py", "numpy.py"):
        (place.work / name).parent.mkdir(parents=True, exist_ok=True)
        (place.work / name).write_text("raise RuntimeError('a file of the user')\n")
    place.write("[grid]\nn_samples = [10]\n")

    assert (place.launch().returncode, len(outcomes(place))) == (0, 1)


def test_editing_the_code_while_jobs_wait_changes_nothing(place: Place) -> None:
    place.write("[[designs]]\nn_samples = 20\ndo = 'wait'\n[[designs]]\nn_samples = 10\n")
    tree = copied_tree(place.root / "tree")
    code = (
        "import sys; from pathlib import Path;"
        "from runner.launch import Placing, launch; from runner.study import load_study;"
        "s = load_study(Path(sys.argv[1]));"
        "launch(s.job_specs(), Path(sys.argv[2]), Placing(s.executor, s.executor.resolve({})))"
    )
    environment = place.environment | {"PYTHONPATH": f"{tree}:{place.root / 'lib'}", "PYTHONSAFEPATH": "1"}
    words = [os.sys.executable, "-c", code, str(place.study), str(place.folder)]  # type: ignore[attr-defined]
    subprocess.run(words, env=environment, check=True, timeout=60)
    for path in (tree / "runner").glob("*.py"):
        path.write_text("raise RuntimeError('edited while the jobs waited')\n")
    place.go.touch()
    wait_for(place.folder)

    assert [run.status for run in outcomes(place).values()] == ["finished", "finished"]


def copied_tree(target: Path) -> Path:
    """Our own packages, copied."""
    import shutil

    from runner.snapshot import own_root

    for name in ("forecast", "prereg", "runner"):
        shutil.copytree(own_root() / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(own_root() / "pyproject.toml", target)
    return target


def test_a_killed_job_leaves_a_lost_run_that_the_next_launch_does(place: Place) -> None:
    place.write("[[designs]]\nn_samples = 20\ndo = 'wait'\n[[designs]]\nn_samples = 10\n")
    place.launch("--no-wait")
    until(place.started)
    (running,) = [run for run in read_status(place.folder).runs if run.state == "running"]
    attempt = json.loads((place.folder / "runs" / running.run_id / "attempts/001.json").read_text())
    until((place.folder / "runs" / running.run_id / "progress.json").exists)
    shares = [run.progress for run in read_status(place.folder).runs if run.state == "running"]
    os.kill(attempt["pid"], signal.SIGKILL)
    wait_for(place.folder)
    lost = read_status(place.folder)
    place.go.touch()
    ended = place.launch()

    assert shares == [0.25]
    assert lost.counts() == {"finished": 0, "running": 0, "requeued": 0, "pending": 1, "failed": 0, "lost": 1}
    assert (ended.returncode, len(outcomes(place))) == (0, 2)
    attempts = [json.loads(p.read_text()) for p in sorted((place.folder / "runs" / running.run_id).glob("attempts/*"))]
    assert [attempt["status"] for attempt in attempts] == ["lost", "finished"]


def test_a_run_that_kills_its_job_is_taken_up_by_the_other_job_a_limited_number_of_times(place: Place) -> None:
    place.write("[[designs]]\nn_samples = 20\ndo = 'die'\n[[designs]]\nn_samples = 10\n")
    ended = place.launch("--jobs", "2")

    assert ended.returncode == 1
    assert "1 were lost" in ended.stderr
    assert len(outcomes(place)) == 1
    assert place.started().count("20/die/0") <= 2


def test_the_launcher_s_death_stops_no_job_and_a_second_launch_doubles_none(place: Place) -> None:
    place.write("[[designs]]\nn_samples = 20\ndo = 'wait'\n[[designs]]\nn_samples = 10\n")
    command = place.command("launch", place.study, "--folder", place.folder)
    launcher = subprocess.Popen(command, env=place.environment, cwd=place.work, stderr=subprocess.DEVNULL)
    until(place.started)
    launcher.kill()
    launcher.wait()
    second = place.launch("--no-wait")
    place.go.touch()
    status = wait_for(place.folder)

    assert "2 with living jobs" in second.stderr
    assert status.counts()["finished"] == 2
    assert sorted(place.started()) == ["10/None/0", "20/wait/0"]


def test_ctrl_c_leaves_the_jobs_running_and_says_how_to_come_back(place: Place) -> None:
    place.write("[[designs]]\nn_samples = 20\ndo = 'wait'\n")
    command = place.command("launch", place.study, "--folder", place.folder)
    launcher = subprocess.Popen(
        command,
        env=place.environment,
        cwd=place.work,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # where the suite itself runs in the background, SIGINT is ignored and children inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    until(place.started)
    os.killpg(launcher.pid, signal.SIGINT)
    _, said = launcher.communicate(timeout=20)
    still = read_status(place.folder).counts()
    place.go.touch()

    assert launcher.returncode == 130
    assert f"platocast status {place.folder}" in said.replace("\n", "")
    assert still["running"] == 1
    assert wait_for(place.folder).counts()["finished"] == 1


def test_no_more_local_jobs_than_asked_for_work_at_a_time(place: Place) -> None:
    place.write("[grid]\nn_samples = [10, 20, 30]\n[design]\ndo = 'wait'\n")
    place.launch("--no-wait", "--jobs", "1", "--limit", "1")
    place.launch("--no-wait", "--jobs", "1")
    until(lambda: sum(job.state == "waiting" and job.alive is True for job in read_status(place.folder).jobs) == 1)
    until(place.started)
    counts = read_status(place.folder).counts()
    place.go.touch()

    assert (counts["running"], counts["pending"]) == (1, 2)
    assert wait_for(place.folder).counts()["finished"] == 3


def test_a_dry_run_writes_nothing(place: Place) -> None:
    place.write("[grid]\nn_samples = [10, 20]\n")
    shown = place.launch("--dry-run", "--json")

    assert [{name: row[name] for name in ("job", "runs", "size")} for row in json.loads(shown.stdout)] == [
        {"job": 0, "runs": 2, "size": 30.0}
    ]
    assert not place.folder.exists()


def test_another_study_in_the_same_folder_is_refused(place: Place) -> None:
    place.write("[grid]\nn_samples = [10]\n")
    place.launch()
    place.study.write_text(place.study.read_text().replace('"toy"', '"other"'))
    refused = place.launch()

    assert refused.returncode == 2
    assert "holds the runs of toy, not of other" in refused.stderr


def test_a_missing_entry_fails_the_run_and_says_so(place: Place) -> None:
    place.write("[grid]\nn_samples = [10]\n")
    place.study.write_text(place.study.read_text().replace("toy:run", "toy:crawl"))
    place.launch()
    (run,) = outcomes(place).values()

    assert "toy:crawl cannot be loaded" in str(run.failure)


def test_local_jobs_share_one_list_longest_first() -> None:
    lists = deal(specs(1, 3, 2), Placing(ExecutorChoice(jobs=2), Preset(kind="local")), {"r1": 1})

    assert [[spec.run_id for spec in job] for job in lists] == [["r2", "r0", "r1"]] * 2


def test_slurm_jobs_take_equally_long() -> None:
    lists = deal(specs(5, 1, 4, 2), Placing(ExecutorChoice(runs_per_job=2), Preset()), {})

    assert [sum(spec.size for spec in job) for job in lists] == [6, 6]


def test_a_run_that_is_listed_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ForecastError, match="r0 is listed twice"):
        plan(specs(1) * 2, tmp_path, Placing(ExecutorChoice(), Preset(kind="local")))


def test_a_corrupt_outcome_is_refused(place: Place) -> None:
    place.write("[grid]\nn_samples = [10]\n")
    place.launch()
    (path,) = place.folder.glob("runs/*/run.json")
    path.write_text("{")
    refused = place.launch()

    assert refused.returncode == 2
    assert "is not a run" in refused.stderr
