"""The store: an index that holds what its ledgers hold, and says who holds it."""

import subprocess
import sys

import pytest
from worlds_of_runs import run

from forecast.errors import BadRows, ForecastError, StoreBusy
from forecast.ledger import append_runs
from forecast.reading import read_runs
from forecast.store import Store

RUNS = [run("a", 100, 0.5, 0.1), run("b", 200, None, 0.2), run("c", 400, 1.0, 0.3)]


@pytest.fixture
def ledger(tmp_path):
    append_runs(tmp_path / "runs.jsonl", RUNS)
    return tmp_path / "runs.jsonl"


@pytest.mark.parametrize("name", ["runs.duckdb", None])
def test_a_store_returns_the_runs_of_its_ledger(tmp_path, ledger, name):
    with Store(name and tmp_path / name) as store:
        indexed = store.index(ledger)

        assert indexed == 3
        assert store.runs() == RUNS
        assert store.runs("n_samples > 150 AND good_view_fraction IS NULL") == [RUNS[1]]
        assert store.ledgers() == [ledger]


def test_a_store_is_opened_again_and_rebuilt(tmp_path, ledger):
    with Store(tmp_path / "runs.duckdb") as store:
        store.index(ledger)
    append_runs(ledger, [run("d", 100, 0.5, 0.4)])
    with Store(tmp_path / "runs.duckdb") as store:
        assert store.stale() == [ledger]
        assert store.rebuild() == 4
        assert store.stale() == []


def test_a_store_moves_with_its_folder(tmp_path, ledger):
    with Store(tmp_path / "runs.duckdb") as store:
        store.index(ledger)
    moved = tmp_path.rename(tmp_path.with_name("moved"))

    assert read_runs(moved / "runs.duckdb") == RUNS


def test_an_out_of_date_store_is_not_read_in_silence(tmp_path, ledger):
    with Store(tmp_path / "runs.duckdb") as store:
        store.index(ledger)
    append_runs(ledger, [run("d", 100, 0.5, 0.4)])
    with pytest.raises(ForecastError, match="out of date"):
        read_runs(tmp_path / "runs.duckdb")


def test_a_rebuild_without_its_ledger_is_refused_and_loses_nothing(tmp_path, ledger):
    with Store(tmp_path / "runs.duckdb") as store:
        store.index(ledger)
        ledger.unlink()
        with pytest.raises(ForecastError, match="gone"):
            store.rebuild()

        assert store.runs() == RUNS


def test_a_store_that_another_process_holds_names_the_process(tmp_path, ledger):
    path = tmp_path / "runs.duckdb"
    code = "import sys\nfrom forecast.store import Store\nwith Store(sys.argv[1]): print('open', flush=True); input()"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "open\n"
        with (
            pytest.raises(StoreBusy, match=rf"is open in process {holder.pid} \(.*python.*forecast.store"),
            Store(path),
        ):
            pass
    finally:
        holder.communicate("\n")
    with Store(path) as store:
        assert store.index(ledger) == 3


def test_one_id_in_two_ledgers_is_one_run_if_equal_and_refused_if_not(tmp_path, ledger):
    append_runs(tmp_path / "copy.jsonl", RUNS[:1])
    append_runs(tmp_path / "other.jsonl", [run("a", 100, 0.5, 0.9)])
    with Store(tmp_path / "runs.duckdb") as store:
        store.index(ledger)
        store.index(tmp_path / "copy.jsonl")

        assert sorted(one.run_id for one in store.runs()) == ["a", "b", "c"]
        with pytest.raises(BadRows, match="run_id 'a' stands for different runs in"):
            store.index(tmp_path / "other.jsonl")
        assert len(store.ledgers()) == 2


def test_a_corrupt_ledger_leaves_the_store_as_it_was(tmp_path, ledger):
    with Store(tmp_path / "runs.duckdb") as store:
        store.index(ledger)
        ledger.write_text(ledger.read_text() + "{broken\n")
        with pytest.raises(BadRows, match="line 4"):
            store.index(ledger)

        assert store.runs() == RUNS


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "runs.duckdb").write_text("no database at all, " * 100)
    with pytest.raises(ForecastError, match="cannot be opened as a DuckDB file"), Store(tmp_path / "runs.duckdb"):
        pass


def test_a_condition_that_is_no_sql_is_refused(ledger):
    with Store() as store:
        store.index(ledger)
        with pytest.raises(ForecastError, match="'colour = 3' is no SQL over the runs' columns"):
            store.runs("colour = 3")


def test_a_store_that_is_not_there_is_not_made_by_reading(tmp_path):
    with pytest.raises(ForecastError, match="does not exist"):
        read_runs(tmp_path / "runs.duckdb")
    with pytest.raises(ForecastError, match="does not exist"), Store(tmp_path / "runs.duckdb", read_only=True):
        pass


def test_a_frame_has_one_row_per_run_and_metric(ledger):
    with Store() as store:
        store.index(ledger)
        frame = store.frame()

    assert frame[["run_id", "n_samples", "metric", "value"]].values.tolist() == [
        ["a", 100, "mutual_knn", 0.1],
        ["b", 200, "mutual_knn", 0.2],
        ["c", 400, "mutual_knn", 0.3],
    ]


@pytest.mark.parametrize("name", ["runs", "results"])
def test_a_database_whose_views_read_other_files_is_refused(tmp_path, name):
    import duckdb

    (tmp_path / "secret.txt").write_text("TOP SECRET")
    with duckdb.connect(str(tmp_path / "theirs.duckdb")) as theirs:
        theirs.execute(
            f"CREATE VIEW {name} AS SELECT content AS study, 1.0 AS score, 2 AS n_samples "
            f"FROM read_text('{tmp_path}/secret.txt')"
        )

    with pytest.raises(ForecastError) as refused:
        read_runs(tmp_path / "theirs.duckdb")
    assert "TOP SECRET" not in str(refused.value)
    from forecast.importing.importer import runs_from

    with pytest.raises(ForecastError, match=r"disabled|no table"):
        runs_from(tmp_path / "theirs.duckdb")
