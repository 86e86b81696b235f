"""From a fit to a statement: what it takes over, and what it refuses to call a forecast."""

from types import SimpleNamespace

import numpy as np
import pytest
from registration_cases import METRIC, SIGMA, Z

from forecast.errors import ForecastError
from forecast.noise import seed_noise
from forecast.records import Design, Prediction, Target
from prereg.registering import _factor, power_of, read_targets, refuse_known_targets, state
from prereg.statement import PrimaryRule
from prereg.terms import Terms

TERMS = Terms(claim="it holds", deadline="2999-01-01")


def fake_fit(**changes):
    """What `state` reads of a fit; a real one is registered in the tests of the commands."""
    rng = np.random.default_rng(0)
    values = rng.normal(0.5, SIGMA, 60)
    noise = seed_noise(values.tolist(), [i // 2 for i in range(60)])
    fields = {
        "law": "hill",
        "metric": METRIC,
        "columns": {"n": "n_samples"},
        "loss": "huber",
        "delta": 0.01,
        "link": "identity",
        "interval_method": "profile",
        "seed": 2**60,
        "noise": noise,
        "parameters": (),
        "covariance": (),
        "data_hash": "ab" * 32,
        "run_ids": ("a", "b"),
        "design_hashes": ("cd" * 32, "cd" * 32),
    }
    return SimpleNamespace(**(fields | changes))


def prediction(name, *, width=1.5, n=1000, replicates=2, point=0.5):
    return Prediction(
        target=name,
        design=Design(settings={"n_samples": n}),
        replicates=replicates,
        point=point,
        quantiles={level: point + z * width * SIGMA for level, z in Z.items()},
        curve_sd=SIGMA,
        noise_sd=SIGMA,
    )


def stated(predictions, fit=None, terms=TERMS, **options):
    rng = np.random.default_rng(1)
    joint = rng.normal(0.5, SIGMA, (500, len(predictions)))
    return state(fit or fake_fit(), b"fit", predictions, joint=joint, baselines={}, terms=terms, rng=rng, **options)


def test_a_statement_takes_over_fit_noise_and_predictions():
    statement = stated([prediction("a"), prediction("b", n=2000)])

    assert statement.fit.law == "hill"
    assert str(2**60) == statement.fit.settings["seed"]
    assert ("cd" * 32,) == statement.fit.design_hashes
    assert statement.noise.degrees_of_freedom == 30
    assert statement.rules.primary.test == "replicates"
    assert [0.0, 0.5, 1.0] == [point.curve_error for point in statement.power]
    assert statement.targets[0].quantiles["0.5"] == "0.5"


def test_intervals_narrower_than_the_noise_are_refused():
    with pytest.raises(ForecastError, match="1 intervals are narrower than seed noise alone: a"):
        stated([prediction("a", width=0.5), prediction("b", n=2000)])


def test_an_interval_that_a_bound_cuts_may_be_narrow():
    near_zero = prediction("a", point=0.001)
    cut = near_zero.model_copy(update={"quantiles": {k: max(0.0, v) for k, v in near_zero.quantiles.items()}})
    narrow = cut.model_copy(update={"quantiles": {k: v / 2 for k, v in cut.quantiles.items()}})

    assert stated([narrow, prediction("b", n=2000)]).targets[0].quantiles["0.025"] == "0"


def test_replicates_decide_where_they_are_half_of_the_runs_and_otherwise_single_runs_do():
    few = stated([prediction("a", replicates=1), prediction("b", n=2000)])
    twice = [prediction("a", replicates=2), prediction("b", n=2000, replicates=2)]
    once = [prediction(f"c{i}", n=3000 + i, replicates=1) for i in range(5)]
    half, fewer = stated([*twice, *once[:4]]), stated([*twice, *once])

    assert "single runs" == few.rules.primary.test == fewer.rules.primary.test
    assert "replicates" == half.rules.primary.test
    assert (3, 8, 9) == (few.runs, half.runs, fewer.runs)
    assert half.power != fewer.power


def test_the_power_of_replicates_is_that_of_the_targets_that_are_repeated():
    rule = PrimaryRule(test="replicates")

    assert power_of([3, 3, 3], rule, 9, np.random.default_rng(0)) == power_of(
        [3, 1, 3, 1, 3], rule, 9, np.random.default_rng(0)
    )


def test_no_target_and_an_unknown_quantity_are_refused():
    with pytest.raises(ForecastError, match="at least one"):
        stated([])
    with pytest.raises(ForecastError, match="which is no target"):
        stated([prediction("a"), prediction("b", n=2)], quantities={"c": "mean of 2"})
    with pytest.raises(ForecastError, match="at least one"):
        refuse_known_targets([], fake_fit())


def test_targets_in_the_fit_and_with_outcomes_are_refused():
    design = Design(settings={"n_samples": 5})
    target = Target(target="a", design=design)

    refuse_known_targets([target], fake_fit(), [])
    with pytest.raises(ForecastError, match="are in the fit data"):
        refuse_known_targets([target], fake_fit(design_hashes=(design.hash,)))


def test_the_factor_keeps_covariance_and_variances():
    rng = np.random.default_rng(2)
    mixing = rng.normal(size=(3, 20))
    draws = rng.normal(size=(4000, 3)) @ mixing + 0.1 * rng.normal(size=(4000, 20))
    sd = draws.std(axis=0)
    factor, own = _factor(draws, sd)
    covariance = factor @ factor.T + np.diag(own**2)

    assert factor.shape[1] <= 12
    assert sd**2 == pytest.approx(np.diag(covariance), rel=1e-4)
    assert np.cov(draws.T) == pytest.approx(covariance, abs=0.05 * float(np.max(sd**2)))


@pytest.mark.parametrize("joint", [np.ones((5, 3)), np.full((5, 2), np.nan), np.ones((1, 2))])
def test_joint_draws_of_another_shape_or_without_numbers_are_refused(joint):
    with pytest.raises(ForecastError, match="joint draws"):
        _factor(joint, np.ones(2))


def test_without_noise_and_replicates_no_power_is_stated():
    rng = np.random.default_rng(3)

    assert power_of([1, 1], PrimaryRule(test="single runs"), 0, rng) == ()
    assert len(power_of([1, 1], PrimaryRule(test="single runs"), 5, rng)) == 3


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.json", "[]", "no targets"),
        ("t.json", "{}", "no targets"),
        ("t.json", "[1]", "target 1"),
        ("t.json", '[{"target": "A", "design": {"settings": {"n": 1}}}]', "target 1: target"),
        ("t.json", '[{"target": "a", "target": "b"}]', "stands twice"),
        ("t.json", '[{"target": "a", "design": {"settings": {"n": NaN}}}]', "NaN"),
        ("t.json", "nonsense", "no JSON or TOML"),
        ("t.toml", "targets = 1", "no targets"),
        ("t.toml", "x = [", "no JSON or TOML"),
        ("none.json", None, "cannot be read"),
    ],
)
def test_what_is_no_list_of_targets_is_refused(tmp_path, name, text, message):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)

    with pytest.raises(ForecastError, match=message):
        read_targets(path)
