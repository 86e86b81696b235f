"""A user's own formula, fixed parameters and links, through the same fit."""

import numpy as np
import pytest
from worlds_of_runs import simulated_runs

from forecast.errors import ForecastError
from forecast.fitting import fit
from forecast.laws.custom import read_bounds
from forecast.prediction import predict
from forecast.records import Design, Metric, Target

FORMULA = "c + (A-c)/(1+(n50/(n*(g+k*(1-g))))**b)"
BOUNDS = {"A": (0.0, 1.0), "n50": (1.0, 1e9), "k": (1e-6, 1.0), "b": (0.01, 8.0)}


def fitted(law="hill", **options):
    return fit(simulated_runs(), metric="mutual_knn", law=law, rng=np.random.default_rng(0), **options)


def test_the_issue_s_formula_gives_the_fit_of_the_law_of_the_same_form():
    own, ours = fitted(FORMULA, bounds=BOUNDS), fitted("hill")

    assert ours.chosen.loss == pytest.approx(own.chosen.loss, rel=1e-4)
    assert {"A", "n50", "k", "b"} == {e.name for e in own.parameters}
    assert "c" in own.chosen.constants
    point = [
        predict(f, [Target(target="t", design=Design(settings={"n_samples": 1e6, "good_view_fraction": 0.5}))],
                rng=np.random.default_rng(0))[0].point
        for f in (own, ours)
    ]  # fmt: skip
    assert point[1] == pytest.approx(point[0], rel=1e-3)


@pytest.mark.parametrize(
    ("formula", "options", "match"),
    [
        ("A*n.real", {}, "forbidden"),
        ("__import__('os')*A", {}, "formula"),
        ("n*2+1", {}, "no free parameter"),
        ("A+B*z", {}, "uses no column"),
        ("A-B*n**(-b)", {"bounds": {"C": (0, 1)}}, "no parameter"),
        ("A-B*n**(-b)", {"fixed": {"Q": 1.0}}, "no parameter"),
        ("hill", {"bounds": {"A": (0, 1)}}, "bounds are for a formula"),
        ("hill", {"link": "probit"}, "no link"),
        ("hill", {"intervals": "magic"}, "no interval method"),
    ],
)
def test_what_cannot_be_read_is_refused(formula, options, match):
    with pytest.raises(ForecastError, match=match):
        fitted(formula, **options)


def test_bounds_are_read_and_refused():
    assert {"A": (0.0, 1.0), "b": (-1e12, 2.0)} == read_bounds(["A=0:1,b=:2"])
    for wrong in ("A", "A=1", "A=1:0", "A=x:1", "=0:1"):
        with pytest.raises(ForecastError, match="bounds"):
            read_bounds([wrong])


def test_a_fixed_parameter_stays_and_the_others_move():
    held = fitted("hill", fixed={"kappa": 0.5})

    assert {"A", "n50", "b"} == {e.name for e in held.parameters}
    assert 0.5 == held.chosen.constants["kappa"]
    assert held.chosen.loss > fitted("hill").chosen.loss


def test_a_link_is_undone_in_the_prediction():
    plain, logit = fitted("hill"), fitted("hill", link="logit")
    place = [Target(target="t", design=Design(settings={"n_samples": 2e5, "good_view_fraction": 0.5}))]
    one, other = (predict(f, place, rng=np.random.default_rng(0))[0] for f in (plain, logit))

    assert one.point == pytest.approx(other.point, rel=0.02)
    assert one.noise_sd == pytest.approx(other.noise_sd, rel=0.4)
    assert other.quantiles["0.025"] < other.point < other.quantiles["0.975"]


def test_auto_scores_every_link_on_held_out_designs():
    chosen = fitted("hill", link="auto")

    assert {"identity", "log", "logit", "cloglog"} == set(chosen.link_scores)
    assert chosen.link == max(chosen.link_scores, key=chosen.link_scores.get)


def test_zero_and_one_have_no_logit():
    metric = Metric(name="mutual_knn", chance=0.0, lower=0.0, upper=1.0)
    runs = simulated_runs(lambda n, g: 0.2 + 0.1 * g if n > 8000 else 0.0, noise=0.0, metric=metric)
    with pytest.raises(ForecastError, match="strictly between"):
        fit(runs, metric="mutual_knn", law="hill", link="logit", rng=np.random.default_rng(0))
