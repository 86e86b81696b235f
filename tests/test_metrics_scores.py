"""CKA, scene share, retrieval, the rotation's residual and the permutation null, against closed forms and peers."""

import itertools

import numpy as np
import pytest
import torch
from calibrated_similarity import calibrate as peer_calibrate
from calibrated_similarity import calibrate_layers as peer_calibrate_layers
from scipy.spatial import procrustes
from scipy.stats import binomtest, f_oneway, ortho_group
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import KernelCenterer

from forecast.errors import ForecastError
from runner.metrics.calibration import calibrate, relabelled_scores
from runner.metrics.cka import cka_chance, jackknife_error, linear_cka, permuted_cka
from runner.metrics.knn import chance_level, equal_rows, mutual_knn_hits, nearest_neighbours
from runner.metrics.preprocessing import Preprocessing, preprocess
from runner.metrics.residual import disparity, disparity_error, residual
from runner.metrics.retrieval import retrieval
from runner.metrics.scene_share import scene_share


def features(items, dimensions, seed=0):
    return np.random.default_rng(seed).standard_normal((items, dimensions)).astype(np.float32)


def related(items, seed=0, noise=1.0, dimensions=12):
    """Two sets of features of the same items, with a shared part."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((items, 6))
    return tuple(
        shared @ rng.standard_normal((6, dimensions)) + noise * rng.standard_normal((items, dimensions))
        for _ in range(2)
    )


def test_neighbours_by_tiles_equal_those_of_scikit_learn():
    x = features(4200, 8)
    found = nearest_neighbours(x, 10)
    oracle = NearestNeighbors(n_neighbors=11, metric="cosine", algorithm="brute").fit(x)
    expected = np.array([sorted(set(r) - {i})[:10] for i, r in enumerate(oracle.kneighbors(x, return_distance=False))])

    np.testing.assert_array_equal(expected, np.sort(found, axis=1))


def test_ties_do_not_make_two_constant_codes_agree():
    x = np.repeat(features(4, 3), 50, axis=0)
    first = mutual_knn_hits(nearest_neighbours(x, 10), nearest_neighbours(x, 10)).mean() / 10
    shuffled = [nearest_neighbours(x, 10, rng=np.random.default_rng(s)) for s in (1, 2)]

    assert equal_rows(x) == 200
    assert first == 1.0
    assert mutual_knn_hits(*shuffled).mean() / 10 < 0.5


def test_shuffled_rows_find_the_same_neighbours():
    x = features(300, 5)

    np.testing.assert_array_equal(
        np.sort(nearest_neighbours(x, 7), axis=1),
        np.sort(nearest_neighbours(x, 7, rng=np.random.default_rng(0)), axis=1),
    )


def torch_mutual_knn(x, y, k=10):
    """The plain way: similarities in full, all sorted."""
    sets = []
    for side in (x, y):
        unit = torch.nn.functional.normalize(side, dim=1)
        similar = unit @ unit.T
        similar.fill_diagonal_(-2)
        sets.append(similar.argsort(dim=1, descending=True)[:, :k])
    return (sets[0][:, :, None] == sets[1][:, None, :]).any(2).float().mean()


def test_the_calibrated_score_equals_that_of_calibrated_similarity():
    x, y = (a.astype(np.float32) for a in related(80))
    pairings = [np.random.default_rng(s).permutation(80) for s in range(60)]
    observed, null = relabelled_scores([nearest_neighbours(x, 10)], [nearest_neighbours(y, 10)], pairings)
    mine = calibrate(float(observed[0, 0]), null[:, 0, 0])
    given = iter(pairings)
    theirs = peer_calibrate(
        torch.tensor(x), torch.tensor(y), torch_mutual_knn, K=60, perm_fn=lambda n, device: torch.tensor(next(given))
    )

    assert [float(v) for v in theirs] == pytest.approx([mine.calibrated, mine.p_value, mine.threshold], abs=1e-6)
    assert mine.above_chance


def test_the_choice_of_layer_inside_the_null_equals_that_of_calibrated_similarity():
    ones, others = [features(60, 6, s) for s in range(3)], [features(60, 6, 10 + s) for s in range(2)]
    pairings = [np.random.default_rng(s).permutation(60) for s in range(40)]
    near = [[nearest_neighbours(x, 10) for x in side] for side in (ones, others)]
    observed, null = relabelled_scores(*near, pairings)
    mine = calibrate(float(observed.max()), null.max(axis=(1, 2)))
    given = iter(pairings)
    theirs = peer_calibrate_layers(
        [torch.tensor(x) for x in ones],
        [torch.tensor(x) for x in others],
        torch_mutual_knn,
        K=40,
        perm_fn=lambda n, device: torch.tensor(next(given)),
    )

    assert [float(v) for v in theirs] == pytest.approx([mine.calibrated, mine.p_value, mine.threshold], abs=1e-6)


def test_the_best_of_many_unrelated_layers_is_above_chance_only_where_the_choice_is_forgotten():
    rng = np.random.default_rng(3)
    honest, naive = 0, 0
    for _ in range(60):
        near = [[nearest_neighbours(rng.standard_normal((40, 4)), 5) for _ in range(6)] for _ in range(2)]
        observed, null = relabelled_scores(*near, [rng.permutation(40) for _ in range(39)])
        a, b = np.unravel_index(observed.argmax(), observed.shape)
        honest += calibrate(float(observed.max()), null.max(axis=(1, 2))).above_chance
        naive += calibrate(float(observed.max()), null[:, a, b]).above_chance

    assert honest <= 8  # 3 expected
    assert naive >= 20


def test_relabelling_equals_searching_again_with_and_without_a_table(monkeypatch):
    x, y = related(50)
    pairing = np.random.default_rng(0).permutation(50)
    expected = mutual_knn_hits(nearest_neighbours(x, 5), nearest_neighbours(y[pairing], 5)).mean() / 5
    for limit in (8192, 0):
        monkeypatch.setattr("runner.metrics.calibration.DENSE_ITEMS", limit)
        _, null = relabelled_scores([nearest_neighbours(x, 5)], [nearest_neighbours(y, 5)], [pairing])

        assert expected == pytest.approx(null[0, 0, 0])


def test_the_mean_over_all_pairings_is_the_chance_level():
    near = [nearest_neighbours(features(6, 3, s), 2) for s in (0, 1)]
    _, null = relabelled_scores([near[0]], [near[1]], [np.array(p) for p in itertools.permutations(range(6))])

    assert chance_level(6, 2) == pytest.approx(null.mean())


def test_a_null_without_pairings_or_with_nan_is_refused():
    for null in (np.array([]), np.array([np.nan])):
        with pytest.raises(ForecastError, match="permutation null"):
            calibrate(0.5, null)
    with pytest.raises(ForecastError, match="level"):
        calibrate(0.5, np.zeros(3), level=0)


def test_cka_equals_the_centred_kernels_of_scikit_learn():
    x, y = related(30)
    k, m = (KernelCenterer().fit_transform(a @ a.T) for a in (x, y))

    assert (k * m).sum() / np.sqrt((k * k).sum() * (m * m).sum()) == pytest.approx(linear_cka(x, y))
    assert linear_cka(x, 3 * x @ ortho_group.rvs(12, random_state=0) + 5) == pytest.approx(1)


def unbiased_hsic(k, m):
    """Song et al. (2012), eq. 5, as written."""
    n, one = len(k), np.ones(len(k))
    k, m = k - np.diag(np.diag(k)), m - np.diag(np.diag(m))
    return (
        np.trace(k @ m) + (one @ k @ one) * (one @ m @ one) / ((n - 1) * (n - 2)) - 2 / (n - 2) * (one @ k @ m @ one)
    ) / (n * (n - 3))


def test_debiased_cka_equals_the_formula_as_published_and_scores_zero_by_chance():
    x, y = related(30)
    k, m = x @ x.T, y @ y.T
    expected = unbiased_hsic(k, m) / np.sqrt(unbiased_hsic(k, k) * unbiased_hsic(m, m))
    pairs = [(features(40, 60, s), features(40, 60, 500 + s)) for s in range(60)]
    free = [linear_cka(*pair, debiased=True) for pair in pairs]

    assert expected == pytest.approx(linear_cka(x, y, debiased=True))
    assert abs(np.mean(free)) < 4 * np.std(free) / np.sqrt(60)
    assert np.mean([linear_cka(*pair) for pair in pairs]) > 0.5


def test_the_chance_level_of_cka_is_the_mean_over_all_pairings():
    x, y = features(6, 4, 0), features(6, 3, 1)
    every = permuted_cka(x, y, [np.array(p) for p in itertools.permutations(range(6))])
    wide = permuted_cka(np.tile(x, 3), y, [np.arange(6)])

    assert every.mean() == pytest.approx(cka_chance(x, y))
    assert linear_cka(np.tile(x, 3), y) == pytest.approx(wide[0])
    assert linear_cka(x, y) == pytest.approx(every[0])


def test_the_jackknife_error_is_about_the_spread_over_samples():
    values, errors = [], []
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((6, 12)), rng.standard_normal((6, 12))
    for _ in range(40):
        shared = rng.standard_normal((120, 6))
        x, y = (shared @ m + 2 * rng.standard_normal((120, 12)) for m in (a, b))
        values.append(linear_cka(x, y))
        errors.append(jackknife_error(x, y))

    assert np.std(values) == pytest.approx(np.mean(errors), rel=0.35)


def test_cka_without_variance_or_pairs_is_refused():
    with pytest.raises(ForecastError, match="same features"):
        linear_cka(np.ones((9, 2)), features(9, 2))
    with pytest.raises(ForecastError, match="paired by row"):
        linear_cka(features(9, 2), features(8, 2))


def test_scene_share_equals_the_f_statistic_of_one_way_anova():
    rng = np.random.default_rng(0)
    groups = [rng.standard_normal(5) + rng.standard_normal() for _ in range(12)]
    share = scene_share(np.concatenate(groups)[:, None], np.repeat(np.arange(12), 5))
    f = f_oneway(*groups).statistic

    assert (f - 1) / (f + 4) == pytest.approx(share.intraclass)
    assert 11 * f / (11 * f + 48) == pytest.approx(share.plug_in)


def test_scene_share_is_unbiased_where_the_plug_in_form_is_not():
    rng = np.random.default_rng(1)
    scenes = np.repeat(np.arange(80), rng.integers(1, 4, 80))
    found = [
        scene_share(
            np.sqrt(0.6) * rng.standard_normal((80, 9))[scenes] + np.sqrt(0.4) * rng.standard_normal((len(scenes), 9)),
            scenes,
        )
        for _ in range(30)
    ]
    noise = [scene_share(rng.standard_normal((len(scenes), 9)), scenes) for _ in range(30)]

    assert np.mean([s.intraclass for s in found]) == pytest.approx(0.6, abs=0.02)
    assert np.mean([s.plug_in for s in found]) > 0.7
    assert np.std([s.intraclass for s in found]) == pytest.approx(np.mean([s.intraclass_error for s in found]), rel=0.5)
    assert np.mean([s.plug_in for s in noise]) == pytest.approx(noise[0].chance, abs=0.01)
    assert np.mean([s.intraclass for s in noise]) == pytest.approx(0, abs=0.02)


def test_scenes_with_one_observation_each_are_refused():
    with pytest.raises(ForecastError, match="variance within scenes"):
        scene_share(features(10, 3), np.arange(10))
    with pytest.raises(ForecastError, match="needs its scene"):
        scene_share(features(10, 3), np.arange(9))


def test_retrieval_finds_a_turned_copy_and_scores_chance_otherwise():
    x = features(101, 8).astype(np.float64)
    turned = x @ ortho_group.rvs(8, random_state=1) + 4
    rng = np.random.default_rng(0)
    found = retrieval(lambda fitting: (x, turned), 101, rng=rng)
    free = [retrieval(lambda fitting, s=s: (x, features(101, 8, 9 + s)), 101, pairings=19, rng=rng) for s in range(20)]

    assert {(1.0, "A to B", 1), (1.0, "B to A", 10)} <= {(r.score, r.direction, r.at) for r in found}
    assert all(r.p_value == 1 / 201 for r in found)
    assert np.mean([r[1].score for r in free]) == pytest.approx(free[0][1].chance, abs=0.06)
    assert found[0].gallery == 50


def test_the_interval_of_retrieval_is_the_exact_binomial_one():
    x, y = related(60, noise=2.0)
    r = retrieval(lambda fitting: (x, y), 60, at=(5,), rng=np.random.default_rng(0))[0]
    expected = binomtest(round(r.score * 60), 60).proportion_ci(0.95, "exact")

    assert (expected.low, expected.high) == (r.lower, r.upper)
    assert 0 < r.score < 1
    assert np.sqrt(r.score * (1 - r.score) / 60) == pytest.approx(r.error)


def test_no_item_is_tested_by_a_rotation_that_saw_it():
    """With more dimensions than fitting rows the rotation fits anything: held-out items must still score chance."""
    x, y = features(60, 200, 0).astype(np.float64), features(60, 200, 1).astype(np.float64)
    r = retrieval(lambda fitting: (x, y), 60, at=(1,), rng=np.random.default_rng(0))[0]

    assert r.score < 0.2
    with pytest.raises(ForecastError, match="needs at least"):
        retrieval(lambda fitting: (x, y), 20, rng=np.random.default_rng(0))


def test_the_disparity_equals_scipys():
    x, y = related(40)
    _, _, expected = procrustes(x, y)
    value, null = disparity(x, y, [np.random.default_rng(0).permutation(40)])

    assert expected == pytest.approx(value)
    assert value < null[0]
    assert 0 < disparity_error(x, y) < 0.2


def test_noise_alone_rarely_stands_out_as_a_rank():
    found = []
    for seed in range(40):
        x = features(200, 12, seed).astype(np.float64)
        noisy = x @ ortho_group.rvs(12, random_state=seed) + 0.1 * features(200, 12, 99 + seed)
        found.append(residual(x, noisy, rng=np.random.default_rng(seed)).rank)

    assert np.count_nonzero(found) <= 6  # 2 expected


@pytest.mark.parametrize("rank", [1, 3])
def test_the_rank_of_the_residual_is_that_of_what_no_rotation_explains(rank):
    rng = np.random.default_rng(rank)
    x = rng.standard_normal((300, 20))
    own = 3 * rng.standard_normal((300, rank)) @ ortho_group.rvs(20, random_state=rank)[:rank]
    y = x @ ortho_group.rvs(20, random_state=9) + own + 0.05 * rng.standard_normal((300, 20))

    assert rank == residual(x, y, rng=rng).rank


def test_a_turned_copy_leaves_no_residual_in_many_or_few_dimensions():
    for dimensions in (6, 90):
        x = features(40, dimensions).astype(np.float64)
        left = residual(x, 2 * x @ ortho_group.rvs(dimensions, random_state=0) - 1, rng=np.random.default_rng(0))

        assert (0.0, 0) == (left.disparity, left.rank)


def test_clipping_changes_the_score_of_features_with_an_outlier_dimension():
    x, y = related(200, noise=0.3)
    x[:, 0] = 300 * features(200, 1)[:, 0]
    plain, cut = Preprocessing(), Preprocessing(clip_quantile=0.9)
    scores = []
    for steps in (plain, cut):
        a, b = (preprocess(side, steps)[0] for side in (x, y))
        scores.append(mutual_knn_hits(nearest_neighbours(a, 10), nearest_neighbours(b, 10)).mean() / 10)
    applied = preprocess(x, cut)[1]

    assert scores[1] > scores[0] + 0.1
    assert applied.largest_variance_share > 0.9
    assert applied.clip_threshold == pytest.approx(np.quantile(np.abs(x.astype(np.float32)), 0.9))
    assert applied.clipped == pytest.approx(0.1, abs=0.001)


def test_the_steps_are_what_they_are_called():
    x = related(50)[0]
    moved, _ = preprocess(x, Preprocessing(dtype="float64", centre=True, normalise=False))
    unit, _ = preprocess(x, Preprocessing(clip_quantile=0.8, clip_over="items"))

    np.testing.assert_allclose(x - x.mean(0), moved)
    np.testing.assert_allclose(np.ones(50), np.linalg.norm(unit, axis=1), rtol=1e-5)
    assert (np.float64, np.float32) == (moved.dtype, unit.dtype)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (np.ones((5, 2)), "all 5 items have the same"),
        (np.full((5, 2), np.inf), "finite"),
        (np.array([[0.0, 0.0], [1.0, 2.0]]), "item 0"),
        (np.ones(4), "matrix"),
    ],
)
def test_features_that_leave_nothing_to_compare_are_refused(bad, words):
    with pytest.raises(ForecastError, match=words):
        preprocess(bad, Preprocessing())
