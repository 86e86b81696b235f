"""Fitting: the law that made the runs is found, saved, loaded, and hopeless data are refused."""

import numpy as np
import pytest
from worlds_of_runs import CHANCE, KNN, hill_truth, run, simulated_runs

from forecast.errors import ForecastError
from forecast.fitted import Fit
from forecast.fitting import fit
from forecast.records import Metric, Run


@pytest.fixture(scope="module")
def fitted() -> Fit:
    return fit(simulated_runs(), metric="mutual_knn", rng=np.random.default_rng(0), seed=0)


def test_a_hill_world_is_fitted_by_a_shift_law(fitted):
    assert fitted.chosen.family == "shift"
    assert fitted.chosen.lack_of_fit.p_value > 0.01
    assert pytest.approx(fitted.noise.sigma, rel=0.4) == 0.002


def test_the_truth_lies_in_the_intervals_of_the_law_that_made_the_runs():
    fitted = fit(simulated_runs(), metric="mutual_knn", law="hill", rng=np.random.default_rng(0))
    truth = {"A": 0.12, "n50": 300_000, "b": 0.9, "kappa": 0.1}

    assert {"hill"} == {c.law for c in fitted.components}
    assert all(e.lower < truth[e.name] < e.upper for e in fitted.parameters)


def test_the_law_beats_every_baseline_out_of_sample(fitted):
    rows = {row.law: row for row in fitted.candidates}
    baselines = {"constant-per-g", "no-g", "linear-log-n", "nearest-design"}

    assert baselines == {row.law for row in fitted.baselines}
    assert all(rows[fitted.law].backtest_crps < rows[name].backtest_crps for name in baselines)
    assert all(any(f"preferred to {name}" in reason for reason in fitted.reasons) for name in baselines)
    assert pytest.approx(sum(c.weight for c in fitted.components)) == 1


def test_a_saved_fit_is_the_same_fit(fitted, tmp_path):
    fitted.save(tmp_path / "fit.json")

    assert fitted == Fit.load(tmp_path / "fit.json")


def test_a_fit_knows_its_data(fitted):
    again = fit(simulated_runs()[::-1], metric="mutual_knn", rng=np.random.default_rng(0), seed=0)
    other = fit(simulated_runs(seed=2), metric="mutual_knn", law="hill", rng=np.random.default_rng(0))

    assert fitted == again
    assert fitted.data_hash != other.data_hash
    assert len(fitted.run_ids) == 53
    assert len(fitted.design_hashes) == 35


def test_what_is_no_fit_is_refused(tmp_path):
    (tmp_path / "fit.json").write_text('{"format": "something"}')

    with pytest.raises(ForecastError, match="no fit"):
        Fit.load(tmp_path / "fit.json")
    with pytest.raises(ForecastError, match="cannot be read"):
        Fit.load(tmp_path / "absent.json")


def refused(runs: list[Run], match: str, **options: object) -> None:
    with pytest.raises(ForecastError, match=match):
        fit(runs, metric="mutual_knn", rng=np.random.default_rng(0), **options)


def test_hopeless_data_are_refused_with_the_reason():
    few = [run(f"r{i}", 1000 * 2**i, 1.0, 0.04 + 0.01 * i) for i in range(3)]
    refused([], "no runs")
    refused(few, "too few designs", law="hill")
    refused([run(f"r{i}", 1000, i / 5, 0.04 + 0.01 * i) for i in range(6)], "n = 1000")
    refused([run(f"r{i}", 1000 * 2**i, i / 5, 0.05) for i in range(6)], "constant")
    refused(simulated_runs(), "no law 'hil'", law="hil")
    refused(simulated_runs(), "no loss", loss="cubic")
    refused(simulated_runs(), "delta must be > 0", loss="huber", delta=-1.0)
    refused(simulated_runs(), "other", columns={"n": "other"})
    with pytest.raises(ForecastError, match="no run has the metric 'r1'"):
        fit(simulated_runs(), metric="r1", rng=np.random.default_rng(0))


def test_runs_scored_by_two_metrics_of_one_name_are_refused():
    other = Metric(name="mutual_knn", chance=0.01, lower=0.0, upper=1.0)
    refused([*simulated_runs(), run("x", 9000, 0.5, 0.04, metric=other)], "not one metric")


def test_all_g_equal_leaves_a_law_in_n_alone():
    fitted = fit(simulated_runs(shares=(1.0,)), metric="mutual_knn", rng=np.random.default_rng(0))

    assert fitted.predictors == ("n",)


def test_next_token_runs_are_left_out_and_said_so():
    runs = [*simulated_runs(), run("token", 9000, None, 0.04)]
    fitted = fit(runs, metric="mutual_knn", law="hill", rng=np.random.default_rng(0))

    assert "token" not in fitted.run_ids
    assert any("next-token" in warning for warning in fitted.warnings)


def test_runs_at_chance_are_called_so():
    rng = np.random.default_rng(0)
    runs = [
        run(f"r{i}{j}", 1000 * 2**i, j / 3, CHANCE - 0.001 - 0.001 * abs(float(rng.normal())))
        for i in range(5)
        for j in range(4)
    ]
    fitted = fit(runs, metric="mutual_knn", law="hill", rng=np.random.default_rng(0))

    assert any("chance" in warning for warning in fitted.warnings)
    assert any("seed noise is unknown" in warning for warning in fitted.warnings)


def test_lack_of_fit_is_found_and_widens():
    def bent(n: float, g: float) -> float:
        return hill_truth(n, g) + 0.008 * (1 if n in (16_000, 128_000) else 0)

    straight, crooked = (
        fit(simulated_runs(truth), metric="mutual_knn", law="hill", rng=np.random.default_rng(0))
        for truth in (hill_truth, bent)
    )

    assert crooked.chosen.lack_of_fit.p_value < 0.001
    assert any("lack-of-fit" in warning for warning in crooked.warnings)
    assert crooked.chosen.tau > 0.002
    assert straight.chosen.tau < 0.001


def test_huber_records_its_delta_and_survives_an_outlier():
    runs = simulated_runs()
    bad = run("bad", 512_000, 0.125, 0.3)
    robust = fit([*runs, bad], metric="mutual_knn", law="hill", loss="huber", rng=np.random.default_rng(0))
    squared = fit([*runs, bad], metric="mutual_knn", law="hill", rng=np.random.default_rng(0))
    away = [abs(f.parameters[3].value - 0.1) for f in (robust, squared)]

    assert robust.delta > 0
    assert away[0] < away[1]


def test_the_metric_is_kept():
    fitted = fit(simulated_runs(), metric="mutual_knn", law="hill", rng=np.random.default_rng(0))

    assert fitted.metric == KNN
