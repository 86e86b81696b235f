"""Ledgers: read whole or refused, grown whole or not at all."""

import json
import multiprocessing

import pytest
from worlds_of_runs import run

from forecast.errors import BadRows, ForecastError
from forecast.ledger import Conflict, append_runs, ledger_hash, read_ledger
from forecast.records import Design, Evaluation, Metric, Provenance, Run


def failed(name):
    return Run(run_id=name, design=Design(settings={"n_samples": 5}), status="failed", failure="out of memory")


def test_what_is_appended_is_read_back(tmp_path):
    runs = [run("a", 100, 0.5, 0.1), run("b", 100, None, 0.2), failed("c")]

    assert append_runs(tmp_path / "new" / "runs.jsonl", runs) == 3
    assert read_ledger(tmp_path / "new" / "runs.jsonl") == runs


def test_null_settings_survive(tmp_path):
    append_runs(tmp_path / "runs.jsonl", [run("a", 100, None, 0.1)])

    assert json.loads((tmp_path / "runs.jsonl").read_text())["design"]["settings"] == {
        "n_samples": 100,
        "good_view_fraction": None,
    }


def test_a_second_append_adds_only_what_is_new_and_leaves_the_bytes_otherwise(tmp_path):
    path = tmp_path / "runs.jsonl"
    append_runs(path, [run("a", 100, 0.5, 0.1)])
    before = path.stat().st_ino, ledger_hash(path)

    assert append_runs(path, [run("a", 100, 0.5, 0.1)]) == 0
    assert (path.stat().st_ino, ledger_hash(path)) == before
    assert append_runs(path, [run("a", 100, 0.5, 0.1), run("b", 100, 0.5, 0.1)]) == 1
    assert [one.run_id for one in read_ledger(path)] == ["a", "b"]


def test_nothing_but_the_ledger_is_left_in_the_folder(tmp_path):
    append_runs(tmp_path / "runs.jsonl", [run("a", 100, 0.5, 0.1)])

    assert [path.name for path in tmp_path.iterdir()] == ["runs.jsonl"]


def test_the_file_that_a_run_came_from_does_not_make_it_another_run(tmp_path):
    path, one = tmp_path / "runs.jsonl", run("a", 100, 0.5, 0.1)
    append_runs(path, [one.model_copy(update={"provenance": Provenance(source="march.csv")})])

    assert append_runs(path, [one.model_copy(update={"provenance": Provenance(source="april.csv")})]) == 0
    with pytest.raises(Conflict, match="provenance differs"):
        append_runs(path, [one.model_copy(update={"provenance": Provenance(hardware="another")})])


def test_one_id_for_two_runs_is_refused_and_nothing_is_added(tmp_path):
    path = tmp_path / "runs.jsonl"
    append_runs(path, [run("a", 100, 0.5, 0.1)])
    before = path.read_bytes()
    with pytest.raises(Conflict, match=r"'a' stands for another run already: mutual_knn is 0\.1 there and 0\.3 here"):
        append_runs(path, [run("b", 100, 0.5, 0.2), run("a", 100, 0.5, 0.3)])

    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["runs.jsonl"]


def test_a_conflict_inside_one_append_is_refused(tmp_path):
    with pytest.raises(Conflict, match="n_samples is 100 there and 200 here"):
        append_runs(tmp_path / "runs.jsonl", [run("a", 100, 0.5, 0.1), run("a", 200, 0.5, 0.1)])

    assert not (tmp_path / "runs.jsonl").exists()


def test_corrupt_lines_are_named_with_number_field_rule_and_fix(tmp_path):
    path = tmp_path / "runs.jsonl"
    append_runs(path, [run("a", 100, 0.5, 0.1), run("b", 100, 0.5, 0.2)])
    good = path.read_text().splitlines()
    share = good[1].replace("0.5", "1.5")
    path.write_text("\n".join([good[0], good[1][:40], share, '{"value": NaN}', good[1]]) + "\n")
    with pytest.raises(BadRows) as caught:
        read_ledger(path)

    assert len(caught.value.problems) == 3
    assert "line 2: not one JSON object" in caught.value.problems[0]
    assert "delete the line" in caught.value.problems[0]
    assert "line 3, field design: " in caught.value.problems[1]
    assert "good_view_fraction must lie in [0, 1] or be null, got 1.5" in caught.value.problems[1]
    assert "line 4" in caught.value.problems[2]


def test_equal_lines_are_one_run_and_different_ones_are_refused(tmp_path):
    path = tmp_path / "runs.jsonl"
    append_runs(path, [run("a", 100, 0.5, 0.1)])
    line = path.read_text()
    path.write_text(line + json.dumps(json.loads(line), indent=None, sort_keys=True) + "\n")

    assert len(read_ledger(path)) == 1
    path.write_text(line + line.replace("0.1}", "0.2}"))
    with pytest.raises(BadRows, match="line 2: run_id 'a' stands in line 1 for another run"):
        read_ledger(path)


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_an_empty_ledger_is_refused(tmp_path, text):
    (tmp_path / "runs.jsonl").write_text(text)
    with pytest.raises(ForecastError, match="holds no run"):
        read_ledger(tmp_path / "runs.jsonl")


def test_a_missing_ledger_is_refused(tmp_path):
    with pytest.raises(ForecastError, match="cannot be read"):
        read_ledger(tmp_path / "runs.jsonl")


def test_a_corrupt_ledger_is_not_appended_to(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text('{"run_id": "a", "des')
    with pytest.raises(BadRows, match="line 1"):
        append_runs(path, [run("b", 100, 0.5, 0.1)])

    assert path.read_text() == '{"run_id": "a", "des'


def test_a_last_line_without_line_feed_is_kept_whole(tmp_path):
    path = tmp_path / "runs.jsonl"
    append_runs(path, [run("a", 100, 0.5, 0.1)])
    path.write_bytes(path.read_bytes().rstrip())
    append_runs(path, [run("b", 100, 0.5, 0.1)])

    assert [one.run_id for one in read_ledger(path)] == ["a", "b"]


def test_an_exception_inside_an_append_leaves_nothing(tmp_path):
    def stop():
        yield run("a", 100, 0.5, 0.1)
        raise RuntimeError("stopped half way")

    with pytest.raises(RuntimeError):
        append_runs(tmp_path / "runs.jsonl", stop())

    assert list(tmp_path.iterdir()) == []


def _append_one(path, name):
    append_runs(path, [run(name, 100, 0.5, 0.1)])


def test_appends_at_the_same_time_lose_nothing(tmp_path):
    path = tmp_path / "runs.jsonl"
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_append_one, args=(path, f"r{i}")) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert sorted(one.run_id for one in read_ledger(path)) == [f"r{i}" for i in range(8)]
    assert [p.name for p in tmp_path.iterdir()] == ["runs.jsonl"]


def test_hits_survive(tmp_path):
    metric = Metric(name="m", lower=0, upper=1)
    one = Run(
        run_id="a",
        design=Design(settings={"n_samples": 1}),
        status="finished",
        evaluations=(Evaluation(metric=metric, value=0.5, hits=(1, 0), trials=1),),
    )
    append_runs(tmp_path / "runs.jsonl", [one])

    assert read_ledger(tmp_path / "runs.jsonl") == [one]
