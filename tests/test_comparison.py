"""The choice between laws: held-out CRPS first; a parameter at its bound wins no tie; AICc comes last."""

from types import SimpleNamespace

import numpy as np
import pytest

from forecast.comparison import choose, standard_errors, weights_of


def law(name, status="converged", parameters=4, aicc=0.0):
    return SimpleNamespace(law=SimpleNamespace(name=name, parameters=(None,) * parameters), status=status, aicc=aicc)


def scores(**crps):
    """Held-out CRPS in 6 parts: the given mean, with a spread that is each law's own."""
    rng = np.random.default_rng(0)
    return {
        name.replace("_", "-"): SimpleNamespace(per_fold=lambda v=mean + rng.normal(0, 0.1, 6): v)
        for name, mean in crps.items()
    }


TIED = scores(wide=1.0, stuck=1.0, simple=1.0, far=9.0)
TIED["wide"] = TIED["stuck"] = TIED["simple"]


def test_a_law_that_predicts_worse_is_not_chosen_however_it_fits():
    assert "simple" == choose([law("far", aicc=-99.0), law("simple")], TIED).law.name


def test_a_law_with_a_parameter_at_its_bound_wins_no_tie_by_aicc():
    stuck, simple = law("stuck", "at a bound", 7, aicc=-50.0), law("simple", aicc=0.0)

    assert "simple" == choose([stuck, simple], TIED).law.name
    assert "simple" == choose([law("stuck", "not identified", 3, aicc=-50.0), simple], TIED).law.name


def test_of_free_laws_the_simpler_is_chosen_and_of_equally_simple_ones_the_smaller_aicc():
    assert "simple" == choose([law("wide", parameters=6, aicc=-50.0), law("simple")], TIED).law.name
    assert "wide" == choose([law("wide", aicc=-1.0), law("simple", aicc=0.0)], TIED).law.name


def test_where_every_tied_law_is_at_a_bound_the_simplest_is_chosen():
    several = [law("wide", "at a bound", 7, aicc=-50.0), law("stuck", "at a bound", 5, aicc=0.0)]

    assert "stuck" == choose(several, TIED).law.name


def test_the_broken_law_is_averaged_but_not_chosen_unless_it_is_alone():
    tests = scores(broken_effective=1.0, far=5.0)
    broken, far = law("broken-effective", parameters=7), law("far")

    assert "far" == choose([broken, far], tests).law.name
    assert weights_of([broken, far], tests)["broken-effective"] > 0.9
    assert "broken-effective" == choose([broken], tests).law.name


def test_without_held_out_parts_the_chosen_law_has_all_the_weight():
    several = [law("broken-effective", aicc=-9.0), law("wide", aicc=-2.0), law("simple", aicc=1.0)]

    assert "wide" == choose(several, {}).law.name
    assert {"broken-effective": 0.0, "wide": 1.0, "simple": 0.0} == weights_of(several, {})


def test_weights_add_up_and_follow_the_scores():
    weights = weights_of([law("wide"), law("simple"), law("far")], TIED)

    assert 1.0 == pytest.approx(sum(weights.values()))
    assert weights["wide"] == weights["simple"] > 0.49
    assert weights["far"] < 1e-6


def test_a_law_that_fails_badly_in_one_part_is_not_excused_by_its_spread():
    steady = SimpleNamespace(per_fold=lambda: np.array([1.0, 1.1, 0.9, 1.0, 1.1, 0.9]))
    wild = SimpleNamespace(per_fold=lambda: np.array([26.0, 2.2, 2.1, 1.9, 2.0, 2.1]))
    difference = wild.per_fold() - steady.per_fold()

    assert difference.mean() / (difference.std(ddof=1) / 6**0.5) < 1.3
    assert standard_errors(wild, steady) > 2.4
    assert -standard_errors(steady, wild) == standard_errors(wild, steady)
    assert 0.0 == standard_errors(steady, steady)


def test_from_few_parts_the_weights_are_the_inverse_squares_of_the_scores():
    """Two parts that agree to a hair have no standard error to speak of: it would give one law everything."""
    tests = {
        name: SimpleNamespace(per_fold=lambda v=value: np.array(v))
        for name, value in {"simple": (1.0, 1.0), "far": (2.0, 2.0001)}.items()
    }
    few = weights_of([law("simple"), law("far")], tests)
    many = weights_of(
        [law("simple"), law("far")],
        {name: SimpleNamespace(per_fold=lambda v=test.per_fold(): np.tile(v, 3)) for name, test in tests.items()},
    )

    assert 0.8 == pytest.approx(few["simple"], abs=1e-4)
    assert 1.0 == pytest.approx(few["simple"] + few["far"])
    assert many["far"] < 1e-6
