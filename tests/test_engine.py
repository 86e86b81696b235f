"""The engine: batched minima with bounds, against lmfit, closed forms and NIST's certified values."""

import lmfit
import numpy as np
import pytest

from forecast.engine import Loss, minimise, project_linear, starts
from forecast.laws.alignment import ALIGNMENT, NULLS
from forecast.laws.law import Law, Parameter, Scale

SCALE = Scale(
    low=0.03, high=0.12, chance=0.033, metric_lower=0.0, metric_upper=1.0, ranges={"n": (8e3, 5e5), "g": (0, 1)}
)


def grid():
    g, n = np.meshgrid([0.0, 0.25, 0.5, 0.75, 1.0], 8000 * 2.0 ** np.arange(7))
    return {"n": n.ravel(), "g": g.ravel()}


def solved(law, columns, y, weights=None, loss=None, seed=0, count=64):
    weights = np.ones(len(y)) if weights is None else weights
    first = starts(law, count, np.random.default_rng(seed))
    first = project_linear(law, columns, y, np.broadcast_to(weights, (1, len(y))), first)
    return minimise(law, columns, y, weights, first, loss=loss or Loss())


@pytest.mark.parametrize("name", [*ALIGNMENT, *NULLS])
def test_jacobians_agree_with_central_differences(name):
    law = {**ALIGNMENT, **NULLS}[name](SCALE)
    columns, h = grid(), 1e-6
    inner = starts(law, 5, np.random.default_rng(3))
    _, jacobian = law.value_and_jacobian(columns, inner)
    steps = h * np.eye(inner.shape[1])
    numeric = np.stack([(law.value(columns, inner + s) - law.value(columns, inner - s)) / (2 * h) for s in steps], -1)

    assert numeric == pytest.approx(jacobian, rel=1e-5, abs=1e-8)


def test_the_optimum_is_that_of_lmfit():
    law, columns = ALIGNMENT["hill"](SCALE), grid()
    rng = np.random.default_rng(5)
    y = 0.033 + 0.09 / (1 + (3e5 / (columns["n"] * (columns["g"] + 0.1 * (1 - columns["g"])))) ** 0.9)
    y = y + rng.normal(0, 0.002, len(y))
    minima = solved(law, columns, y)
    parameters = lmfit.Parameters()
    parameters.add("A", 0.1, min=0.03, max=1)
    parameters.add("log_n50", 12.0)
    parameters.add("b", 1.0, min=0.01, max=8)
    parameters.add("kappa", 0.2, min=1e-6, max=1)

    def residual(p):
        effective = columns["n"] * (p["g"] if "g" in p else columns["g"] + p["kappa"] * (1 - columns["g"]))
        return 0.03 + (p["A"] - 0.03) / (1 + (np.exp(p["log_n50"]) / effective) ** p["b"]) - y

    law = ALIGNMENT["hill"](Scale(0.03, 0.12, 0.03, 0.0, 1.0, True, {"n": (8e3, 5e5), "g": (0, 1)}))
    minima = solved(law, columns, y)
    oracle = lmfit.minimize(residual, parameters, ftol=1e-14, xtol=1e-14)

    assert minima.converged.all()
    assert oracle.chisqr == pytest.approx(minima.loss[minima.best], rel=1e-9)
    assert oracle.params["kappa"].value == pytest.approx(law.outer(minima.inner)[minima.best, 3], rel=1e-4)


def test_nist_misra1a_is_met_from_both_certified_starts():
    """NIST StRD Misra1a: y = b1 (1 - exp(-b2 x)), certified b1 238.94212918, b2 5.5015643181E-04."""
    y = np.array([10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05, 61.01, 66.40, 75.47, 81.78])
    x = np.array([77.6, 114.9, 141.1, 190.8, 239.9, 289.0, 332.8, 378.4, 434.8, 477.3, 536.8, 593.1, 689.1, 760.0])
    parameters = (Parameter("b1", 0, 1e5, 1, 1e3), Parameter("b2", 1e-8, 1, 1e-5, 1e-2, "log"))
    law = Law("misra1a", "b1*(0-expm1(-b2*x))", "NIST", ("x",), parameters)
    begin = law.inner(np.array([[500.0, 1e-4], [250.0, 5e-4]]))
    minima = minimise(law, {"x": x}, y, np.ones(14), begin, loss=Loss())

    assert minima.converged.all()
    assert np.array([[238.94212918, 5.5015643181e-4]] * 2) == pytest.approx(law.outer(minima.inner), rel=1e-7)
    assert pytest.approx(minima.loss.tolist(), rel=1e-9) == [1.2455138894e-1] * 2


def test_a_start_far_from_any_minimum_is_not_called_converged():
    law = Law("flat", "A*exp(-b*x)", "", ("x",), (Parameter("A", 0, 1e3, 0, 1), Parameter("b", 1e-3, 1e3, 1, 2, "log")))
    x = np.arange(1.0, 9.0)
    minima = minimise(law, {"x": x}, np.exp(-x / 5), np.ones(8), np.array([[0.7, 0.1]]), loss=Loss(), iterations=1)

    assert not minima.converged.any()


