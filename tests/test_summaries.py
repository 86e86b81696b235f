"""Runs as rows: one per design with mean and SD over seeds, one per run."""

import statistics

import pytest
from worlds_of_runs import run

from forecast.errors import ForecastError
from forecast.records import Design, Run
from forecast.summaries import design_rows, run_rows, short_rows

RUNS = [
    run("b", 200, 0.5, 0.25, seed=3),
    run("a", 100, 0.5, 0.1, seed=1),
    run("c", 100, 0.5, 0.3, seed=2),
    Run(
        run_id="d", design=Design(settings={"n_samples": 100, "good_view_fraction": 0.5}), status="failed", failure="x"
    ),
]


def test_a_design_has_mean_and_sd_over_its_seeds():
    rows, constant = design_rows(RUNS)

    assert [row["n_samples"] for row in rows] == [100, 200]
    assert [row["runs"] for row in rows] == [3, 1]
    assert [row["failed"] for row in rows] == [1, 0]
    assert pytest.approx([row["mutual_knn mean"] for row in rows]) == [0.2, 0.25]
    assert statistics.stdev([0.1, 0.3]) == pytest.approx(rows[0]["mutual_knn SD"])
    assert rows[1]["mutual_knn SD"] is None
    assert constant == {"good_view_fraction": 0.5}


def test_short_rows_hold_mean_and_sd_in_one_column():
    rows, _ = design_rows(RUNS)
    short = short_rows(rows)

    assert short[0] == {"n_samples": 100, "runs": 3, "failed": 1, "mutual_knn": "0.2±0.14"}
    assert short[1]["mutual_knn"] == "0.25"
    assert "failed" not in short_rows(design_rows(RUNS[:3])[0])[0]


def test_a_row_per_run_says_what_varies():
    rows, _ = run_rows(RUNS)

    assert [row["run_id"] for row in rows] == ["a", "c", "d", "b"]
    assert [row["mutual_knn"] for row in rows] == [0.1, 0.3, None, 0.25]


def test_a_metric_that_no_run_has_is_refused():
    with pytest.raises(ForecastError, match="no run has the metric 'r1'; there are mutual_knn"):
        design_rows(RUNS, ["r1"])
