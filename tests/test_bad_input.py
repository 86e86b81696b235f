"""Bad data: each kind is refused with the reason, or fitted with a warning that says what cannot be said."""

import math

import numpy as np
import pytest
from pydantic import ValidationError
from worlds_of_runs import CHANCE, run, simulated_runs

from forecast.errors import ForecastError
from forecast.fitted import Fit
from forecast.fitting import fit
from forecast.records import Design, Metric, Run


def fitted(runs, law="hill", **options) -> Fit:
    return fit(runs, metric="mutual_knn", law=law, rng=np.random.default_rng(0), **options)


def renamed(runs: list[Run], names, **settings) -> list[Run]:
    return [
        r.model_copy(update={"run_id": name, "design": Design(settings={**r.design.settings, **settings})})
        for r, name in zip(runs, names, strict=True)
    ]


def some(count: int, value=lambda i: 0.04 + 0.01 * i, n=lambda i: 1000 * 2**i, g=lambda i: 1.0) -> list[Run]:
    return [run(f"r{i}", n(i), g(i), value(i)) for i in range(count)]


@pytest.mark.parametrize(
    ("runs", "law", "match"),
    [
        (some(4), "hill", "too few designs: 4 for 4 parameters; give more designs, or fix parameters"),
        (some(6, n=lambda i: 1000, g=lambda i: i / 5), "hill", "all runs have n = 1000"),
        (some(6, value=lambda i: 0.05, g=lambda i: i / 5), "hill", "outcome is constant"),
        (some(6), "A - B*z**(-b)", "uses no column|has the setting"),
        (some(6), "A - B*n._real", "forbidden"),
        (some(6), "A - B*__class__", "forbidden"),
        ([], "auto", "no runs to fit"),
    ],
)
def test_hopeless_data_are_refused(runs, law, match):
    with pytest.raises(ForecastError, match=match):
        fitted(runs, law)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -0.1, 1.2])
def test_nan_and_outcomes_outside_the_metric_s_bounds_never_become_a_run(wrong):
    with pytest.raises(ValidationError, match=r"finite|bound"):
        run("r", 1000, 0.5, wrong)


def test_one_level_of_g_is_said_and_one_of_n_refused():
    same = fitted(simulated_runs(shares=(1.0,)), "hill-floor", fixed={"kappa": 0.1})

    assert any("all runs have g = 1: nothing can be said of other values of g" in w for w in same.warnings)
    with pytest.raises(ForecastError, match="add runs at another n"):
        fitted(simulated_runs(sizes=(8000,)))


def test_outcomes_at_chance_and_at_an_end_of_the_metric_are_warned_of():
    rng = np.random.default_rng(0)
    low = [run(f"{i}-{j}", 1000 * 2**i, j / 3, CHANCE - 0.002 * rng.random()) for i in range(5) for j in range(4)]
    metric = Metric(name="mutual_knn", chance=0.0, lower=0.0, upper=1.0)
    ends = simulated_runs(lambda n, g: min(max(0.3 * g * n / 64_000, 0.0), 1.0), noise=0.0, metric=metric)

    assert any("at or below chance" in warning for warning in fitted(low).warnings)
    said = fitted(ends).warnings
    assert any("lie at the metric's end 0: their error is one-sided" in warning for warning in said)
    assert any("lie at the metric's end 1: their error is one-sided" in warning for warning in said)
    assert not any("metric's end" in warning for warning in fitted(simulated_runs()).warnings)


def test_few_spare_designs_are_a_warning():
    f = fitted(simulated_runs(sizes=(8000, 64_000, 512_000), shares=(0.0, 1.0)))

    assert any("only 2 more design(s) than parameters of hill" in warning for warning in f.warnings)


def test_a_run_id_that_stands_twice_is_refused():
    runs = simulated_runs()

    with pytest.raises(ForecastError, match="the run id 'r0-0-0' stands twice; checkpoints of one training"):
        fitted([*runs, runs[0].model_copy(update={"design": runs[5].design})])


def test_rows_that_are_checkpoints_of_one_training_are_warned_of():
    runs = simulated_runs(replicates=1)
    steps = [f"train-{r.design.settings['good_view_fraction']}/step-{r.design.settings['n_samples']}" for r in runs]
    by_id = fitted(renamed(runs, steps)).warnings
    plain = [r.run_id for r in runs]
    shared = [*renamed(runs[:5], plain[:5], run_name="jepa-a"), *renamed(runs[5:], plain[5:], run_name="jepa-b")]
    by_name = fitted(shared).warnings
    several = [
        r.model_copy(update={"design": Design(settings={**r.design.settings, "step": i % 4})})
        for i, r in enumerate(runs)
    ]
    by_step = fitted(several).warnings

    assert any("35 rows look like checkpoints of 5 training(s)" in warning for warning in by_id)
    assert any("35 rows look like checkpoints of 2 training(s), such as 'jepa-" in warning for warning in by_name)
    assert any("runs differ in 'step'" in warning for warning in by_step)
    assert not any("checkpoints" in warning for warning in fitted(simulated_runs()).warnings)
