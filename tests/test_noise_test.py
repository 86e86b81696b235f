"""The noise-aware tests: worked values, an oracle, and type I error and power by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from forecast.noise_test import replicate_power, replicate_test, seeds_needed, single_run_power, single_run_test

M = 85
PUBLISHED = np.where(np.arange(M) % 2 == 0, 0.0093, -0.0093)


def test_if_sigma_is_0_0096_the_published_error_is_as_good_as_seed_noise():
    result = single_run_test(PUBLISHED, sigma=0.0096, df=M)

    assert pytest.approx(result.f, abs=5e-4) == 0.938
    assert result.label == "as good"
    assert not result.bias_detected


def test_if_0_0096_is_a_rerun_difference_the_published_error_is_inconclusive_with_bias():
    result = single_run_test(PUBLISHED, sigma=0.0096 / math.sqrt(2), df=M)

    assert pytest.approx(result.f, abs=5e-4) == 1.877
    assert pytest.approx(result.p_value, abs=5e-4) == 0.002
    assert pytest.approx(result.rmse / result.sigma, abs=5e-3) == 1.37
    assert result.label == "inconclusive"
    assert result.bias_detected


def test_the_interval_of_the_laws_error_inverts_scipys_noncentral_f():
    result = single_run_test(PUBLISHED[:30], sigma=0.006, df=40)

    assert pytest.approx(stats.ncf.cdf(result.f, 30, 40, 30 * result.lower**2), abs=1e-6) == 0.95
    assert pytest.approx(stats.ncf.cdf(result.f, 30, 40, 30 * result.upper**2), abs=1e-6) == 0.05
    assert stats.f.sf(result.f, 30, 40) == pytest.approx(result.p_value)


def test_the_replicate_test_is_a_t_interval_of_u():
    errors = [np.array([0.1, 0.3]), np.array([-0.2, 0.1, 0.0]), np.array([0.05, -0.05])]
    u = []
    for group in errors:
        variance = np.var(group, ddof=1)
        u.append(np.mean(group) ** 2 - variance / len(group) - variance)
    expected = stats.t.interval(0.9, 2, loc=np.mean(u), scale=stats.sem(u))
    result = replicate_test(errors)

    assert expected == pytest.approx((result.lower, result.upper))
    assert np.mean(u) == pytest.approx(result.estimate)


def test_a_large_error_is_worse_and_not_significant_is_never_a_pass():
    rng = np.random.default_rng(1)
    noise = [rng.normal(0, 1, 3) for _ in range(20)]

    assert replicate_test(noise).label == "as good"
    assert replicate_test([group + 5 for group in noise]).label == "worse"
    assert replicate_test(noise[:2]).label == "inconclusive"


@pytest.mark.parametrize(
    "errors", [[], [np.array([1.0, 2.0])], [np.array([1.0]), np.array([1.0, 2.0])]], ids=["none", "one", "single"]
)
def test_too_few_targets_or_replicates_are_refused(errors):
    with pytest.raises(ValueError, match="at least 2"):
        replicate_test(errors)


def test_identical_replicates_give_no_verdict():
    with pytest.raises(ValueError, match="seed had no effect"):
        replicate_test([np.array([0.1, 0.1]), np.array([0.2, 0.2])])


@pytest.mark.parametrize(("sigma", "df"), [(0.0, 5), (-1.0, 5), (1.0, 0), (math.nan, 5)])
def test_a_single_run_test_without_noise_is_refused(sigma, df):
    with pytest.raises(ValueError, match="sigma > 0"):
        single_run_test(PUBLISHED, sigma=sigma, df=df)


def test_heavy_tails_are_reported():
    rng = np.random.default_rng(2)

    assert single_run_test(stats.t.rvs(2.2, size=200, random_state=rng), sigma=1.0, df=50).kurtosis_high
    assert not single_run_test(rng.normal(size=200), sigma=1.0, df=50).kurtosis_high


def noise_of(kind, rng, shape):
    """Noise of SD 1 on average: (trials, targets, replicates)."""
    if kind == "t5":
        return rng.standard_t(5, shape) / math.sqrt(5 / 3)
    scale = np.ones(shape[1]) if kind == "normal" else np.geomspace(0.4, 2.5, shape[1])
    return rng.standard_normal(shape) * scale[:, None]


def scale_of(kind, targets):
    return np.geomspace(0.4, 2.5, targets) if kind == "heteroscedastic" else np.ones(targets)


def share(kind, b, *, targets, replicates, rng, trials=1000, label="as good"):
    """How often `label` is said when the law errs by b x each target's own noise, signs alternating."""
    bias = b * scale_of(kind, targets) * np.where(np.arange(targets) % 2, 1, -1)
    errors = noise_of(kind, rng, (trials, targets, replicates)) + bias[:, None]
    return np.mean([replicate_test(list(trial)).label == label for trial in errors])


