"""Import from the tools that people use: each format written by its own tool or byte by byte after its description."""

import json
import sqlite3
import struct

import duckdb
import pandas as pd
import pytest
from worlds_of_runs import run

from forecast.errors import BadRows, ForecastError
from forecast.importing.columns import Choices
from forecast.importing.importer import import_file, runs_from
from forecast.importing.tensorboard import scalars
from forecast.ledger import append_runs, read_ledger

FRAME = pd.DataFrame(
    {
        "run_id": ["a", "b"],
        "g": [0.0, 0.5],
        "samples": [8000, 16000],
        "seed": [0, 1],
        "eval/knn": [0.013, 0.02],
    }
)
EXPECTED = [("a", 0, 8000, 0, 0.013), ("b", 0.5, 16000, 1, 0.02)]


def told(runs):
    """What the tests compare of runs."""
    rows = []
    for one in runs:
        settings = one.design.settings
        value = one.evaluations[0].value if one.evaluations else None
        rows.append((one.run_id, settings["good_view_fraction"], settings["n_samples"], one.seed, value))
    return sorted(rows)


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def test_parquet_written_by_pandas(tmp_path):
    FRAME.to_parquet(tmp_path / "t.parquet")

    assert told(runs_from(tmp_path / "t.parquet")) == EXPECTED


def test_json_lines_flat_and_nested(tmp_path):
    FRAME.to_json(tmp_path / "flat.jsonl", orient="records", lines=True)
    nested = [
        {
            "run_id": r["run_id"],
            "config": {"g": r["g"], "samples": r["samples"], "seed": r["seed"]},
            "eval/knn": r["eval/knn"],
        }
        for r in FRAME.to_dict("records")
    ]
    (tmp_path / "nested.jsonl").write_text("\n".join(map(json.dumps, nested)))

    assert told(runs_from(tmp_path / "flat.jsonl")) == EXPECTED
    assert told(runs_from(tmp_path / "nested.jsonl")) == EXPECTED


