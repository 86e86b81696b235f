"""Scores against integrals and definitions outside the project."""

import numpy as np
import pytest
from scipy import integrate, stats

from forecast.scoring import coverage, crps_normal, crps_sample, crps_student, interval_score, pinball, wis


def integral(cdf, y):
    low = integrate.quad(lambda x: cdf(x) ** 2, -200, y)[0]
    return low + integrate.quad(lambda x: (1 - cdf(x)) ** 2, y, 200)[0]


@pytest.mark.parametrize("y", [-1.0, 0.4, 3.0])
def test_crps_is_the_integral_of_its_definition(y):
    one = np.array([y])
    normal = crps_normal(one, np.array([0.3]), np.array([0.7]))
    student = crps_student(one, np.array([0.3]), np.array([0.7]), 4)

    assert integral(stats.norm(0.3, 0.7).cdf, y) == pytest.approx(normal[0], abs=1e-6)
    assert integral(stats.t(4, 0.3, 0.7).cdf, y) == pytest.approx(student[0], abs=1e-6)


def test_crps_of_draws_is_the_mean_absolute_difference_form():
    rng = np.random.default_rng(0)
    draws, y = rng.normal(size=(50, 2)), np.array([0.2, -1.0])
    pairs = np.abs(draws[:, None] - draws[None]).mean(axis=(0, 1))
    expected = np.abs(draws - y).mean(axis=0) - pairs / 2

    assert expected == pytest.approx(crps_sample(y, draws))


def test_wis_is_the_weighted_sum_of_interval_scores():
    """Bracher et al. (2021), eq. 1: (|y - m| / 2 + sum alpha_k / 2 IS_k) / (K + 1/2)."""
    y, q = np.array([0.9]), {0.025: 0.1, 0.25: 0.3, 0.5: 0.45, 0.75: 0.6, 0.975: 0.8}
    quantiles = {k: np.array([v]) for k, v in q.items()}
    by_hand = 0.5 * abs(0.9 - 0.45)
    for alpha, low, high in ((0.05, 0.1, 0.8), (0.5, 0.3, 0.6)):
        by_hand += alpha / 2 * interval_score(y, np.array([low]), np.array([high]), alpha)[0]

    assert by_hand / 2.5 == pytest.approx(wis(y, quantiles)[0])


def test_lopsided_levels_are_refused():
    with pytest.raises(ValueError, match="symmetric"):
        wis(np.array([1.0]), {0.1: np.array([0.0]), 0.5: np.array([1.0])})


def test_pinball_is_smallest_at_the_quantile():
    y = np.random.default_rng(1).normal(size=20_000)
    losses = {q: pinball(y, np.full(len(y), q), 0.9).mean() for q in (1.0, stats.norm.ppf(0.9), 1.6)}

    assert stats.norm.ppf(0.9) == min(losses, key=losses.get)


def test_coverage_counts_closed_intervals_and_refuses_none():
    y = np.array([0.0, 1.0, 2.0])

    assert pytest.approx(2 / 3) == coverage(y, np.zeros(3), np.ones(3))
    with pytest.raises(ValueError, match="no outcomes"):
        coverage(np.array([]), np.array([]), np.array([]))


def test_a_student_needs_more_than_one_degree_of_freedom():
    with pytest.raises(ValueError, match="degree"):
        crps_student(np.array([0.0]), np.array([0.0]), np.array([1.0]), 1)
