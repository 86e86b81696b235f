"""Shift or ceiling: the tool says which, or that the data cannot."""

import numpy as np
import pytest
from worlds_of_runs import SIZES, ceiling_truth, hill_truth, simulated_runs

from forecast.dataset import build
from forecast.engine import Loss
from forecast.mechanism import mechanism_of
from forecast.noise import seed_noise


def mechanism(runs):
    data = build(runs, "mutual_knn", {"n": "n_samples", "g": "good_view_fraction"})
    noise = seed_noise(data.values.tolist(), data.owner.tolist())
    return mechanism_of(data, noise, Loss(), np.random.default_rng(0))


@pytest.mark.parametrize(("truth", "verdict"), [(hill_truth, "shift"), (ceiling_truth, "ceiling")])
def test_it_finds_how_g_acts(truth, verdict):
    assert verdict == mechanism(simulated_runs(truth, seed=3)).verdict


def floored_truth(n: float, g: float) -> float:
    """The Hill world of an untrained encoder that scores above chance: bad pairs are worth nothing."""
    return 0.048 + 0.09 / (1 + (100_000 / (n * max(g, 1e-9))) ** 1.2)


def test_a_floor_above_chance_is_not_taken_for_a_ceiling():
    found = mechanism(simulated_runs(floored_truth, noise=0.001, seed=3))

    assert "shift" == found.verdict
    assert found.p_ceiling < 1e-3


def test_it_says_when_the_data_cannot_tell():
    found = mechanism(simulated_runs(hill_truth, sizes=SIZES[:3], shares=(0.0, 0.25, 0.5, 1.0), seed=3))

    assert "undecided" == found.verdict
    assert "cannot tell" in found.sentence


def test_too_few_designs_or_one_g_give_no_test():
    assert mechanism(simulated_runs(sizes=SIZES[:2], shares=(0.0, 0.25, 0.5, 1.0))) is None
    assert mechanism(simulated_runs(shares=(1.0,))) is None


def test_a_true_shift_is_seldom_rejected():
    rejected = sum(mechanism(simulated_runs(hill_truth, seed=s)).p_shift < 0.05 for s in range(20, 32))

    assert rejected <= 2
