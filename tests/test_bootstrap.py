"""Refits of a bootstrap: from scouts' minima, as good as from every warm start."""

from dataclasses import replace

import numpy as np
import pytest

from forecast.bootstrap import SCOUTS, refitted
from forecast.engine import Loss, minimise, starts
from forecast.laws.general import GENERAL
from forecast.laws.law import Scale

HUBER = Loss("huber", 0.01)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(3)
    columns = {"N": 10 ** rng.uniform(7, 10, 60), "D": 10 ** rng.uniform(9, 11, 60)}
    loss = 1.8 + 480 * columns["N"] ** -0.35 + 2100 * columns["D"] ** -0.37
    ranges = {k: (float(v.min()), float(v.max())) for k, v in columns.items()}
    law = replace(GENERAL["chinchilla"](Scale(float(loss.min()), float(loss.max()), ranges=ranges)), link="log")
    y = np.log(loss) + 0.01 * rng.standard_t(3, 60)
    found = minimise(law, columns, y, np.ones(60), starts(law, 64, rng), loss=HUBER)
    return law, columns, y, found.inner[found.best]


def drawn(count):
    return np.random.default_rng(0).multinomial(60, np.full(60, 1 / 60), size=count).astype(float)


def test_each_refit_is_the_minimum_that_its_own_descent_from_the_warm_start_finds(problem):
    law, columns, y, best = problem
    weights = drawn(4 * SCOUTS)
    found = refitted(law, columns, y, weights, best[None], loss=HUBER)
    alone = minimise(law, columns, y, weights, np.tile(best, (len(weights), 1)), loss=HUBER, near=True)

    assert found.converged.mean() > 0.99
    assert len(weights) == len(found.loss) == len(found.inner)
    assert np.all(found.loss <= alone.loss * (1 + 1e-6))


def test_a_warm_start_far_off_costs_nothing_in_the_minima_where_a_good_one_is_given_too(problem):
    law, columns, y, best = problem
    weights = drawn(3 * SCOUTS)
    one = refitted(law, columns, y, weights, best[None], loss=HUBER)
    two = refitted(law, columns, y, weights, np.array([best + 0.5, best]), loss=HUBER)

    assert np.all(two.loss <= one.loss * (1 + 1e-6))


def test_few_draws_are_all_refitted_from_every_warm_start(problem):
    law, columns, y, best = problem
    found = refitted(law, columns, y, drawn(5), np.array([best, best]), loss=HUBER)

    assert (5, 5) == found.inner.shape
    assert found.converged.all()
