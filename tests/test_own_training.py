"""A user's command: its words, its places, its files, and what it leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forecast.errors import ForecastError
from forecast.records import Design, Metric
from runner.own_metrics import outcome_from, read_outcome
from runner.own_run import user_environment
from runner.own_training import fill, split_command, training_hash
from runner.spec import JobSpec
from runner.study import load_study

COMMAND = "python train.py --g {good_view_fraction} --n {n_samples} --seed {seed} --out {run_dir}"


def test_a_value_stays_one_word_whatever_it_holds() -> None:
    words = split_command("python 'my train.py' --name={name} --seed {seed} --out {run_dir} '{{literal}}'")
    values = {"name": "a b; rm -rf $HOME `x` 'q'", "seed": 3, "run_dir": "/some where/it's", "on": True}
    filled = fill(words, values)

    assert ["python", "my train.py"] == filled[:2]
    assert f"--name={values['name']}" == filled[2]
    assert ["--seed", "3", "--out", "/some where/it's", "{literal}"] == filled[3:]
    assert ["true", "1e-05", "100000"] == fill(["{a}", "{b}", "{c}"], {"a": True, "b": 1e-5, "c": 100000})


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("", "empty"),
        ("python 'train.py {seed} {run_dir}", "close the quote"),
        ("cd x && python train.py {seed} {run_dir}", "without a shell"),
        ("python train.py {seed} > {run_dir}/log", "without a shell"),
        ("python train.py --out {run_dir}", "{seed}"),
        ("python train.py --seed {seed}", "{run_dir}"),
    ],
)
def test_a_command_that_cannot_work_is_refused(command: str, words: str) -> None:
    with pytest.raises(ForecastError) as refused:
        split_command(command)

    assert words in str(refused.value)


def test_a_command_that_takes_the_spec_needs_nothing_else() -> None:
    assert ("bash", "train.sh", "{spec}") == split_command("bash train.sh {spec}")


@pytest.mark.parametrize(
    ("word", "values", "said"),
    [
        ("{n_sample}", {"n_samples": 1}, "did you mean 'n_samples'"),
        ("{g}", {"g": None}, "null"),
        ("{a", {}, "lone '{'"),
    ],
)
def test_a_place_without_a_value_is_refused(word: str, values: dict[str, int | None], said: str) -> None:
    with pytest.raises(ForecastError) as refused:
        fill([word], values)

    assert said in str(refused.value)


def study(folder: Path, more: str = "", command: str = COMMAND) -> Path:
    path = folder / "study.toml"
    grid = "[grid]\ngood_view_fraction = [0, 0.5]\nn_samples = [1e5]\n"
    path.write_text(f'name = "mine"\ncommand = "{command}"\n{more}\n{grid}')
    return path


def test_a_study_with_a_command_gives_specs_that_hold_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)")
    spec = load_study(
        study(tmp_path, "time_limit_min = 2\n[metric.loss]\nhigher_is_better = false\nlower = 0")
    ).job_specs()[1]

    assert spec.own is not None
    assert (split_command(COMMAND), str(tmp_path), 120) == (spec.own.command, spec.own.folder, spec.own.time_limit_s)
    assert (Metric(name="loss", higher_is_better=False, lower=0.0),) == spec.own.metrics
    assert training_hash(tmp_path, spec.own.command or ()) == spec.own.files_hash
    assert {"good_view_fraction": 0.5, "n_samples": 100000} == dict(spec.design.settings)


@pytest.mark.parametrize(
    ("more", "command", "said"),
    [
        ("", COMMAND.replace("n_samples", "n_sample"), "did you mean 'n_samples'"),
        ('entry = "a:b"', COMMAND, "give one"),
        ("[metric.loss]\nlower = 2\nupper = 1", COMMAND, "must lie below"),
        ("[metric.loss]\nchance = 3\nupper = 1", COMMAND, "between lower and upper"),
        ("[metric.loss]\nhigher = 1", COMMAND, "did you mean 'higher_is_better'"),
        ("[design]\nseed = 1", COMMAND, "call that setting otherwise"),
    ],
)
def test_a_study_whose_command_is_wrong_is_refused_at_once(tmp_path: Path, more: str, command: str, said: str) -> None:
    with pytest.raises(ForecastError) as refused:
        load_study(study(tmp_path, more, command)).job_specs()

    assert said in str(refused.value)


def test_a_study_of_our_own_training_declares_no_metric(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text('name = "a"\n[metric.loss]\n[design]\ngood_view_fraction = 0.5\nn_samples = 8000\n')
    with pytest.raises(ForecastError, match="belongs to a command"):
        load_study(path).job_specs()


def test_the_files_of_a_training_are_those_it_names_and_its_modules(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import model")
    (tmp_path / "conf.yaml").write_text("a: 1")
    words = ("python", "train.py", "--config=conf.yaml", "--seed", "{seed}")
    before = training_hash(tmp_path, words)
    hashes = []
    for name in ("train.py", "model/net.py", "conf.yaml", "notes.txt", ".venv/x.py", "out/runs/own.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.startswith("out"):
            (tmp_path / "out" / "folder.json").write_text("{}")
        path.write_text("changed")
        hashes.append(training_hash(tmp_path, words))

    assert 4 == len({before, *hashes})
    assert {hashes[2]} == {*hashes[3:]}
    assert training_hash(tmp_path / "out" / "runs", ("no-such-program",)) != before


def test_the_user_s_environment_is_without_ours(tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot"
    given = {"PYTHONPATH": f"{snapshot}/abc:/mine:{snapshot}/abc", "PYTHONSAFEPATH": "1", "A": "b"}

    assert {"PYTHONPATH": "/mine", "A": "b"} == user_environment(given, snapshot)
    assert {} == user_environment({"PYTHONPATH": f"{snapshot}/abc"}, snapshot)


def test_every_number_is_a_metric_and_what_is_said_beside_it_is_kept() -> None:
    content = {
        "alignment": {"value": 0.25, "hits": [1, 0, 0, 0], "trials": 1, "chance": 0.01, "upper": 1},
        "eval/loss": 2,
        "note": "a word",
        "counters": {"flops": 1e12, "wall_s": 1.5, "flop": 3, "steps": -1},
        "provenance": {"precision": "bf16", "seeds": {"init": 1}, "colour": 2},
        "loss_curve": {"steps": [1, 2], "loss": [3.0, 2.0]},
    }
    found = outcome_from(content, (), "metrics.json")
    alignment, loss = found.evaluations

    assert (0.25, (1, 0, 0, 0), 0.01, 1.0) == (
        alignment.value,
        alignment.hits,
        alignment.metric.chance,
        alignment.metric.upper,
    )
    assert ("eval/loss", False, 2.0) == (loss.metric.name, loss.metric.higher_is_better, loss.value)
    assert (10**12, 1.5, None) == (found.counters.flops, found.counters.wall_s, found.counters.steps)
    assert {"precision": "bf16", "seeds": {"init": 1}} == dict(found.told)
    assert found.loss_curve is not None


def test_a_misspelt_counter_is_named_and_does_not_cost_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    outcome_from({"m": 1, "counters": {"flop": 3}}, (), "metrics.json")

    assert "counters.flop is not known and is left out; did you mean 'flops'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"m": float("nan")}, "m must be a finite number, got nan"),
        ({"m": "0.1"}, "m must be a finite number, got '0.1'"),
        ({"m": True}, "m must be a finite number"),
        ({"m": 2}, "m = 2.0 lies above its bound 1.0"),
        ({"m": {"value": 0.5, "hits": [1]}}, "hits and trials go together"),
        ({"other": 0.5}, "has no 'm', which the study declares; it has other"),
        ([1], "must hold an object"),
    ],
)
def test_a_declared_metric_must_be_there_and_finite_and_within_bounds(content: object, said: str) -> None:
    with pytest.raises(ForecastError) as refused:
        outcome_from(content, (Metric(name="m", lower=0, upper=1),), "metrics.json")

    assert said in str(refused.value)


def test_where_metrics_are_declared_the_others_are_left_out() -> None:
    found = outcome_from({"m": 0.5, "debug": float("nan")}, (Metric(name="m"),), "metrics.json")

    assert ["m"] == [evaluation.metric.name for evaluation in found.evaluations]


SPEC = JobSpec(run_id="r", study="s", design=Design(settings={"n_samples": 10}), seed=7)


def a_run(**changes: object) -> dict[str, object]:
    content = {
        "run_id": "any",
        "design": {"settings": {"n_samples": 10}},
        "seed": 7,
        "status": "finished",
        "evaluations": [{"metric": {"name": "m"}, "value": 0.5}],
    }
    return content | changes


def test_a_whole_run_json_is_taken(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(a_run(counters={"steps": 4})))
    found = read_outcome(tmp_path, SPEC)

    assert (0.5, 4) == (found.evaluations[0].value, found.counters.steps)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "wrote no metrics.json"),
        ({"metrics.json": {"m": 1}, "run.json": {}}, "wrote both"),
        ({"metrics.json": '{"m": 1'}, "is not JSON"),
        ({"metrics.json": '{"m": 1, "m": 2}'}, "'m' stands twice"),
        ({"metrics.json": {"note": "x"}}, "holds no number"),
        ({"run.json": a_run(design={"settings": {"n_samples": 11}})}, "of another design"),
        ({"run.json": a_run(seed=8)}, "of seed 8, the job was told 7"),
        ({"run.json": a_run(status="failed", evaluations=[], failure="it broke")}, "it broke"),
        ({"run.json": {"a": 1}}, "is not a run"),
    ],
)
def test_what_a_command_left_is_refused_with_the_file_and_the_rule(
    tmp_path: Path, files: dict[str, object], said: str
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(ForecastError) as refused:
        read_outcome(tmp_path, SPEC)

    assert said in str(refused.value)
