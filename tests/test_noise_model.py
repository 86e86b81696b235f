"""Noise that depends on the mean: tested against a constant SD on replicates, used where shown or asked."""

import numpy as np
import pytest
from worlds_of_runs import KNN, hill_truth, run, simulated_runs

from forecast.errors import ForecastError
from forecast.fitted import Fit
from forecast.fitting import fit
from forecast.noise_model import NoiseModel, constancy_of, mean_dependent, read_noise
from forecast.prediction import predict
from forecast.records import Design, Metric, Target


def replicates(rng, slope, designs=24, each=3):
    """Values, owners and means of designs whose SD is 0.02 times (mean / 0.1) ** slope."""
    means = np.geomspace(0.03, 0.3, designs)
    owner = np.repeat(np.arange(designs), each)
    values = means[owner] + 0.02 * (means[owner] / 0.1) ** slope * rng.normal(size=len(owner)) * 0.1
    return values, owner, np.ones(len(owner)), np.bincount(owner, weights=values) / each


def test_the_slope_is_that_of_a_gamma_regression_of_variances():
    import statsmodels.api as sm

    values, owner, weights, means = replicates(np.random.default_rng(2), 0.8)
    variance = np.array([values[owner == i].var(ddof=1) for i in range(24)])
    oracle = sm.GLM(
        variance,
        sm.add_constant(np.log(means)),
        family=sm.families.Gamma(sm.families.links.Log()),
        var_weights=[1.0] * 24,
    ).fit(tol=1e-12)
    model = mean_dependent(values, owner, weights, means, None)

    assert oracle.params[1] / 2 == pytest.approx(model.slope, rel=1e-5)
    assert np.log(means).mean() == pytest.approx(model.centre)


def test_a_constant_sd_is_rejected_as_seldom_as_it_should_be_and_a_slope_often():
    rng = np.random.default_rng(5)
    flat = [constancy_of(*replicates(rng, 0.0, 12), rng) for _ in range(100)]
    steep = [constancy_of(*replicates(rng, 1.0, 12), rng) for _ in range(20)]

    assert 0 <= np.mean(np.array(flat) < 0.05) <= 0.12
    assert np.mean(np.array(steep) < 0.05) > 0.8


def test_too_few_replicates_give_no_test_and_no_slope():
    values, owner, weights, means = replicates(np.random.default_rng(0), 1.0, designs=3)

    assert constancy_of(values, owner, weights, means, np.random.default_rng(0)) is None
    with pytest.raises(ForecastError, match="needs 4 designs"):
        mean_dependent(values, owner, weights, means, None)


def uneven_runs(power=1.0, seed=0):
    """A Hill world of 3 seeds a design whose SD is 0.004 times (mean / 0.08) ** power."""
    rng = np.random.default_rng(seed)
    return [
        run(f"r{n}-{g}-{k}", n, g, (m := hill_truth(n, g)) + 0.004 * (m / 0.08) ** power * float(rng.normal()), seed=k)
        for n in (8000, 32_000, 128_000, 512_000)
        for g in (0.0, 0.25, 0.5, 1.0)
        for k in range(3)
    ]


def fitted(runs, **options) -> Fit:
    return fit(runs, metric="mutual_knn", law="hill", rng=np.random.default_rng(0), **options)


def noise_at(f: Fit, n: float) -> float:
    place = [Target(target="t", design=Design(settings={"n_samples": n, "good_view_fraction": 1.0}))]
    return predict(f, place, rng=np.random.default_rng(1))[0].noise_sd


def test_noise_that_grows_with_the_mean_is_found_used_and_carried_to_the_forecast(tmp_path):
    f = fitted(uneven_runs(2.0))
    f.save(tmp_path / "fit.json")
    loaded = Fit.load(tmp_path / "fit.json")
    true = [0.004 * (hill_truth(n, 1.0) / 0.08) ** 2.0 for n in (8000, 512_000)]

    assert "mean" == loaded.noise.model
    assert loaded.noise.dependence.p_value < 0.05
    assert any("seed noise depends on the mean" in reason for reason in f.reasons)
    assert true == pytest.approx([noise_at(loaded, n) for n in (8000, 512_000)], rel=0.4)
    assert loaded.designs[0].worth is not None


def test_even_noise_stays_constant_unless_it_is_asked_for():
    runs = uneven_runs(0.0)
    auto, constant, asked = fitted(runs), fitted(runs, noise="constant"), fitted(runs, noise="mean")

    assert ("constant", "constant", "mean") == (auto.noise.model, constant.noise.model, asked.noise.model)
    assert auto.noise.dependence.p_value > 0.05
    assert auto.chosen.parameters == constant.chosen.parameters
    assert noise_at(auto, 8000) == noise_at(auto, 512_000)


def test_beyond_the_data_the_sd_stays_at_its_last_value():
    model = NoiseModel(name="mean", slope=3.0, centre=np.log(0.1), low=0.05, high=0.2, logarithm=True)

    assert model.factor(np.array([0.2])) == model.factor(np.array([0.9]))
    assert [1.0, 8.0] == pytest.approx(model.factor(np.array([0.1, 0.2])))


def test_fresh_items_have_the_binomial_sd_where_no_design_has_two_runs():
    rng = np.random.default_rng(3)
    runs = [
        run(f"r{n}-{g}", n, g, float(rng.binomial(400, hill_truth(n, g)) / 400))
        for n in (8000, 32_000, 128_000, 512_000)
        for g in (0.0, 0.25, 0.5, 1.0)
    ]
    f = fitted(runs, noise="fresh-items=400")
    point = predict(
        f,
        [Target(target="t", design=Design(settings={"n_samples": 128_000, "good_view_fraction": 0.5}))],
        rng=np.random.default_rng(0),
    )[0]

    assert "fresh-items" == f.noise.model
    assert np.sqrt(point.point * (1 - point.point) / 400) == pytest.approx(point.noise_sd)


def test_fresh_items_are_refused_for_fixed_items_for_what_is_no_share_and_on_another_link():
    fixed = Metric(name="mutual_knn", chance=KNN.chance, lower=0.0, upper=1.0, items_hash="a" * 64)

    with pytest.raises(ForecastError, match="fixed test items"):
        fitted(simulated_runs(metric=fixed), noise="fresh-items=300")
    with pytest.raises(ForecastError, match="shares"):
        fitted(
            simulated_runs(lambda n, g: 40 * hill_truth(n, g), metric=Metric(name="mutual_knn")), noise="fresh-items=9"
        )
    with pytest.raises(ForecastError, match="without --link"):
        fitted(simulated_runs(), noise="fresh-items=300", link="logit")


def test_noise_models_are_read_and_refused():
    assert [("auto", None), ("mean", None), ("fresh-items", 50)] == [
        read_noise(text) for text in ("auto", "mean", "fresh-items=50")
    ]
    for wrong in ("", "wild", "fresh-items", "fresh-items=0", "fresh-items=x"):
        with pytest.raises(ForecastError, match="noise model"):
            read_noise(wrong)
