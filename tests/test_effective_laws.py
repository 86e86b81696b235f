"""M4, bounded rational, repeated samples and one break in effective samples: gradients, closed forms, limits."""

import numpy as np
import pytest
from scipy.optimize import brentq

from forecast.laws.alignment import ALIGNMENT
from forecast.laws.effective import EFFECTIVE_LAWS
from forecast.laws.general import GENERAL
from forecast.laws.implicit import IMPLICIT
from forecast.laws.law import Law, Scale
from forecast.laws.registry import build_law

SCALE = Scale(
    low=0.03,
    high=0.12,
    chance=0.033,
    metric_lower=0.0,
    metric_upper=1.0,
    ranges={"n": (8e3, 5e5), "g": (0, 1), "U": (4e3, 6e4), "N": (1e7, 1e9), "D": (1e8, 1e10), "p": (0, 1)},
)


def grid():
    g, n = np.meshgrid([0.0, 0.25, 0.5, 0.75, 1.0], 8000 * 2.0 ** np.arange(7))
    n, g = n.ravel(), g.ravel()
    unique = 5000 * (1 + np.arange(len(n)) % 4)
    return {"n": n, "g": g, "U": unique, "N": 1e3 * n, "D": 1e4 * n, "p": g}


def at(law: Law, **values):
    return law.inner(np.array([[values[name] for name in law.names]], dtype=float))


@pytest.mark.parametrize("name", [*EFFECTIVE_LAWS, *GENERAL, *IMPLICIT])
def test_gradients_agree_with_central_differences(name):
    law, columns, h = build_law(name, SCALE), grid(), 1e-6
    rng = np.random.default_rng(3)
    low, high = (np.array([float(p.inner(v)) for p, v in zip(law.parameters, ends, strict=True)]) for ends in (
        [p.start_lower for p in law.parameters], [p.start_upper for p in law.parameters]
    ))  # fmt: skip
    inner = low + rng.uniform(size=(5, len(low))) * (high - low)
    value, jacobian = law.value_and_jacobian(columns, inner)
    steps = h * np.eye(inner.shape[1])
    numeric = np.stack([(law.value(columns, inner + s) - law.value(columns, inner - s)) / (2 * h) for s in steps], -1)

    assert np.all(np.isfinite(value))
    assert numeric == pytest.approx(jacobian, rel=1e-5, abs=1e-8 * np.abs(jacobian).max())


def test_m4_with_alpha_one_is_a_hill_curve_and_solves_its_equation_otherwise():
    columns = grid()
    truth = {"A": 0.15, "n50": 1e5, "b": 0.9, "kappa": 0.1}
    m4, hill = build_law("m4-effective", SCALE), ALIGNMENT["hill"](SCALE)
    bent = m4.value(columns, at(m4, alpha=2.5, **truth))[0]
    n_eff = columns["n"] * (columns["g"] + 0.1 * (1 - columns["g"]))

    def share(x):
        return brentq(lambda s: (1 - s) / s**2.5 - 2**1.5 * (1e5 / x) ** 0.9, 1e-12, 1 - 1e-12)

    assert hill.value(columns, at(hill, **truth)) == pytest.approx(m4.value(columns, at(m4, alpha=1.0, **truth)))
    assert [0.03 + 0.12 * share(x) for x in n_eff] == pytest.approx(bent, rel=1e-8)
    half = m4.value({"n": np.array([1e5]), "g": np.ones(1)}, at(m4, alpha=2.5, **truth))[0, 0]
    assert (0.03 + 0.15) / 2 == pytest.approx(half)


def test_bounded_rational_levels_off_where_its_formula_says():
    law = build_law("bounded-rational", SCALE)
    inner = at(law, B=0.9, q=0.3, beta=0.2, kappa=0.5)
    far = {"n": np.array([1e15, law.constants["n0"]]), "g": np.array([0.3, 1.0])}

    assert [1 - 0.9 * 0.3**0.2, 1 - 0.9 * 1.3**0.2] == pytest.approx(law.value(far, inner)[0])


def test_repeated_samples_are_worth_what_muennighoff_s_formula_says():
    law, hill = build_law("repeated-samples", SCALE), ALIGNMENT["hill-floor"](SCALE)
    truth = {"f": 0.04, "A": 0.15, "n50": 1e5, "b": 0.9, "kappa": 0.1}
    columns = grid()
    unique = np.minimum(columns["n"], columns["U"])
    worth = unique * (1 + 15.4 * (1 - np.exp(-(columns["n"] / unique - 1) / 15.4)))
    inside = {**columns, "U": 2 * columns["n"]}

    def plain(n):
        return hill.value({"n": n, "g": columns["g"]}, at(hill, **truth))

    assert plain(worth) == pytest.approx(law.value(columns, at(law, r=15.4, **truth)))
    assert plain(columns["n"]) == pytest.approx(law.value(inside, at(law, r=2.0, **truth)))
    assert plain(unique + 1e-2 * unique * (columns["n"] > unique)) == pytest.approx(
        law.value(columns, at(law, r=1e-2, **truth)), rel=1e-5
    )


def test_a_break_far_away_leaves_a_power_and_before_it_the_slopes_add():
    law, power = build_law("broken-effective", SCALE), ALIGNMENT["effective-samples"](SCALE)
    columns = grid()
    smooth = {"a_inf": 0.15, "B": 0.05, "kappa": 0.2}
    unbroken = law.value(columns, at(law, c0=0.3, c1=2.0, d1=5e6, f1=2e-2, **smooth))
    late = {"n": np.array([1e9, 2e9]), "g": np.ones(2)}
    y = law.value(late, at(law, c0=0.3, c1=0.5, d1=1e4, f1=0.05, **smooth))[0]

    assert power.value(columns, at(power, beta=0.3, **smooth)) == pytest.approx(unbroken)
    assert 0.8 == pytest.approx(np.log((0.15 - y[0]) / (0.15 - y[1])) / np.log(2), rel=1e-6)


@pytest.mark.parametrize("name", [n for n in EFFECTIVE_LAWS if n != "repeated-samples"])
def test_without_a_worth_of_bad_pairs_a_bad_run_is_at_the_floor_and_never_beyond(name):
    law = build_law(name, SCALE)
    inner = law.inner(np.array([[p.start_upper for p in law.parameters]]))
    inner[0, law.names.index("kappa")] = law.lower[law.names.index("kappa")]
    value = law.value({"n": np.array([8e3]), "g": np.zeros(1)}, inner)[0, 0]

    assert SCALE.floor == pytest.approx(value, abs=0.02)


@pytest.mark.parametrize(("name", "held"), [("m4", {"E": 0.01}), ("m4-effective", {"alpha": 1.0, "kappa": 0.2})])
def test_a_parameter_of_a_law_without_a_closed_form_can_be_held(name, held):
    law = build_law(name, SCALE)
    fixed = law.fixed(held)
    middle = {p.name: (p.start_lower + p.start_upper) / 2 for p in law.parameters}
    columns = grid()

    value, jacobian = fixed.value_and_jacobian(columns, at(fixed, **middle))

    assert law.value(columns, at(law, **{**middle, **held})) == pytest.approx(value)
    assert len(law.names) - len(held) == jacobian.shape[-1]
