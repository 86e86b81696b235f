"""Exports: pictures at paper size, tables that read back, predictions as a hub wants them."""

import struct
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from registration_cases import registered, statement_body
from worlds_of_runs import run, simulated_runs

from forecast.errors import ForecastError
from forecast.exporting import export
from forecast.fitting import fit
from forecast.frames import frame_of, runs_of
from forecast.hub import hub_rows, write_hub
from forecast.importing.columns import Choices
from forecast.ledger import append_runs
from forecast.prediction import predict
from forecast.records import LEVELS, Design, Target
from forecast.report import fit_page

RUNS = simulated_runs()


@pytest.fixture(scope="module")
def fitted():
    return fit(RUNS, metric="mutual_knn", law="hill", rng=np.random.default_rng(1), seed=1)


@pytest.fixture(scope="module")
def page(fitted):
    return fit_page(fitted, RUNS, rng=np.random.default_rng(2))


def test_pictures_are_170_mm_wide_at_300_dots_per_inch(page, tmp_path):
    written = export(page, tmp_path, ["png", "svg"])
    header = (tmp_path / "curves.png").read_bytes()
    width = struct.unpack(">I", header[16:20])[0]
    per_metre = struct.unpack(">I", header[header.index(b"pHYs") + 4 :][:4])[0]
    svg = ElementTree.parse(tmp_path / "curves.svg").getroot()

    assert len(written) == 2 * len(page.charts)
    assert width / per_metre * 1000 == pytest.approx(170, abs=1)
    assert per_metre * 0.0254 == pytest.approx(300, abs=1)
    assert float(svg.attrib["width"]) == pytest.approx(170 / 25.4 * 72, abs=2)


def test_tables_read_back_as_they_were(page, fitted, tmp_path):
    export(page, tmp_path, ["csv", "parquet"])
    parameters = pd.read_csv(tmp_path / "parameters.csv")
    observed = pd.read_parquet(tmp_path / "observed.parquet")

    assert [p.value for p in fitted.parameters] == parameters["value"].tolist()
    assert [p.name for p in fitted.parameters] == parameters["parameter"].tolist()
    assert sorted(r.evaluations[0].value for r in RUNS) == sorted(observed["value"])
    assert {"parameters", "candidates", "designs", "observed"} == set(page.tables)


def test_vega_lite_comes_out_as_it_went_in(page, tmp_path):
    import json

    export(page, tmp_path, ["vl.json"])

    assert json.loads((tmp_path / "surface.vl.json").read_text()) == page.charts["surface"].to_dict()


@pytest.mark.parametrize(("formats", "expected"), [(["gif"], "no export as gif"), ([], "nothing to export")])
def test_unknown_and_no_formats_are_refused(page, tmp_path, formats, expected):
    with pytest.raises(ForecastError, match=expected):
        export(page, tmp_path, formats)


def predictions(fitted):
    settings = [{"n_samples": n, "good_view_fraction": 0.5} for n in (1e6, 2e6)]
    targets = [Target(target=f"t{i}", design=Design(settings=s)) for i, s in enumerate(settings)]
    return predict(fitted, targets, rng=np.random.default_rng(1))


def test_a_hub_gets_one_row_per_quantile_and_the_median(fitted, tmp_path):
    claims = predictions(fitted)
    path = write_hub(hub_rows(claims, "mutual_knn"), tmp_path, model="us-hill", round_id="2026-12-01")
    frame = pd.read_csv(path, keep_default_na=False, dtype={"output_type_id": str})

    assert path == tmp_path / "model-output" / "us-hill" / "2026-12-01-us-hill.csv"
    assert ["output_type", "output_type_id", "value"] == frame.columns[-3:].tolist()
    assert [*LEVELS, "NA"] * 2 == frame["output_type_id"].tolist()
    assert [*claims[0].quantiles.values(), claims[0].quantiles["0.5"]] == pytest.approx(frame["value"][:10].tolist())
    assert {"target", "metric", "good_view_fraction", "n_samples"} == set(frame.columns[:-3])


@pytest.mark.parametrize(
    ("model", "round_id", "expected"),
    [("hill", "2026-12-01", "--model must be"), ("a-b-c", "x", "--model must be"), ("a-b", "x y", "--round must be")],
)
def test_names_that_a_hub_would_refuse_are_refused(fitted, tmp_path, model, round_id, expected):
    with pytest.raises(ForecastError, match=expected):
        write_hub(hub_rows(predictions(fitted), "m"), tmp_path, model=model, round_id=round_id)


def test_no_prediction_is_no_hub_file():
    with pytest.raises(ForecastError, match="no prediction"):
        hub_rows([], "m")


def platocast(*words, cwd):
    command = [str(Path(sys.executable).with_name("platocast")), *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=180, check=False)


def test_the_command_exports_a_fit_and_a_registration(fitted, tmp_path):
    fitted.save(tmp_path / "fit.json")
    append_runs(tmp_path / "runs.jsonl", RUNS)
    registration, _, _ = registered(tmp_path, statement_body(targets=3, replicates=2))
    done = platocast("export", "fit.json", "--runs", "runs.jsonl", "--format", "csv", "--out", "out", cwd=tmp_path)
    entry = registration.signed.path
    hub = platocast("export", entry, "--hub", "--round", "one", "--model", "a-b", "--out", "hub", cwd=tmp_path)
    refused = platocast("export", "fit.json", "--hub", "--round", "one", "--out", "hub", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "observed.csv").is_file()
    assert hub.returncode == 0, hub.stderr
    assert len(pd.read_csv(tmp_path / "hub/model-output/a-b/one-a-b.csv")) == 3 * (len(LEVELS) + 1)
    assert (refused.returncode, "holds no predictions" in refused.stderr) == (2, True)


def test_a_frame_becomes_runs_and_back():
    frame = pd.DataFrame({"run_id": ["a", "b"], "g": [0.5, None], "n": [8, 16], "eval/knn": [0.1, 0.2]})
    runs = runs_of(frame)
    back = frame_of(runs)

    assert [{"good_view_fraction": 0.5, "n_samples": 8}, {"good_view_fraction": None, "n_samples": 16}] == [
        dict(one.design.settings) for one in runs
    ]
    assert [0.1, 0.2] == back["value"].tolist()
    assert ["eval/knn"] * 2 == back["metric"].tolist()


def test_a_frame_keeps_the_rules_of_the_import():
    frame = pd.DataFrame({"g": [1.5], "n": [8], "score_of_it": [0.1]})
    with pytest.raises(ForecastError, match=r"row 1, column g: 1.5 must lie in \[0, 1\]"):
        runs_of(frame)
    with pytest.raises(ForecastError, match=r"row 1, column score_of_it: empty \(NaN\)"):
        runs_of(frame.assign(g=0.5, score_of_it=float("nan")), Choices(metrics=["score_of_it"]))


def test_a_setting_that_is_called_like_a_column_is_kept_apart():
    one = run("a", 8, 0.5, 0.1)
    odd = one.model_copy(update={"design": Design(settings={"n_samples": 8, "metric": "cosine"})})

    assert "cosine" == frame_of([odd])["setting.metric"][0]
    assert "mutual_knn" == frame_of([odd])["metric"][0]
