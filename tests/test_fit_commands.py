"""The commands fit, predict, ratio and plan: what they print, write and refuse."""

import json

import pytest
from worlds_of_runs import simulated_runs

from forecast.ledger import append_runs
from runner.cli import main


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "runs.jsonl"
    append_runs(path, simulated_runs())
    return path


@pytest.fixture(scope="module")
def fit_file(ledger):
    path = ledger.parent / "fit.json"
    assert 0 == call("fit", ledger, "--metric", "mutual_knn", "--law", "hill", "--out", path)
    return path


def call(*words) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return stopped.value.code


def test_fit_prints_parameters_noise_candidates_and_reasons(ledger, capsys):
    code = call("fit", ledger, "--metric", "mutual_knn", "--law", "hill")
    shown = capsys.readouterr().out

    assert 0 == code
    for word in ("kappa", "seed noise sd", "degrees of freedom", "nearest-design", "preferred to no-g", "lack of fit"):
        assert word in shown


def test_fit_as_json_is_the_fit(ledger, capsys):
    code = call("fit", ledger, "--metric", "mutual_knn", "--law", "hill", "--json", "--seed", 3)
    fitted = json.loads(capsys.readouterr().out)

    assert 0 == code
    assert ("hill", 3) == (fitted["law"], fitted["seed"])
    assert {"A", "n50", "b", "kappa"} == {row["name"] for row in fitted["parameters"]}


def test_predict_crosses_n_with_g(fit_file, capsys):
    capsys.readouterr()
    code = call("predict", fit_file, "--g", 0, "--g", 1, "--n", 64000, "--n", 1e6, "--json")
    rows = json.loads(capsys.readouterr().out)

    assert 0 == code
    assert [(64000, 0), (64000, 1), (1e6, 0), (1e6, 1)] == [(row["n"], row["g"]) for row in rows]
    assert all(row["lower"] < row["point"] < row["upper"] for row in rows)
    assert all("nearest-design" in row["baselines"] for row in rows)


def test_predict_reads_targets_and_writes_predictions(fit_file, tmp_path, capsys):
    target = {"target": "far", "design": {"settings": {"n_samples": 64000, "good_view_fraction": 0.5}}, "replicates": 2}
    (tmp_path / "targets.json").write_text(json.dumps([target]))
    code = call("predict", fit_file, "--targets", tmp_path / "targets.json", "--out", tmp_path / "out.json")
    written = json.loads((tmp_path / "out.json").read_text())

    assert 0 == code
    assert "far" in capsys.readouterr().out
    assert [("far", 2)] == [(row["target"], row["replicates"]) for row in written]


def test_plan_in_runs_needs_no_ledger(fit_file, capsys):
    capsys.readouterr()
    code = call("plan", fit_file, "--budget", "6runs", "--json")
    rows = json.loads(capsys.readouterr().out)

    assert 0 == code
    assert 6 == sum(row["runs"] for row in rows)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fit", "LEDGER", "--metric", "mutual_knn", "--law", "hil"), "no law"),
        (("fit", "LEDGER", "--metric", "r1"), "no run has the metric"),
        (("fit", "LEDGER", "--metric", "mutual_knn", "--law", "A*n.real"), "forbidden"),
        (("fit", "LEDGER", "--metric", "mutual_knn", "--column", "n"), "NAME=VALUE"),
        (("fit", "LEDGER", "--metric", "mutual_knn", "--law", "hill", "--fix", "A=x"), "NAME=NUMBER"),
        (("predict", "FIT"), "nothing to predict"),
        (("predict", "FIT", "--g", "0.5"), "needs --n"),
        (("predict", "FIT", "--n", "1000", "--g", "1.5"), "good_view_fraction"),
        (("predict", "FIT", "--at", "n_samples=many"), "NAME=NUMBER"),
        (("predict", "LEDGER", "--n", "5"), "no fit"),
        (("plan", "FIT", "--budget", "lots"), "number with its unit"),
        (("plan", "FIT", "--budget", "5gpuh"), "needs --runs"),
        (("ratio", "LEDGER", "--metric", "mutual_knn", "--target", "0.1", "--a", "x", "--b", "y"), "no setting has"),
    ],
)
def test_bad_input_is_refused_with_exit_code_2(words, said, ledger, fit_file, capsys):
    code = call(*({"LEDGER": ledger, "FIT": fit_file}.get(word, word) for word in words))

    assert 2 == code
    assert said in capsys.readouterr().err
