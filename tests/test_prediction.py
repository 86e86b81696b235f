"""Predictions: from fit.json alone, with intervals, baselines and the distance from the data."""

import numpy as np
import pytest
from worlds_of_runs import hill_truth, simulated_runs

from forecast.errors import ForecastError
from forecast.fitted import Fit
from forecast.fitting import fit
from forecast.prediction import baseline_predictions, predict, predict_joint
from forecast.records import Design, Target


def target(n: float, g: float, name: str = "t") -> Target:
    return Target(target=name, design=Design(settings={"n_samples": n, "good_view_fraction": g}))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> Fit:
    path = tmp_path_factory.mktemp("fit") / "fit.json"
    fit(simulated_runs(), metric="mutual_knn", law="hill", rng=np.random.default_rng(0)).save(path)
    return Fit.load(path)


def test_the_truth_lies_in_the_interval_inside_and_outside_the_data(fitted):
    places = [(64_000, 0.5), (512_000, 1.0), (2_048_000, 1.0), (2_048_000, 0.25)]
    predictions = predict(fitted, [target(*place) for place in places], rng=np.random.default_rng(1))

    for place, p in zip(places, predictions, strict=True):
        assert p.quantiles["0.025"] < hill_truth(*place) < p.quantiles["0.975"]
        assert p.quantiles["0.5"] == pytest.approx(p.point, abs=0.002)
    assert [p.extrapolation_factor for p in predictions] == [1, 1, 4, 4]


def test_quantiles_rise_and_widen_with_distance(fitted):
    near, far = predict(fitted, [target(64_000, 0.5), target(5_120_000, 0.5)], rng=np.random.default_rng(1))
    width = [p.quantiles["0.975"] - p.quantiles["0.025"] for p in (near, far)]

    assert list(near.quantiles.values()) == sorted(near.quantiles.values())
    assert 2 * width[0] < width[1]
    assert near.curve_sd < near.noise_sd
    assert fitted.noise.sigma == near.noise_sd


def test_the_curve_the_mean_of_seeds_and_one_run_are_three_intervals(fitted):
    places = [target(64_000, 0.5)]
    one = predict(fitted, places, rng=np.random.default_rng(1))[0].quantiles
    four = predict(fitted, places, rng=np.random.default_rng(1), replicates=4)[0].quantiles
    curve = np.quantile(predict_joint(fitted, places, np.random.default_rng(1), 4000)[:, 0], [0.025, 0.975])
    widths = [curve[1] - curve[0], *(q["0.975"] - q["0.025"] for q in (four, one))]

    assert widths == sorted(widths)
    assert 1.2 * widths[1] < widths[2]


def test_quantiles_stay_inside_the_metric(fitted):
    low = predict(fitted, [target(1, 0.0)], rng=np.random.default_rng(1))[0]

    assert all(0 <= value <= 1 for value in low.quantiles.values())


def test_joint_draws_of_near_targets_move_together(fitted):
    draws = predict_joint(
        fitted, [target(2e6, 1.0, "a"), target(2.1e6, 1.0, "b"), target(8e3, 0.0, "c")], np.random.default_rng(0), 2000
    )
    near, far = np.corrcoef(draws.T)[0, 1:]

    assert draws.shape == (2000, 3)
    assert near > 0.99
    assert abs(far) < 0.9


def test_baselines_say_what_they_are_named_for(fitted):
    said = baseline_predictions(fitted, [target(512_000, 1.0), target(4_000_000, 1.0), target(512_000, 0.125)])
    columns, means, counts = fitted.table()
    at = (columns["n"] == 512_000) & (columns["g"] == 1)
    level = [np.average(means[columns["g"] == g], weights=counts[columns["g"] == g]) for g in (1.0, 0.0, 0.25)]

    assert {"constant-per-g", "nearest-design", "no-g", "linear-log-n"} == set(said)
    assert means[at][0] == pytest.approx(said["nearest-design"][0])
    assert said["nearest-design"][0] == pytest.approx(said["nearest-design"][1])
    assert [level[0], level[0], (level[1] + level[2]) / 2] == pytest.approx(said["constant-per-g"])
    assert said["no-g"][0] == pytest.approx(said["no-g"][2])


def test_a_target_without_the_settings_and_no_target_are_refused(fitted):
    lost = Target(target="t", design=Design(settings={"n_samples": 1000}))

    with pytest.raises(ForecastError, match="good_view_fraction"):
        predict(fitted, [lost], rng=np.random.default_rng(0))
    with pytest.raises(ForecastError, match="no targets"):
        predict(fitted, [], rng=np.random.default_rng(0))
