"""How far a target lies, what was measured that far, and a trend that is named only where there is one."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from worlds_of_runs import CHANCE, hill_truth, simulated_runs

from forecast.content import content_path
from forecast.extrapolation import beyond, distances, off_hull, trends
from forecast.fitted import Coverage, Fit, HeldOut
from forecast.fitting import fit
from forecast.ledger import append_runs
from runner.cli import main

ROOT = Path(__file__).parents[1]
SEEN = {"n": np.array([1e3, 1e3, 1e5, 1e5]), "g": np.array([0.2, 1.0, 0.2, 1.0])}


def at(*places):
    return {"n": np.array([n for n, _ in places], dtype=float), "g": np.array([g for _, g in places], dtype=float)}


@pytest.fixture(scope="module")
def fitted() -> Fit:
    return fit(simulated_runs(), metric="mutual_knn", law="hill", rng=np.random.default_rng(0))


def test_the_hull_is_that_of_the_scaled_designs():
    wanted = at((1e4, 0.6), (1e5, 1.0), (1e7, 0.6), (1e4, 0.0), (1e7, 0.0))
    found = off_hull(SEEN, wanted)

    assert [0.0, 0.0, 1.0, 0.25, np.hypot(1.0, 0.25)] == pytest.approx(found.tolist(), abs=1e-5)
    assert [1, 1, 100, 1, 100] == pytest.approx(beyond(SEEN, wanted).tolist())


def test_a_corner_that_no_design_filled_is_outside_the_hull_though_inside_every_range(fitted):
    without = {k: v[:3] for k, v in SEEN.items()}
    corner = at((1e5, 1.0), (1e4, 0.6))

    assert off_hull(without, corner)[0] == pytest.approx(2**-0.5, abs=1e-5)
    assert 0.0 == off_hull(without, corner)[1]


def test_one_column_and_one_level_have_a_hull_too():
    line = {"n": np.array([1e3, 1e4]), "g": np.ones(2)}

    assert [0.0, 1.0, 0.5] == pytest.approx(off_hull(line, at((3e3, 1), (1e5, 1), (3e3, 0.5))).tolist(), abs=1e-5)


def test_held_out_errors_are_those_about_as_far(fitted):
    near, far, away = distances(fitted, at((64_000, 0.5), (512_000 * 4, 0.5), (512_000 * 4000, 0.5)))
    rows = [row for row in fitted.held_out if 2 <= row.factor <= 8]
    inside = [row for row in fitted.held_out if row.factor <= 1]

    assert len(fitted.held_out) == next(row.held_out for row in fitted.candidates if row.law == "hill")
    assert (len(inside), len(rows), 0) == (near.held_out, far.held_out, away.held_out)
    assert np.sqrt(np.mean([row.error**2 for row in rows])) == pytest.approx(far.rmse)
    assert np.mean([row.inside for row in inside]) == pytest.approx(near.covered)
    assert (None, ("n",)) == (away.rmse, away.outside)


def test_simulated_coverage_is_the_shipped_table_s_or_the_fit_s_own(fitted):
    table = json.loads(content_path("coverage.json").read_bytes())["rows"]
    row = next(r for r in table if (r["method"], r["factor"], r["lack_of_fit"]) == ("profile", 4, False))
    inside, four, forty = distances(fitted, at((64_000, 0.5), (512_000 * 4, 0.5), (512_000 * 40, 0.5)))
    own = Coverage(world="hill", method="profile", target="4x, g=1", nominal=0.95, coverage=0.5, width=1.0, worlds=9)
    simulated = distances(fitted.model_copy(update={"calibration": (own,)}), at((512_000 * 4, 0.5)))[0]

    assert 0.0 == fitted.chosen.tau
    assert (None, row["middle"], None) == (inside.simulated, four.simulated, forty.simulated)
    assert row["lowest"] == four.lowest
    assert (0.5, 0.5) == (simulated.simulated, simulated.lowest)


def test_the_shipped_table_is_that_of_the_measured_coverage():
    spec = importlib.util.spec_from_file_location("coverage_table", ROOT / "benchmarks" / "coverage_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    measured = json.loads((ROOT / "reports" / "calibration.json").read_text())

    assert module.summary(measured) == json.loads(content_path("coverage.json").read_bytes())
    assert module.summary([r for r in measured if r["target"] != "4x"]) != module.summary(measured)


def row(fold, n, g, error, factor=4.0) -> HeldOut:
    return HeldOut(fold=fold, columns={"n": n, "g": g}, error=error, inside=True, factor=factor, ordered=True)


def cuts(at_one, at_zero) -> list[HeldOut]:
    """Two cuts in n with three designs each beyond, at g = 1 and at g = 0."""
    rng = np.random.default_rng(0)
    return [
        row(f"n <= {cut}", n, g, mean + float(rng.normal(0, 0.001)), factor=n / cut)
        for cut in (1000, 2000)
        for n in (4000, 8000, 16_000)
        for g, mean in ((1.0, at_one), (0.0, at_zero))
    ]


def test_a_law_that_overestimates_pure_good_views_at_longer_training_is_named():
    (said,) = trends(cuts(-0.02, 0.0), "hill", 0.002)

    assert "hill overestimates g = 1 (pure good views) at 2 to 16 times the data by 0.02" in said


def test_errors_of_both_signs_or_within_seed_noise_are_no_trend():
    mixed = [r.model_copy(update={"error": -r.error}) if r.fold == "n <= 1000" else r for r in cuts(-0.02, 0.0)]

    assert [] == trends(mixed, "hill", 0.002)
    assert [] == trends(cuts(-0.02, 0.0), "hill", 0.05)
    assert [] == trends([r.model_copy(update={"ordered": False}) for r in cuts(-0.02, 0.0)], "hill", 0.002)
    assert [] == trends([], "hill", None)


def saturating(n: float, g: float) -> float:
    """The Hill world, but pure good views stop at 0.05, as if they overfitted at longer training."""
    value = hill_truth(n, g)
    return min(value, CHANCE + 0.018) if g == 1.0 else value


def test_the_fit_of_a_world_with_that_trend_says_so_and_predict_repeats_it(tmp_path, capsys):
    bent = fit(simulated_runs(saturating, noise=0.001), metric="mutual_knn", law="hill", rng=np.random.default_rng(0))
    bent.save(tmp_path / "fit.json")
    with pytest.raises(SystemExit) as done:
        main(["predict", str(tmp_path / "fit.json"), "--g", "1", "--n", "2e6", "--n", "5e7"])
    shown = " ".join("".join(capsys.readouterr()).split())

    assert 0 == done.value.code
    assert any("overestimates g = 1 (pure good views)" in warning for warning in bent.warnings)
    assert "overestimates g = 1 (pure good views)" in shown
    assert "beyond in n" in shown
    assert "1 target(s) lie more than a factor 10 outside the data" in shown
    assert "t2: no design was held out that far" in shown


def test_an_even_world_has_no_trend(fitted):
    assert not any("trained on smaller runs" in warning for warning in fitted.warnings)


def test_g_outside_the_data_is_said(tmp_path, capsys):
    runs = tmp_path / "runs.jsonl"
    append_runs(runs, simulated_runs(shares=(0.0, 0.25, 0.5)))
    for words in (
        ["fit", runs, "--metric", "mutual_knn", "--law", "hill", "--out", tmp_path / "fit.json"],
        ["predict", tmp_path / "fit.json", "--g", "0.9", "--n", "64000"],
    ):
        with pytest.raises(SystemExit):
            main([str(word) for word in words])
    said = " ".join("".join(capsys.readouterr()).split())

    assert "t1: g lies outside the data" in said
    assert "beyond in g" in said
