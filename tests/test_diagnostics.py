"""Residual diagnostics are statsmodels' own on a law that is linear, and say nothing where all is well."""

import numpy as np
import pytest
import statsmodels.api as sm
from statsmodels.stats.diagnostic import het_breuschpagan
from worlds_of_runs import run, simulated_runs

from forecast.fitting import fit

LINE = "A + B*log(n)"
WIDE = {"A": (-10.0, 10.0), "B": (-10.0, 10.0)}


def line_runs(spread=lambda n: 0.01, outlier=0.0, seed=1):
    rng = np.random.default_rng(seed)
    sizes = np.geomspace(1, 1000, 25)
    values = [0.2 + 0.05 * np.log(n) + spread(n) * float(rng.normal()) for n in sizes]
    values[-1] += outlier
    return [run(f"r{i}", n, None, v) for i, (n, v) in enumerate(zip(sizes, values, strict=True))]


def fitted(runs):
    return fit(runs, metric="mutual_knn", law=LINE, bounds=WIDE, rng=np.random.default_rng(0))


def plain(runs):
    n = np.array([r.design.settings["n_samples"] for r in runs])
    y = np.array([r.evaluations[0].value for r in runs])
    return n, sm.OLS(y, sm.add_constant(np.log(n))).fit()


def test_on_a_line_they_are_those_of_statsmodels():
    runs = line_runs()
    found, (_, oracle) = fitted(runs).diagnostics, plain(runs)
    influence = oracle.get_influence()
    robust = oracle.HC3_se / oracle.bse

    assert het_breuschpagan(oracle.resid, oracle.model.exog)[1] == pytest.approx(found.breusch_pagan, rel=1e-4)
    assert sm.stats.jarque_bera(oracle.resid)[1] == pytest.approx(found.jarque_bera, rel=1e-4)
    assert influence.cooks_distance[0].max() == pytest.approx(found.cook, rel=1e-4)
    assert robust.max() == pytest.approx(found.robust_ratio, rel=1e-4)
    assert oracle.params[1] * np.log(2) == pytest.approx(found.line.per_doubling)
    assert oracle.HC3_se[1] * np.log(2) == pytest.approx(found.line.standard_error)


def test_an_even_line_has_nothing_to_say():
    f = fitted(line_runs())

    assert [] == f.diagnostics.sentences("formula")
    assert any("rises by 0.03" in reason and "HC3" in reason for reason in f.reasons)


def test_a_spread_that_grows_an_outlier_and_one_that_pulls_are_named():
    uneven = fitted(line_runs(lambda n: 0.0005 * n**0.7, seed=7)).warnings
    outlier = fitted(line_runs(outlier=0.4)).warnings

    assert any("Breusch-Pagan" in warning for warning in uneven)
    assert any("Jarque-Bera" in warning for warning in outlier)
    assert any("the design n = 1000 pulls formula to itself" in warning for warning in outlier)


def test_too_few_designs_give_no_tests():
    f = fit(line_runs()[:4], metric="mutual_knn", law=LINE, bounds=WIDE, rng=np.random.default_rng(0))

    assert (None, None, None) == (f.diagnostics.breusch_pagan, f.diagnostics.jarque_bera, f.diagnostics.cook)


def test_a_nonlinear_law_on_its_own_world_passes_them():
    f = fit(simulated_runs(seed=2), metric="mutual_knn", law="hill", rng=np.random.default_rng(0))

    assert f.diagnostics.breusch_pagan > 0.01
    assert f.diagnostics.jarque_bera > 0.01
    assert 0 < f.diagnostics.cook < 1
    assert [] == f.diagnostics.sentences("hill")