def test_scale_of_the_outcome_changes_nothing_but_the_loss():
    columns = grid()
    y = ALIGNMENT["hill"](SCALE).value(columns, np.array([[0.13, 12.5, -0.2, -2.0]]))[0]
    y = y + np.random.default_rng(2).normal(0, 0.002, len(y))
    rates = []
    for factor in (1e-6, 1.0, 1e6):
        scale = Scale(0.03 * factor, 0.12 * factor, 0.033 * factor, 0.0, factor, True, SCALE.ranges)
        law = ALIGNMENT["hill"](scale)
        minima = solved(law, columns, y * factor)
        rates.append([minima.loss[minima.best] / factor**2, *law.outer(minima.inner)[minima.best, 1:]])

    assert rates[1] == pytest.approx(rates[0], rel=1e-6)
    assert rates[1] == pytest.approx(rates[2], rel=1e-6)


def test_weight_two_is_a_row_twice_and_weight_zero_is_no_row():
    law, columns = ALIGNMENT["hill"](SCALE), grid()
    y = law.value(columns, np.array([[0.13, 12.5, -0.2, -2.0]]))[0]
    y = y + np.random.default_rng(2).normal(0, 0.002, len(y))
    weights = np.ones(len(y))
    weights[3], weights[7] = 2.0, 0.0
    rows = np.array([i for i in range(len(y)) if i != 7] + [3])
    weighted = solved(law, columns, y, weights)
    explicit = solved(law, {k: v[rows] for k, v in columns.items()}, y[rows])

    assert explicit.loss[explicit.best] == pytest.approx(weighted.loss[weighted.best], rel=1e-10)
    assert explicit.inner[explicit.best] == pytest.approx(weighted.inner[weighted.best], rel=1e-6)


def test_huber_is_twice_the_usual_form_and_ignores_an_outlier():
    from scipy.special import huber

    r, w = np.array([-3.0, 0.1, 2.0]), np.array([1.0, 2.0, 1.0])
    law, columns = ALIGNMENT["hill"](SCALE), grid()
    y = law.value(columns, np.array([[0.13, 12.5, -0.2, -2.0]]))[0]
    y = y + np.random.default_rng(2).normal(0, 0.001, len(y))
    dirty = y.copy()
    dirty[34] += 0.05
    clean = solved(law, columns, y).inner
    robust, squared = (solved(law, columns, dirty, loss=x) for x in (Loss("huber", 0.001), Loss()))
    away = [np.abs(m.inner[m.best] - clean[0]).max() for m in (robust, squared)]

    assert 2 * np.sum(w * huber(0.5, r)) == pytest.approx(Loss("huber", 0.5).total(r, w))
    assert robust.converged.any()
    assert away[0] < 0.3 * away[1]


def test_a_huber_minimum_is_that_of_scipys_bfgs_from_near_and_from_far():
    from scipy.optimize import minimize
    from scipy.special import huber

    law, columns = ALIGNMENT["hill"](SCALE), grid()
    y = law.value(columns, np.array([[0.13, 12.5, -0.2, -2.0]]))[0]
    y = y + 0.002 * np.random.default_rng(4).standard_t(2, len(y))
    weights = np.random.default_rng(5).multinomial(len(y), np.full(len(y), 1 / len(y)), size=8).astype(float)
    far = solved(law, columns, y, loss=Loss("huber", 0.001))
    begin = np.tile(far.inner[far.best], (8, 1))
    near = minimise(law, columns, y, weights, begin, loss=Loss("huber", 0.001), near=True)

    def objective(x, w):
        return 1e6 * np.sum(w * huber(0.001, y - law.value(columns, x[None])[0]))

    oracle = [minimize(objective, begin[0], args=(w,), method="BFGS").fun for w in weights]

    assert near.converged.all()
    assert np.all(near.loss / 2 * 1e6 <= np.array(oracle) * (1 + 1e-7))
    assert np.array(oracle) == pytest.approx(near.loss / 2 * 1e6, rel=1e-3)


def test_more_members_than_the_pool_holds_end_where_each_ends_alone(monkeypatch):
    law, columns = ALIGNMENT["hill"](SCALE), grid()
    y = law.value(columns, np.array([[0.13, 12.5, -0.2, -2.0]]))[0]
    y = y + np.random.default_rng(2).normal(0, 0.002, len(y))
    begin = starts(law, 24, np.random.default_rng(0))
    together = minimise(law, columns, y, np.ones(len(y)), begin, loss=Loss())
    monkeypatch.setattr("forecast.descent.POOL", 5 * len(y))
    pooled = minimise(law, columns, y, np.ones(len(y)), begin, loss=Loss())

    assert together.loss == pytest.approx(pooled.loss, rel=1e-9)
    assert np.array_equal(together.converged, pooled.converged)
