"""Sensitivity is said in words: one design that carries the forecast, or a loss that changes it."""

import numpy as np
from worlds_of_runs import run, simulated_runs

from forecast.dataset import build
from forecast.engine import Loss
from forecast.estimation import fit_law
from forecast.laws.registry import build_law
from forecast.noise import seed_noise
from forecast.sensitivity import sensitivity_of


def said(runs) -> list[str]:
    data = build(runs, "mutual_knn", {"n": "n_samples", "g": "good_view_fraction"})
    noise = seed_noise(data.values.tolist(), data.owner.tolist())
    best = fit_law(build_law("hill", data.scale), data, noise=noise, loss=Loss(), rng=np.random.default_rng(0))
    return sensitivity_of(best, data, Loss())


def test_an_even_study_has_nothing_to_say():
    assert [] == said(simulated_runs(noise=0.001, seed=4))


def test_a_lone_far_design_that_carries_the_forecast_is_named():
    runs = [*simulated_runs(), run("far", 4_096_000, 1.0, 0.16)]
    found = said(runs)

    assert any("hangs on the design n = 4.096e+06, g = 1" in sentence for sentence in found)


def test_an_outlier_shows_in_the_other_loss():
    found = said([*simulated_runs(), run("wild", 512_000, 0.9, 0.2)])

    assert any("huber loss" in sentence for sentence in found)
