"""Weights and priors: what they mean, in closed form, and what is refused."""

import numpy as np
import pytest
from worlds_of_runs import run, simulated_runs

from forecast.errors import ForecastError
from forecast.fitted import Fit
from forecast.fitting import fit
from forecast.laws.custom import read_priors
from forecast.prediction import predict
from forecast.records import Design, Run, Target

LINE = "A + B*n"
WIDE = {"A": (-10.0, 10.0), "B": (-10.0, 10.0)}


def weighed(runs: list[Run], weights) -> list[Run]:
    return [
        r.model_copy(update={"design": Design(settings={**r.design.settings, "precision_of_run": float(w)})})
        for r, w in zip(runs, weights, strict=True)
    ]


def fitted(runs, law="hill", **options) -> Fit:
    return fit(runs, metric="mutual_knn", law=law, rng=np.random.default_rng(0), **options)


def values(f: Fit) -> list[float]:
    return [e.value for e in f.parameters]


def test_weight_two_is_a_run_twice():
    runs = simulated_runs(noise=0.004)
    weights = np.ones(len(runs))
    weights[[3, 20]] = 2.0
    twice = [*runs, *[runs[i].model_copy(update={"run_id": f"again-{i}"}) for i in (3, 20)]]
    one, other = fitted(weighed(runs, weights), weights="precision_of_run"), fitted(twice)

    assert values(other) == pytest.approx(values(one), rel=1e-6)
    assert other.chosen.loss == pytest.approx(one.chosen.loss * weights.mean(), rel=1e-8)
    assert (len(runs), len(runs) + 2) == (one.noise.runs, other.noise.runs)


def test_only_the_ratios_of_weights_matter():
    runs = simulated_runs()
    weights = np.random.default_rng(3).uniform(0.5, 2.0, len(runs))
    small, plain, large = (fitted(weighed(runs, weights * f), weights="precision_of_run") for f in (1e-6, 1.0, 1e6))

    for f in (small, large):
        assert values(plain) == pytest.approx(values(f), rel=1e-6)
        assert plain.noise.sigma == pytest.approx(f.noise.sigma)
        assert plain.chosen.sigma == pytest.approx(f.chosen.sigma)


def test_runs_of_one_design_stay_one_design_however_they_are_weighed():
    runs = simulated_runs()
    weights = np.random.default_rng(3).uniform(0.5, 2.0, len(runs))
    f = fitted(weighed(runs, weights), weights="precision_of_run")

    assert 35 == f.noise.designs
    assert 18 == f.noise.degrees_of_freedom
    assert not any("precision_of_run" in warning for warning in f.warnings)


@pytest.mark.parametrize("wrong", [0.0, -1.0, None, "much"])
def test_what_is_no_weight_is_refused(wrong):
    runs = weighed(simulated_runs(), np.ones(53))
    settings = {**runs[5].design.settings, "precision_of_run": wrong}
    runs[5] = runs[5].model_copy(update={"design": Design(settings=settings)})

    with pytest.raises(ForecastError, match=f"weight 'precision_of_run' of run {runs[5].run_id}"):
        fitted(runs, weights="precision_of_run")
    with pytest.raises(ForecastError, match="'unknown'"):
        fitted(runs, weights="unknown")


def line_runs() -> list[Run]:
    rng = np.random.default_rng(1)
    return [
        run(f"r{n}-{k}", n, None, 0.1 + 0.02 * n + float(rng.normal(0, 0.01)), seed=k)
        for n in range(1, 9)
        for k in range(2)
    ]


def test_a_prior_gives_the_conjugate_normal_posterior():
    runs = line_runs()
    free = fitted(runs, LINE, bounds=WIDE)
    held = fitted(runs, LINE, bounds=WIDE, priors={"A": (0.2, 0.01), "B": (0.0, 0.005)})
    n = np.array([r.design.settings["n_samples"] for r in runs])
    y = np.array([r.evaluations[0].value for r in runs])
    design = np.column_stack([np.ones(16), n])
    variance, prior = free.chosen.sigma**2, np.diag([0.01**-2, 0.005**-2])
    information = design.T @ design / variance + prior
    mean = np.linalg.solve(information, design.T @ y / variance + prior @ [0.2, 0.0])
    error = np.sqrt(np.diag(np.linalg.inv(information / variance))) * held.chosen.sigma / variance

    assert mean == pytest.approx(values(held), rel=1e-6)
    assert variance == pytest.approx(held.chosen.prior_variance)
    assert error == pytest.approx([e.standard_error for e in held.parameters], rel=1e-6)


def test_a_wide_prior_changes_nothing_and_a_narrow_one_everything():
    runs = line_runs()
    free, wide, narrow = (
        fitted(runs, LINE, bounds=WIDE, priors=p) for p in (None, {"A": (0.5, 1e6)}, {"A": (0.5, 1e-6)})
    )

    assert values(free) == pytest.approx(values(wide), rel=1e-6)
    assert 0.5 == pytest.approx(values(narrow)[0], abs=1e-5)


def test_a_prior_is_recorded_travels_with_the_fit_and_narrows_its_forecast(tmp_path):
    few = simulated_runs(sizes=(8000, 16_000, 32_000, 64_000))
    free, held = fitted(few), fitted(few, priors={"A": (0.12, 0.01)})
    held.save(tmp_path / "fit.json")
    loaded = Fit.load(tmp_path / "fit.json")
    target = [Target(target="t", design=Design(settings={"n_samples": 1e6, "good_view_fraction": 1.0}))]
    width = []
    for f in (free, loaded):
        q = predict(f, target, rng=np.random.default_rng(0))[0].quantiles
        width.append(q["0.975"] - q["0.025"])

    assert held == loaded
    assert (0.12, 0.01) == (loaded.parameters[0].prior_mean, loaded.parameters[0].prior_sd)
    assert width[1] < 0.7 * width[0]
    assert any("A of hill has the prior 0.12 +- 0.01" in reason for reason in held.reasons)


def test_data_that_disagree_with_the_prior_are_a_warning():
    held = fitted(line_runs(), LINE, bounds=WIDE, priors={"A": (0.5, 0.02)})

    assert held.parameters[0].drift < -2
    assert any("data and prior disagree" in warning for warning in held.warnings)


@pytest.mark.parametrize(
    ("law", "prior", "match"),
    [
        ("hill", {"Q": (0.1, 0.1)}, "a prior is given for 'Q'"),
        ("hill", {"kappa": (2.0, 0.1)}, "give a mean inside"),
        ("auto", {"A": (0.1, 0.1)}, "name one law"),
    ],
)
def test_a_prior_that_fits_no_parameter_is_refused(law, prior, match):
    with pytest.raises(ForecastError, match=match):
        fitted(simulated_runs(), law, priors=prior)


def test_priors_are_read_and_refused():
    assert {"A": (0.5, 0.1), "b": (-1.0, 2.0)} == read_priors(["A=0.5:0.1,b=-1:2"])
    for wrong in ("A", "A=1", "A=1:0", "A=1:-2", "A=x:1", "=0:1", "A=nan:1", "A=0:inf"):
        with pytest.raises(ForecastError, match="prior"):
            read_priors([wrong])