def test_json_lines_with_a_broken_line_are_refused(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"g": 1, "samples": 5, "eval/knn": 0.5}\n{"g": 1,\n')
    with pytest.raises(BadRows, match="row 2: not JSON"):
        runs_from(tmp_path / "t.jsonl")


def test_tables_of_duckdb_and_sqlite(tmp_path):
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("CREATE TABLE other (x INTEGER)")
        connection.execute("CREATE TABLE runs AS SELECT * FROM FRAME")
    connection = sqlite3.connect(tmp_path / "t.sqlite")
    FRAME.to_sql("runs", connection, index=False)
    connection.close()

    assert told(runs_from(tmp_path / "t.duckdb", Choices(table="runs"))) == EXPECTED
    assert told(runs_from(tmp_path / "t.sqlite")) == EXPECTED
    with pytest.raises(ForecastError, match=r"has 2 tables \(other, runs\); name one with --table"):
        runs_from(tmp_path / "t.duckdb")
    with pytest.raises(ForecastError, match="has no table 'x'; it has runs"):
        runs_from(tmp_path / "t.sqlite", Choices(table="x"))


def test_the_name_of_a_table_is_never_sql(tmp_path):
    connection = sqlite3.connect(tmp_path / "t.sqlite")
    FRAME.to_sql('ru"ns; DROP', connection, index=False)
    connection.close()

    assert told(runs_from(tmp_path / "t.sqlite")) == EXPECTED


@pytest.mark.parametrize("name", ["t.parquet", "t.sqlite", "t.duckdb"])
def test_a_binary_file_of_another_kind_is_refused(tmp_path, name):
    (tmp_path / name).write_text("g,samples\n" * 200)
    with pytest.raises(ForecastError, match="cannot be"):
        runs_from(tmp_path / name)


def test_a_wandb_csv_export(tmp_path):
    text = (
        '"Name","State","Notes","User","Tags","Created","Runtime","Sweep","ID","good_view_fraction","n_samples","seed","eval/knn"\n'
        '"calm-1","finished","-","me","","2026-01-01","12","","a","0","8000","0","0.013"\n'
        '"calm-2","finished","-","me","","2026-01-01","14","","b","0.5","16000","1","0.02"\n'
        '"calm-3","crashed","-","me","","2026-01-01","1","","c","0.5","16000","2",""\n'
    )
    (tmp_path / "wandb_export.csv").write_text(text)
    runs = runs_from(tmp_path / "wandb_export.csv")

    assert told(runs)[:2] == EXPECTED
    assert [one.status for one in runs] == ["finished", "finished", "failed"]


def test_wandb_offline_runs(tmp_path):
    for i, row in FRAME.iterrows():
        files = tmp_path / "wandb" / f"offline-run-20260101_12000{i}-{row['run_id']}" / "files"
        write_json(
            files / "wandb-summary.json",
            {"eval/knn": row["eval/knn"], "_step": 9, "_runtime": 3, "table": {"path": "x"}},
        )
        (files / "config.yaml").write_text(
            f"wandb_version: 1\n\n_wandb:\n  desc: null\n  value:\n    cli_version: 0.19\n"
            f"g:\n  desc: null\n  value: {row['g']}\nsamples:\n  value: {row['samples']}\n"
            f"seed:\n  value: {row['seed']}\n"
            f"optimizer:\n  value:\n    lr: 0.001\n"
        )
    runs = runs_from(tmp_path / "wandb")

    assert told(runs) == EXPECTED
    assert runs[0].design.settings["optimizer.lr"] == 0.001
    assert [e.metric.name for e in runs[0].evaluations] == ["eval/knn"]


def test_an_mlflow_folder(tmp_path):
    for row in FRAME.to_dict("records"):
        folder = tmp_path / "mlruns" / "0" / row["run_id"]
        (folder / "metrics" / "eval").mkdir(parents=True)
        (folder / "params").mkdir()
        (folder / "meta.yaml").write_text(f"run_id: {row['run_id']}\nstatus: 3\nlifecycle_stage: active\n")
        (folder / "metrics" / "eval" / "knn").write_text(
            f"1700000001 0.5 1\n1700000002 {row['eval/knn']} 10\n1700000003 0.4 9\n"
        )
        for name in ("g", "samples", "seed"):
            (folder / "params" / name).write_text(str(row[name]))
    (tmp_path / "mlruns" / "0" / "meta.yaml").write_text("experiment_id: 0\nname: Default\n")

    assert told(runs_from(tmp_path / "mlruns")) == EXPECTED


def test_an_mlflow_database(tmp_path):
    connection = sqlite3.connect(tmp_path / "mlflow.db")
    connection.executescript(
        "CREATE TABLE runs (run_uuid TEXT, name TEXT, status TEXT, lifecycle_stage TEXT, start_time INTEGER);"
        "CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT);"
        "CREATE TABLE latest_metrics"
        " (key TEXT, value REAL, timestamp INTEGER, step INTEGER, is_nan INTEGER, run_uuid TEXT);"
        "INSERT INTO runs VALUES ('gone', 'x', 'FINISHED', 'deleted', 0);"
    )
    for row in FRAME.to_dict("records"):
        connection.execute("INSERT INTO runs VALUES (?, 'n', 'FINISHED', 'active', 1)", [row["run_id"]])
        connection.execute(
            "INSERT INTO latest_metrics VALUES ('eval/knn', ?, 1, 9, 0, ?)", [row["eval/knn"], row["run_id"]]
        )
        for name in ("g", "samples", "seed"):
            connection.execute("INSERT INTO params VALUES (?, ?, ?)", [name, str(row[name]), row["run_id"]])
    connection.commit()
    connection.execute("UPDATE latest_metrics SET is_nan = 1 WHERE run_uuid = 'b'")
    assert told(runs_from(tmp_path / "mlflow.db")) == EXPECTED
    connection.commit()
    connection.close()

    with pytest.raises(BadRows, match=r"row 2, column eval/knn: 'nan' must be finite"):
        runs_from(tmp_path / "mlflow.db")


def test_a_hydra_multirun(tmp_path):
    for i, row in enumerate(FRAME.to_dict("records")):
        folder = tmp_path / "multirun" / "2026-01-01" / "12-00-00" / str(i)
        write_json(folder / "metrics.json", {"eval/knn": row["eval/knn"]})
        (folder / ".hydra").mkdir()
        (folder / ".hydra" / "config.yaml").write_text(
            f"data:\n  g: {row['g']}\n  samples: {row['samples']}\nseed: {row['seed']}\n"
        )
    runs = runs_from(tmp_path / "multirun")

    assert [row[1:] for row in told(runs)] == [row[1:] for row in EXPECTED]
    assert [one.run_id for one in runs] == ["2026-01-01/12-00-00/0", "2026-01-01/12-00-00/1"]
    (tmp_path / "multirun/2026-01-01/12-00-00/1/metrics.json").unlink()
    with pytest.raises(ForecastError, match=r"has none of metrics\.json, run\.json"):
        runs_from(tmp_path / "multirun")


def test_a_pattern_of_json_files_and_their_folder(tmp_path):
    for row in FRAME.to_dict("records"):
        settings = {name: row[name] for name in ("g", "samples")}
        value = {"settings": settings, "seed": row["seed"], "metrics": {"eval/knn": row["eval/knn"]}}
        write_json(tmp_path / "runs" / row["run_id"] / "run.json", value)

    assert told(runs_from(tmp_path / "runs" / "*" / "run.json")) == EXPECTED
    assert told(runs_from(tmp_path / "runs")) == EXPECTED
    with pytest.raises(ForecastError, match="matches no file"):
        runs_from(tmp_path / "runs" / "*" / "nothing.json")


def test_tensorboard_scalars_as_tensorboardx_writes_them(tmp_path):
    from tensorboardX import SummaryWriter

    for row in FRAME.to_dict("records"):
        with SummaryWriter(
            str(tmp_path / "tb" / f"g={row['g']},samples={row['samples']},seed={row['seed']}")
        ) as writer:
            writer.add_scalar("eval/knn", 0.5, 1)
            writer.add_scalar("eval/knn", row["eval/knn"], 10)
            writer.add_scalar("loss", 3.0, 10)
    runs = runs_from(tmp_path / "tb", Choices(tag="eval/knn"))

    assert [row[1:4] for row in told(runs)] == [row[1:4] for row in EXPECTED]
    assert [one.evaluations[0].value for one in runs] == pytest.approx([0.013, 0.02], rel=1e-7)
    with pytest.raises(ForecastError, match="has the tags eval/knn, loss; name one with --tag"):
        runs_from(tmp_path / "tb")
    with pytest.raises(ForecastError, match="has no tag 'x'"):
        runs_from(tmp_path / "tb", Choices(tag="x"))


def test_a_record_that_is_still_being_written_is_left_out(tmp_path):
    value = b"\x0a\x01t" + b"\x15" + struct.pack("<f", 0.25)
    summary = b"\x0a" + bytes([len(value)]) + value
    event = b"\x10\x07\x2a" + bytes([len(summary)]) + summary
    record = struct.pack("<Q", len(event)) + b"\0" * 4 + event + b"\0" * 4
    (tmp_path / "events.out.tfevents.1").write_bytes(record + record[:20])

    assert list(scalars(tmp_path / "events.out.tfevents.1")) == [(7, "t", 0.25)]


def test_ledgers_and_run_files_of_ours_are_merged_as_they_are(tmp_path):
    runs = [run("a", 100, 0.5, 0.1), run("b", 100, None, 0.2)]
    append_runs(tmp_path / "other.jsonl", runs)
    for one in runs:
        path = tmp_path / "runs" / one.run_id / "run.json"
        path.parent.mkdir(parents=True)
        path.write_text(one.model_dump_json())
    first = import_file(tmp_path / "runs", tmp_path / "mine.jsonl")
    second = import_file(tmp_path / "other.jsonl", tmp_path / "mine.jsonl")

    assert (first.added, second.added, second.known) == (2, 0, 2)
    assert read_ledger(tmp_path / "mine.jsonl") == runs
    assert runs_from(tmp_path / "runs" / "*" / "run.json") == runs
    append_runs(tmp_path / "third.jsonl", [run("a", 100, 0.5, 0.9)])
    with pytest.raises(BadRows, match="line 1: run_id 'a' stands for another run already"):
        import_file(tmp_path / "third.jsonl", tmp_path / "mine.jsonl")


def test_a_folder_without_runs_is_refused(tmp_path):
    with pytest.raises(ForecastError, match="no run was found in this folder"):
        runs_from(tmp_path)
