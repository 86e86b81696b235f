"""Plans: within the budget, where the forecast is least known, better than spending it elsewhere."""

import itertools

import numpy as np
import pytest
from worlds_of_runs import simulated_runs

from forecast.errors import ForecastError
from forecast.fitting import fit
from forecast.plan import Cost, cost_of, plan, seeds_for_check
from forecast.records import Counters

TARGETS = {"n": np.array([2e6, 2e6]), "g": np.array([0.5, 1.0])}


@pytest.fixture(scope="module")
def fitted():
    return fit(simulated_runs(), metric="mutual_knn", law="hill", rng=np.random.default_rng(0))


def grid(sizes, shares=(0.0, 0.5, 1.0)):
    points = np.array(list(itertools.product(sizes, shares)))
    return {"n": points[:, 0], "g": points[:, 1]}


def test_a_plan_keeps_to_its_budget_and_narrows_the_forecast(fitted):
    cost = Cost("gpuh", np.log(1e-5), 1.0)
    planned = plan(fitted, grid([8e3, 64e3, 1e6]), TARGETS, budget=60.0, cost=cost)
    after = [p.curve_sd_after for p in planned]

    assert 0 < sum(p.cost for p in planned) <= 60.0
    assert after == sorted(after, reverse=True)
    assert all(p.runs >= 1 for p in planned)


def test_for_the_same_cost_it_prefers_large_runs_for_a_forecast_beyond(fitted):
    planned = plan(fitted, grid([8e3, 64e3, 1e6]), TARGETS, budget=6, cost=Cost("runs", 0.0, 0.0))

    assert {1e6} == {p.columns["n"] for p in planned}
    assert any(p.runs >= 2 for p in planned)


def test_a_plan_beats_a_random_one_by_refitted_information(fitted):
    component = fitted.chosen
    law, inner = component.rebuilt(), component.inner
    goal = law.value_and_jacobian(TARGETS, inner)[1][0]

    def variance(n, g):
        j = law.value_and_jacobian({"n": np.array(n), "g": np.array(g)}, inner)[1][0]
        information = np.linalg.inv(np.array(component.covariance)) + j.T @ j / fitted.noise.sigma**2
        return np.mean(np.einsum("ti,ij,tj->t", goal, np.linalg.inv(information), goal))

    candidates = grid([8e3, 64e3, 1e6])
    planned = plan(fitted, candidates, TARGETS, budget=6, cost=Cost("runs", 0.0, 0.0))
    rows = [(p.columns["n"], p.columns["g"]) for p in planned for _ in range(p.runs)]
    chosen = variance(*zip(*rows, strict=True))
    rng = np.random.default_rng(0)
    others = []
    for _ in range(100):
        index = rng.integers(len(candidates["n"]), size=6)
        others.append(variance(candidates["n"][index], candidates["g"][index]))

    assert chosen**0.5 == pytest.approx(planned[-1].curve_sd_after, rel=0.02)
    assert chosen < np.quantile(others, 0.05)


def test_costs_come_from_the_ledger():
    runs = [
        r.model_copy(update={"counters": Counters(gpu_s=0.036 * r.design.settings["n_samples"])})
        for r in simulated_runs()
    ]
    cost = cost_of(runs, "gpuh")

    assert 1.0 == pytest.approx(cost.slope)
    assert 10.0 == pytest.approx(float(cost.of(np.array(1e6))))
    with pytest.raises(ForecastError, match="cpu_s"):
        cost_of(runs, "cpuh")
    with pytest.raises(ForecastError, match="unit"):
        cost_of(runs, "weeks")


def test_a_budget_below_the_cheapest_run_is_refused(fitted):
    with pytest.raises(ForecastError, match="cheapest"):
        plan(fitted, grid([1e6]), TARGETS, budget=1.0, cost=Cost("gpuh", np.log(1e-5), 1.0))


def test_a_surer_curve_needs_fewer_seeds():
    rng = np.random.default_rng(0)
    few = seeds_for_check(np.full(30, 0.1), 1.0, rng=rng)
    many = seeds_for_check(np.full(30, 0.8), 1.0, rng=rng)

    assert few < (many or 99)
    assert seeds_for_check(np.full(30, 3.0), 1.0, rng=rng) is None
