import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group
from sklearn.neighbors import NearestNeighbors

from forecast.errors import ForecastError
from runner.metrics.knn import mutual_knn_hits, nearest_neighbours
from runner.metrics.rotation import fit_rotation, retrieval_hits


def features(items: int, dimensions: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((items, dimensions)).astype(np.float32)


@pytest.mark.parametrize("items", [50, 2100])
def test_neighbours_equal_those_of_scikit_learn(items):
    x = features(items, 8)
    oracle = NearestNeighbors(n_neighbors=11, metric="cosine", algorithm="brute").fit(x)
    expected = [set(row) - {i} for i, row in enumerate(oracle.kneighbors(x, return_distance=False))]
    found = nearest_neighbours(x, 10)

    assert sum(len(e) == 10 for e in expected) == items
    assert expected == [set(row) for row in found]


def test_a_code_aligns_fully_with_its_rotation_and_scale():
    x = features(200, 16)
    turned = 3.0 * x @ ortho_group.rvs(16, random_state=0)

    np.testing.assert_array_equal(np.full(200, 10), mutual_knn_hits(x, turned.astype(np.float32)))


def test_independent_codes_score_chance():
    hits = [mutual_knn_hits(features(300, 16, s), features(300, 16, 1000 + s)).mean() / 10 for s in range(40)]

    assert np.mean(hits) == pytest.approx(10 / 299, abs=4 * np.std(hits) / np.sqrt(40))


@pytest.mark.parametrize(
    "bad",
    [np.zeros((50, 4)), np.full((50, 4), np.nan), np.ones((10, 4)), np.ones(50)],
    ids=["zero", "nan", "few", "flat"],
)
def test_features_without_a_cosine_or_too_few_are_refused(bad):
    with pytest.raises(ForecastError):
        nearest_neighbours(bad, 10)


def test_unpaired_sets_are_refused():
    with pytest.raises(ForecastError, match="differ in items"):
        mutual_knn_hits(features(40, 4), features(41, 4))


def test_the_rotation_equals_scipys_and_undoes_a_known_one():
    x = features(100, 6) + 2
    turn = ortho_group.rvs(6, random_state=1)
    y = x @ turn + 5
    rotation = fit_rotation(x, y)
    expected, _ = orthogonal_procrustes(x - x.mean(0), y - y.mean(0))

    np.testing.assert_allclose(expected, rotation.matrix, atol=1e-4)
    np.testing.assert_allclose(turn, rotation.matrix, atol=1e-4)
    np.testing.assert_allclose(y, rotation(x), atol=1e-4)


def test_the_rotation_between_different_dimensions_keeps_lengths():
    matrix = fit_rotation(features(80, 4), features(80, 9, 1)).matrix

    np.testing.assert_allclose(np.eye(4), matrix @ matrix.T, atol=1e-5)


def test_a_rotation_without_pairs_is_refused():
    with pytest.raises(ForecastError, match="same >= 2 rows"):
        fit_rotation(features(5, 3), features(4, 3))


def test_retrieval_counts_own_row_among_the_nearest():
    gallery = features(60, 8)
    swapped = gallery.copy()
    swapped[[0, 1]] = gallery[[1, 0]]

    np.testing.assert_array_equal(np.ones(60), retrieval_hits(gallery, gallery))
    np.testing.assert_array_equal([0, 0, *[1] * 58], retrieval_hits(swapped, gallery))
    assert retrieval_hits(swapped, gallery, at=60).all()


def test_a_collapsed_code_retrieves_nothing():
    constant = np.ones((30, 4))

    assert retrieval_hits(constant, constant).sum() == 0