@pytest.mark.parametrize("kind", ["normal", "t5", "heteroscedastic"])
@pytest.mark.parametrize(("targets", "replicates"), [(20, 2), (85, 3)])
def test_at_the_margin_as_good_is_said_at_most_as_often_as_alpha(kind, targets, replicates):
    rng = np.random.default_rng(3)
    error = share(kind, 1.0, targets=targets, replicates=replicates, rng=rng)

    assert error <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 1000)


@pytest.mark.parametrize(("kind", "most"), [("normal", 0.08), ("t5", 0.11), ("heteroscedastic", 0.08)])
def test_at_the_margin_worse_is_said_somewhat_more_often_than_alpha(kind, most):
    rng = np.random.default_rng(4)
    error = share(kind, 1.0, targets=85, replicates=2, rng=rng, label="worse")

    assert error <= most


@pytest.mark.parametrize(("kind", "least"), [("normal", 0.99), ("t5", 0.95), ("heteroscedastic", 0.75)])
def test_a_perfect_law_passes_with_85_targets_of_two_replicates(kind, least):
    rng = np.random.default_rng(5)

    assert share(kind, 0.0, targets=85, replicates=2, rng=rng, trials=600) >= least


def test_pooling_the_variance_would_break_the_level_where_noise_differs():
    """The twin: the same test with one variance for all targets, which the reason above forbids."""
    rng = np.random.default_rng(6)
    targets, replicates, trials = 40, 3, 300
    scale = scale_of("heteroscedastic", targets)
    bias = np.where(scale < 1, 1.6, 0.0)  # mean(b^2) is above the margin of the noise that these targets have
    errors = noise_of("heteroscedastic", rng, (trials, targets, replicates)) + bias[:, None]
    beyond = np.mean(bias**2) - np.mean(scale**2)

    def pooled(trial):
        variance = np.mean(np.var(trial, axis=1, ddof=1))
        u = np.mean(trial, axis=1) ** 2 - variance / replicates - variance
        return np.mean(u) + stats.t.ppf(0.95, targets - 1) * stats.sem(u) < 0

    own = np.mean([replicate_test(list(trial)).label == "as good" for trial in errors])
    together = np.mean([pooled(trial) for trial in errors])
    assert beyond < 0
    assert own != together


def test_the_f_test_keeps_its_level_under_normal_noise_and_has_the_power_that_it_states():
    rng = np.random.default_rng(7)
    labels = {0.0: [], 1.0: []}
    for b, said in labels.items():
        for _ in range(600):
            sigma = math.sqrt(rng.chisquare(30) / 30)
            said.append(single_run_test(rng.normal(b, 1, 40), sigma=sigma, df=30).label)

    assert labels[1.0].count("as good") / 600 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 600)
    assert single_run_power(40, df=30, curve_error=0.0) == pytest.approx(labels[0.0].count("as good") / 600, abs=0.05)
    assert pytest.approx(single_run_power(40, df=30, curve_error=1.0), abs=1e-6) == 0.05


def test_the_stated_power_of_the_replicate_test_is_what_happens():
    rng = np.random.default_rng(8)
    stated = replicate_power([3] * 20, curve_error=0.0, rng=rng)
    happened = share("normal", 0.0, targets=20, replicates=3, rng=rng, trials=600)

    assert happened == pytest.approx(stated, abs=0.04)


def test_power_grows_with_replicates_and_falls_with_the_laws_error():
    rng = np.random.default_rng(9)
    few, many = (replicate_power([n] * 20, curve_error=0.3, rng=rng) for n in (2, 5))

    assert few < many
    assert replicate_power([5] * 20, curve_error=0.9, rng=rng) < many


def test_inconclusive_comes_with_the_seeds_that_would_decide():
    rng = np.random.default_rng(3)
    result = replicate_test([rng.normal(0, 1, 2) for _ in range(8)])
    needed = seeds_needed(result, rng=rng)

    assert result.label == "inconclusive"
    assert needed is not None
    assert replicate_power([needed] * 8, curve_error=result.curve_error, rng=rng) > 0.7
    assert seeds_needed(single_run_test(PUBLISHED, sigma=0.006, df=M), rng=rng) is None
