"""Import of CSV and TSV: what is guessed, what is refused with row, column, rule and fix, all or nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast.errors import BadRows, ForecastError
from forecast.importing.columns import Choices
from forecast.importing.importer import columns_of, import_file, open_questions, runs_from
from forecast.importing.opening import open_table
from forecast.ledger import read_ledger
from forecast.reading import read_runs
from forecast.records import Run

HEADER = "run_id,g,samples,seed,eval/knn\n"
GOOD = HEADER + "a,0,8000,0,0.013\nb,0.5,16000,1,0.02\n"


@pytest.fixture
def place(tmp_path):
    return tmp_path / "table.csv", tmp_path / "runs.jsonl"


def write(path, text):
    path.write_text(text)
    return path


def problems(path, text, **choices):
    with pytest.raises(BadRows) as caught:
        import_file(write(path, text), path.with_name("runs.jsonl"), Choices(**choices))
    assert not path.with_name("runs.jsonl").exists()
    return caught.value.problems


def test_rows_become_runs_with_the_words_of_the_project(place):
    table, ledger = place
    result = import_file(write(table, GOOD), ledger)
    runs = read_ledger(ledger)
    first, second = ({"good_view_fraction": g, "n_samples": n} for g, n in ((0, 8000), (0.5, 16000)))

    assert (result.added, result.known, result.left_out) == (2, 0, 0)
    assert [(run.run_id, dict(run.design.settings), run.seed) for run in runs] == [("a", first, 0), ("b", second, 1)]
    assert [run.evaluations[0].value for run in runs] == [0.013, 0.02]
    assert runs[0].provenance.source == "table.csv"


def test_a_second_import_of_a_grown_table_adds_what_is_new(place):
    table, ledger = place
    import_file(write(table, GOOD), ledger)
    before = ledger.read_bytes()

    assert import_file(table, ledger).added == 0
    assert ledger.read_bytes() == before
    grown = import_file(write(table.with_name("later.csv"), GOOD + "c,1,16000,1,0.03\n"), ledger)
    assert (grown.added, grown.known) == (1, 2)
    assert ledger.read_bytes().startswith(before)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("c,1.5,100,0,0.1", "row 3, column g: '1.5' must lie in [0, 1]; if the column holds percent, say --unit"),
        ("c,-0.5,100,0,0.1", "row 3, column g: '-0.5' must lie in [0, 1]; correct the cell"),
        ("c,0.5,0,0,0.1", "row 3, column samples: '0' must be > 0; correct the cell"),
        ("c,0.5,-8,0,0.1", "row 3, column samples: '-8' must be > 0; if it is a logarithm, say --unit n_samples=log10"),
        ("c,0.5,,0,0.1", "row 3, column samples: '' must be a number > 0; fill the cell or delete the row"),
        ("c,0.5,21.6M,0,0.1", "row 3, column samples: '21.6M' must be a number; write it out, e.g. 21600000"),
        ("c,0.5,nan,0,0.1", "row 3, column samples: 'nan' must be finite"),
        ("c,nan,100,0,0.1", "row 3, column g: 'nan' must be finite"),
        ("c,0.5,100,0,nan", "row 3, column eval/knn: 'nan' must be finite; correct it; a run without"),
        ("c,0.5,100,0,inf", "row 3, column eval/knn: 'inf' must be finite"),
        ("c,0.5,100,0,", "row 3, column eval/knn: empty (NaN) must be a finite number; fill it, delete the row"),
        ('c,0.5,100,0,"0,1"', "row 3, column eval/knn: '0,1' must be a number; write a decimal point"),
        ("c,0.5,100,0,4.4%", "row 3, column eval/knn: '4.4%' must be a number; leave the % away and say --unit"),
        ("c,0.5,100,1.5,0.1", "row 3, column seed: '1.5' must be an integer; correct the cell"),
        (",0.5,100,1,0.1", "row 3, column run_id: '' must have 1 to 200 characters; fill the cell"),
        ("c,0.5,100", "row 3: it has 3 cells, the header 5; correct the row"),
        (
            "a,0,8000,0,0.5",
            "row 3, column run_id: 'a' stands in row 2 for another run (eval/knn is 0.013 there",
        ),
    ],
)
def test_a_bad_row_is_refused_with_row_column_rule_and_fix(place, row, expected):
    found = problems(place[0], HEADER + "a,0,8000,0,0.013\n" + row + "\n")

    assert len(found) == 1
    assert expected in found[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        (HEADER, "has a header and no row"),
        ('{"run_id": 1}', "is JSON, not CSV; name it .jsonl"),
        ("<html>", "is HTML or XML, not CSV"),
        ("g,samples\n0,1\n", "no column looks like an outcome; name it with --metric COLUMN; it has g, samples"),
        ("seed,eval/knn\n0,0.1\n", "missing column: nothing says what each run was"),
        ("g,g,eval/knn\n0,1,2\n", "column(s) 'g' stand twice"),
        ("0.5,100,0.1\n0.5,100,0.2\n", "the header holds numbers only"),
        ('g,g_2,eval/knn\n0,0,"0.1\n', "row 2"),
    ],
)
def test_a_table_that_is_none_is_refused(place, text, expected):
    with pytest.raises(ForecastError) as caught:
        import_file(write(place[0], text), place[1])

    assert expected in str(caught.value)
    assert not place[1].exists()


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"PAR1....", "Parquet"),
        (b"SQLite format 3\x00...", "SQLite"),
        (b"\x1f\x8b...", "gzip"),
        (b"PK\x03\x04...", "zip"),
        (b"a,b\n\x00\x00", "binary"),
        (b"g,samples,eval/knn\n0,1,0.1\xff\n", "not UTF-8"),
    ],
)
def test_a_file_of_another_kind_is_refused_by_its_bytes(place, head, kind):
    place[0].write_bytes(head)
    with pytest.raises(ForecastError, match=kind):
        import_file(*place)


def test_a_suffix_that_nobody_reads_is_refused(tmp_path):
    with pytest.raises(ForecastError, match=r"no reader for \.docx; there are readers for \.csv"):
        open_table(write(tmp_path / "a.docx", "x"))
    with pytest.raises(ForecastError, match="does not exist"):
        open_table(tmp_path / "missing.csv")


def test_a_missing_column_that_was_asked_for_is_refused_with_its_neighbour(place):
    with pytest.raises(ForecastError, match=r"no column 'sampels' \(--map n_samples=sampels\); did you mean 'samples'"):
        import_file(write(place[0], GOOD), place[1], Choices(mapping={"n_samples": "sampels"}))
    with pytest.raises(ForecastError, match=r"no column 'knn' \(--metric knn\)"):
        import_file(place[0], place[1], Choices(metrics=["knn"]))


def test_nothing_is_imported_if_one_row_is_bad_and_bad_rows_are_listed_if_they_may_be_skipped(place):
    table, ledger = place
    write(table, GOOD + "c,7,100,0,0.1\nd,1,100,0,0.2\n")
    with pytest.raises(BadRows):
        import_file(table, ledger)
    assert not ledger.exists()
    result = import_file(table, ledger, skip_bad=True)

    assert (result.added, result.left_out) == (3, 1)
    assert "row 4, column g: '7'" in result.left[0]
    assert [run.run_id for run in read_ledger(ledger)] == ["a", "b", "d"]


def test_a_run_that_the_ledger_has_with_another_outcome_is_a_conflict(place):
    table, ledger = place
    import_file(write(table, GOOD), ledger)
    before = ledger.read_bytes()
    write(table, GOOD.replace("0.013", "0.014") + "c,1,100,0,0.1\n")
    with pytest.raises(
        BadRows, match=r"row 2, column run_id: 'a' stands in .*runs.jsonl for another run \(eval/knn is 0.01"
    ):
        import_file(table, ledger)

    assert ledger.read_bytes() == before
    assert ((r := import_file(table, ledger, skip_bad=True)).added, r.known, r.left_out) == (1, 1, 1)


def test_only_bad_rows_are_no_import_even_if_they_may_be_skipped(place):
    with pytest.raises(ForecastError, match="none of its 1 row"):
        import_file(write(place[0], HEADER + "a,7,1,1,0.1\n"), place[1], skip_bad=True)

    assert not place[1].exists()


def test_runs_without_id_get_one_from_design_and_seed(place):
    table = place[0]
    text = "g,samples,seed,eval/knn\n0,100,0,0.1\n0,100,1,0.1\n"
    first = runs_from(write(table, text))
    swapped = runs_from(write(table, "eval/knn,seed,samples,g\n0.1,0,100.0,0.0\n"))

    assert len({run.run_id for run in first}) == 2
    assert first[0].run_id == swapped[0].run_id
    assert "made from design and seed" in problems(table, text + "0,100,1,0.2\n")[0]


def test_runs_with_neither_id_nor_seed_are_told_apart_by_their_outcome(place):
    runs = runs_from(write(place[0], "g,samples,eval/knn\n0,100,0.1\n0,100,0.2\n"))

    assert len({run.run_id for run in runs}) == 2
    assert len({run.design.hash for run in runs}) == 1


def test_a_metric_that_a_row_lacks_is_not_evaluated_but_another_is(place):
    runs = runs_from(write(place[0], "g,samples,eval/knn,eval/r1\n0,100,,0.2\n1,100,0.1,0.2\n"))

    assert [[e.metric.name for e in run.evaluations] for run in runs] == [["eval/r1"], ["eval/knn", "eval/r1"]]


def test_failed_runs_carry_no_number(place):
    (run,) = runs_from(write(place[0], "ID,State,g,samples,eval/knn\nx,crashed,0,100,0.4\n"))

    assert (run.status, run.evaluations, run.failure) == ("failed", (), "crashed, as the imported table says")


def test_units_are_converted_when_they_are_said(place):
    units = {"good_view_fraction": "percent", "n_samples": "log10", "eval/knn": "percent"}
    (run,) = runs_from(write(place[0], "g,samples,eval/knn\n50,4,4.4\n"), Choices(units=units))

    assert dict(run.design.settings) == {"good_view_fraction": 0.5, "n_samples": 10_000}
    assert run.evaluations[0].value == pytest.approx(0.044)


def test_counts_that_may_be_logarithms_are_asked_and_never_guessed(place):
    text = "g,samples,eval/knn\n0,4.5,0.1\n1,5,0.2\n"
    with pytest.raises(
        ForecastError, match=r"column samples runs from 4\.5 to 5: powers of ten.* --unit n_samples=log10"
    ):
        import_file(write(place[0], text), place[1])

    assert not place[1].exists()
    logarithms = runs_from(place[0], Choices(units={"n_samples": "log10"}))
    plain = runs_from(place[0], Choices(units={"n_samples": "plain"}))
    assert [run.design.settings["n_samples"] for run in logarithms] == [31623, 100000]
    assert [run.design.settings["n_samples"] for run in plain] == [4.5, 5]


@pytest.mark.parametrize(
    ("g", "bounds", "units"),
    [("50", {}, ["percent"]), ("0.5", {}, []), ("-3", {}, []), ("0.5", {"eval/knn": (0.0, 1.0)}, ["percent"])],
)
def test_percent_is_suggested_where_the_numbers_look_like_it(place, g, bounds, units):
    choices = Choices(bounds=bounds)
    table = open_table(write(place[0], f"g,samples,eval/knn\n{g},8000,4.4\n"))

    assert [question.unit for question in open_questions(table, columns_of(table, choices), choices)] == units


def test_bounds_and_chance_travel_with_the_metric(place):
    choices = Choices(bounds={"eval/knn": (0, 1)}, chance={"eval/knn": 0.01}, lower_is_better={"eval/knn"})
    metric = runs_from(write(place[0], GOOD), choices)[0].evaluations[0].metric

    assert (metric.lower, metric.upper, metric.chance, metric.higher_is_better) == (0, 1, 0.01, False)
    assert "must lie in [0, 1]" in problems(place[0], GOOD.replace("0.02", "2"), bounds={"eval/knn": (0, 1)})[0]


@pytest.mark.parametrize(
    ("header", "row", "roles"),
    [
        ("good_view_fraction,n_samples,tokens,val/acc", "1,2,3,0.4", "setting setting setting metric"),
        ("Name,State,config.seed,optimizer/lr,train_loss", "a,finished,1,0.1,2", "ignored status seed setting metric"),
        ("samples_seen,loss_weight,loss,wall_s", "8,0.1,0.2,7", "setting setting metric counter"),
        ("n,loss,top1", "5,infonce,0.5", "setting setting metric"),
        (",n,knn", "0,5,0.5", "ignored setting metric"),
    ],
)  # fmt: skip
def test_columns_are_guessed_by_name(place, header, row, roles):
    result = import_file(write(place[0], f"{header}\n{row}\n"), place[1])

    assert roles.split() == [column.role for column in result.columns]


def test_a_loss_is_better_when_lower(place):
    (run,) = runs_from(write(place[0], "n,val/loss,val/acc\n5,1.5,0.5\n"))

    assert [e.metric.higher_is_better for e in run.evaluations] == [False, True]


def test_tabs_semicolons_quotes_and_a_byte_order_mark_are_read(tmp_path):
    texts = {"a.tsv": GOOD.replace(",", "\t"), "b.csv": GOOD.replace(",", ";"), "c.csv": "\ufeff" + GOOD}
    texts["d.csv"] = GOOD.replace("a,0", '"a","0"').replace("\n", "\r\n")
    expected = [run.evaluations for run in runs_from(write(tmp_path / "e.csv", GOOD))]

    for name, text in texts.items():
        assert expected == [run.evaluations for run in runs_from(write(tmp_path / name, text))]


def test_settings_keep_their_type(place):
    (run,) = runs_from(write(place[0], "n,loss,ema,lr,depth,note_x,val/a\n5,lejepa,True,1e-3,4.0,,1\n"))
    kinds = {"n_samples": 5, "loss": "lejepa", "ema": True, "lr": 0.001, "depth": 4, "note_x": None}

    assert kinds == dict(run.design.settings)
    assert [type(value) for value in kinds.values()] == [type(value) for value in run.design.settings.values()]


def test_read_runs_takes_a_table_as_it_is(place):
    assert [run.run_id for run in read_runs(write(place[0], GOOD))] == ["a", "b"]


CELLS = st.one_of(
    st.sampled_from(["", "0", "1", "0.5", "-1", "nan", "1e400", "1e308", "007", "+.5", "5.", "1_0", "½", "true"]),
    st.floats().map(repr),
    st.integers().map(str),
    st.text(st.characters(codec="utf-8", exclude_characters="\r\n\x00"), max_size=6),
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(CELLS, min_size=6, max_size=6))
def test_every_row_that_the_rules_pass_is_a_valid_run(cells):
    from forecast.importing.columns import assign
    from forecast.importing.rows import BadRow, RowMaker
    from forecast.importing.table import Table

    names = ("run_id", "g", "samples", "seed", "width", "val/a")
    columns = assign(Table("t", names, lambda: iter(())), [["a", "0", "1", "1", "1", "0.5"]], Choices())
    maker = RowMaker(columns, Choices(), "t.csv")
    try:
        run_id, line = maker.line(2, cells)
    except BadRow:
        return

    run = Run.model_validate_json(line)
    assert run_id == run.run_id
    assert len(run.design.hash) == 64


def platocast(*words, cwd):
    command = [str(Path(sys.executable).with_name("platocast")), *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def test_the_command_imports_shows_and_refuses(place):
    table = place[0]
    folder = table.parent
    write(table, GOOD)
    done = platocast("import", table.name, "--ledger", "runs.jsonl", "--store", "runs.duckdb", "--json", cwd=folder)
    shown = platocast("runs", "runs.duckdb", "--json", cwd=folder)
    write(table, GOOD + "c,7,1,1,1\n")
    refused = platocast("import", table.name, "--ledger", "runs.jsonl", cwd=folder)
    skipped = platocast("import", table.name, "--ledger", "runs.jsonl", "--skip-bad", cwd=folder)

    assert (done.returncode, (record := json.loads(done.stdout))["added"], record["in_store"]) == (0, 2, 2)
    assert [row["runs"] for row in json.loads(shown.stdout)] == [1, 1]
    assert (refused.returncode, refused.stderr.splitlines()[1]) == (
        2,
        "error: table.csv: 1 problem(s), nothing was imported",
    )
    assert (skipped.returncode, "row 4, column g: '7'" in skipped.stderr) == (0, True)


def test_a_store_out_of_date_is_refreshed_on_demand(place):
    table, ledger = place
    write(table, GOOD)
    platocast("import", table.name, "--ledger", "runs.jsonl", "--store", "runs.duckdb", cwd=table.parent)
    import_file(write(table, GOOD + "c,1,1,1,1\n"), ledger)
    stale = platocast("runs", "runs.duckdb", cwd=table.parent)
    fresh = platocast("runs", "runs.duckdb", "--refresh", "--each", "--json", cwd=table.parent)

    assert (stale.returncode, "--refresh" in stale.stderr) == (2, True)
    assert sorted(row["run_id"] for row in json.loads(fresh.stdout)) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--map", "n_samples"], "--map needs NAME=COLUMN, got 'n_samples'"),
        (["--unit", "g=km"], "a unit is percent, log10 or plain"),
        (["--bounds", "eval/knn=1:0"], "the lower bound must lie below the upper one"),
        (["--chance", "eval/knn=x"], "--chance needs a finite number, got 'x'"),
    ],
)
def test_wrong_options_are_refused(place, words, expected):
    refused = platocast("import", write(place[0], GOOD), "--ledger", place[1], *words, cwd=place[0].parent)

    assert (refused.returncode, expected in refused.stderr) == (2, True)


def test_capital_n_beside_d_are_parameters_and_tokens_not_samples(tmp_path):
    table = tmp_path / "chinchilla.csv"
    table.write_text("N,D,loss\n1e8,2e9,3.1\n2e8,4e9,2.9\n")
    alone = tmp_path / "samples.csv"
    alone.write_text("N,loss\n1e8,3.1\n2e8,2.9\n")

    assert {"N", "D"} == set(read_runs(table)[0].design.settings)
    assert {"n_samples"} == set(read_runs(alone)[0].design.settings)
