"""Each statement of the theory on finite worlds, and for each a twin that shows that it can fail."""

import json

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from forecast.errors import ForecastError
from runner.theory.nuisance import DetailWorld, share_of_good_views
from runner.theory.search import three_states
from runner.theory.statements import examine, fitting_rotations, tied_law
from runner.theory.worlds import PairLaw, bound, learned_code, misalignment, random_law, random_pair


@pytest.fixture(scope="module")
def theory():
    return examine(worlds=300, seed=0)


NAMES = ["optimum", "gap", "bound", "adversary", "pairs", "moments", "nuisance", "good views"]


@pytest.mark.parametrize("name", NAMES)
def test_each_statement_holds(theory, name):
    (statement,) = [s for s in theory.statements if s.name == name]

    assert NAMES == [s.name for s in theory.statements]
    assert statement.holds, statement.found


def test_a_code_of_another_space_agrees_less():
    law = random_law(8, np.random.default_rng(0))
    best = learned_code(law, 2, rng=np.random.default_rng(1))
    other = np.linalg.eigh(law.operator)[1][:, ::-1][:, [0, 2]] / np.sqrt(law.prior)[:, None]

    assert np.trace(best.T @ law.joint @ best) == pytest.approx(law.spectrum()[:2].sum(), abs=1e-6)
    assert np.trace(other.T @ law.joint @ other) < law.spectrum()[:2].sum() - 1e-3
    np.testing.assert_allclose(np.eye(2), best.T @ np.diag(law.prior) @ best, atol=1e-8)


def test_misalignment_is_the_sine_of_scipys_largest_angle():
    rng = np.random.default_rng(0)
    one, other = (np.linalg.qr(rng.standard_normal((9, 3)))[0] for _ in range(2))

    assert np.sin(subspace_angles(one, other).max()) == pytest.approx(misalignment(one, other))
    assert misalignment(one, one @ np.linalg.qr(rng.standard_normal((3, 3)))[0]) == pytest.approx(0, abs=1e-12)


def test_random_worlds_hardly_show_that_the_plain_bound_is_false_and_the_adversary_does(theory):
    broken = [found for found in theory.bounds if found.misalignment > found.plain + 1e-8]
    most = max(found.misalignment / found.plain for found in theory.bounds)

    assert len(broken) < 0.02 * len(theory.bounds)
    assert most < 1.2 < 1.8 < theory.worst.ratio
    assert theory.worst.found.misalignment > 1.8 * theory.worst.found.plain
    assert theory.worst.found.misalignment <= theory.worst.found.safe
    for law in (theory.worst.first, theory.worst.second):
        np.testing.assert_allclose(np.full(3, 1 / 3), law.prior)
        assert law.joint.min() >= 0


def test_the_safe_bound_holds_where_a_climb_looks_for_its_failure():
    """Laws near the worst: the second's gap almost closed, at every scale."""
    for gap in (0.01, 0.1, 0.3):
        for nearly in (1e-3, 0.1, 0.3, 0.49):
            laws = three_states([gap, 0.0, 0.4, gap / 2 + nearly * gap, gap / 2 - nearly * gap, 0.4 + np.pi / 2])
            found = bound(*laws, 1)

            assert found.misalignment <= found.safe


def test_two_laws_with_a_closed_form_reach_it():
    """K1 = diag(0.2, 0), K2 = diag(0.099, 0.101) in one basis: the first vectors are orthogonal, |K1 - K2| = 0.101."""
    found = bound(*three_states([0.2, 0, 0, 0.101, 0.099, np.pi / 2]), 1)

    assert (1.0, 0.101, 0.2) == pytest.approx((found.misalignment, found.distance, found.gap))


def test_pairs_that_are_not_generic_do_not_fix_the_rotation():
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    repeated = np.tile(np.random.default_rng(1).standard_normal((1, 3)), (5, 1))
    generic = np.random.default_rng(2).standard_normal((3, 3))

    assert [] == fitting_rotations(repeated, repeated @ turn)
    (only,) = fitting_rotations(generic, generic @ turn)
    np.testing.assert_allclose(turn, only, atol=1e-8)


@pytest.mark.parametrize(("detail", "lost"), [(0.35, 1), (0.15, 1), (0.05, 0)])
def test_detail_takes_code_dimensions_only_where_it_is_kept_more_than_a_world_direction(detail, lost):
    found = share_of_good_views(DetailWorld(detail=detail), 0.0)

    assert 3 - lost == pytest.approx(found.world_dimensions)
    assert 3 - lost == pytest.approx(sum(found.agreement))


def test_the_switch_lies_where_the_eigenvalues_cross():
    world = DetailWorld()
    for direction, g in enumerate(world.switches()):
        found = share_of_good_views(world, g)

        assert found.detail_eigenvalue == pytest.approx(found.world_eigenvalues[direction])


def test_the_eigenvalues_of_the_detail_world_are_the_closed_form():
    found = share_of_good_views(DetailWorld(), 0.4)
    spectrum = DetailWorld().laws(0.4)[0].spectrum()

    for value in (*found.world_eigenvalues, found.detail_eigenvalue):
        assert np.abs(spectrum - value).min() < 1e-12


def test_without_a_gap_two_optima_differ_and_with_one_they_do_not():
    assert tied_law(0.0).gap(2) == pytest.approx(0, abs=1e-12)
    assert tied_law(0.1).gap(2) == pytest.approx(0.1)


def test_random_pairs_share_their_prior_and_range_from_near_to_far():
    rng = np.random.default_rng(5)
    pairs = [random_pair(rng) for _ in range(30)]
    distances = [bound(*pair).distance for pair in pairs]

    assert all(np.allclose(a.prior, b.prior) for a, b, _ in pairs)
    assert min(distances) < 1e-3 < 0.1 < max(distances)


@pytest.mark.parametrize(
    ("joint", "words"),
    [
        (np.full((3, 2), 1 / 6), "square"),
        (np.eye(3), "sums to 1"),
        (np.array([[1.2, -0.1], [-0.1, 0.0]]), "no negative"),
        (np.diag([1.0, 0.0]), "positive probability"),
        (np.full((2, 2), np.nan), "finite"),
    ],
)
def test_what_is_no_pair_law_is_refused(joint, words):
    with pytest.raises(ForecastError, match=words):
        PairLaw(joint)


def test_more_dimensions_than_the_world_has_are_refused():
    with pytest.raises(ForecastError, match="1 to 3 dimensions"):
        random_law(5, np.random.default_rng(0)).basis(4)
    with pytest.raises(ForecastError, match="at least one random world"):
        examine(worlds=0, seed=0)


def test_the_same_seed_gives_the_same_theory(theory):
    again = examine(worlds=300, seed=0)

    assert json.dumps([s.found for s in theory.statements]) == json.dumps([s.found for s in again.statements])
