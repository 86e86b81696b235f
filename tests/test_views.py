import numpy as np
import pytest

from forecast.errors import ForecastError
from runner.views import ImagePairs, TextPairs, good_quota
from runner.worlds.glyphs import TextTable


def table() -> TextTable:
    """Three scenes of 4, 2 and 3 texts; text r holds the ids 100 r + 1 .. 100 r + length."""
    scene = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2])
    length = np.array([8, 6, 8, 1, 5, 8, 8, 7, 2])
    ids = np.where(np.arange(8) < length[:, None], 100 * np.arange(1, 10)[:, None] + np.arange(1, 9), 0)
    return TextTable.of(ids.astype(np.int32), length, scene, 1000)


def pairs(g: float, seed: int = 0, **changes) -> TextPairs:
    settings = {"good_view_fraction": g, "mask_rate": 0.5, "view_length": 4} | changes
    return TextPairs(table(), np.array([0, 1, 2]), rng=np.random.default_rng(seed), **settings)


def texts_of(ids: np.ndarray) -> np.ndarray:
    return ids.max(axis=-1) // 100


@pytest.mark.parametrize("g", [0.0, 0.1, 0.37, 0.5, 1.0])
def test_the_share_of_good_pairs_is_exact_over_any_run(g):
    drawn = pairs(g)
    for size in (7, 64, 13, 16):
        drawn.draw(size)

    assert round(g * 100) == drawn.counts.good_pairs
    assert drawn.counts.bad_pairs == 100 - drawn.counts.good_pairs


def test_quota_of_parts_adds_up_to_the_quota_of_the_whole():
    assert good_quota(0.3, 0, 1000) == sum(good_quota(0.3, first, 10) for first in range(0, 1000, 10))


def test_good_pairs_are_two_texts_of_one_scene():
    ids, _ = pairs(1.0).draw(500)
    one, two = texts_of(ids) - 1

    assert (one != two).all()
    np.testing.assert_array_equal(table().scene[one], table().scene[two])


def test_bad_pairs_are_two_maskings_of_one_text():
    ids, _ = pairs(0.0).draw(500)
    one, two = texts_of(ids)

    np.testing.assert_array_equal(one, two)
    assert (ids[0] != ids[1]).any(axis=1).mean() > 0.5


def test_a_view_keeps_half_the_tokens_rounded_up_in_order_with_their_positions():
    ids, positions = pairs(0.5).draw(300)
    rows = texts_of(ids) - 1
    kept = (ids != 0).sum(axis=-1)
    inside = ids != 0

    np.testing.assert_array_equal(np.ceil(table().length[rows] * 0.5), kept)
    np.testing.assert_array_equal((ids % 100 - 1)[inside], positions[inside])
    assert (np.diff(np.where(inside, ids, 10**6), axis=-1) >= 0).all()


def test_every_text_of_a_scene_is_drawn_equally_often():
    drawn = pairs(1.0)
    ids, _ = drawn.draw(30_000)
    shares = np.bincount(texts_of(ids).ravel() - 1, minlength=9)[:4] / (texts_of(ids) <= 4).sum()

    np.testing.assert_allclose(np.full(4, 0.25), shares, atol=0.01)
    assert drawn.counts.seen.all()


def test_one_seed_draws_one_sequence_and_another_seed_another():
    same, again, other = (pairs(0.5, seed).draw(50)[0] for seed in (1, 1, 2))

    np.testing.assert_array_equal(same, again)
    assert not np.array_equal(same, other)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"mask_rate": 1.0}, "mask_rate"), ({"view_length": 0}, "view_length"), ({"view_length": 9}, "view_length")],
)
def test_settings_outside_their_range_are_refused(changes, words):
    with pytest.raises(ForecastError, match=words):
        pairs(0.5, **changes)


def test_a_scene_with_one_text_cannot_make_good_pairs_but_can_make_bad_ones():
    lonely = TextTable.of(np.ones((2, 3), np.int32), np.array([3, 3]), np.array([0, 1]), 2)
    settings = {"mask_rate": 0.5, "view_length": 3, "rng": np.random.default_rng(0)}

    with pytest.raises(ForecastError, match="only one"):
        TextPairs(lonely, np.array([0, 1]), good_view_fraction=0.1, **settings)
    assert TextPairs(lonely, np.array([0, 1]), good_view_fraction=0.0, **settings).draw(4)[0].shape == (2, 4, 3)


def image_pairs(g: float, drawn: np.ndarray) -> ImagePairs:
    """Pixels of scene s by designer d all hold 10 s + d."""
    marks = 10 * np.arange(len(drawn))[:, None] + np.arange(drawn.shape[1])
    pixels = np.broadcast_to(marks[:, :, None, None, None], (*drawn.shape, 32, 32, 3)).astype(np.uint8)
    rng = np.random.default_rng(0)
    return ImagePairs(pixels, drawn, np.arange(len(drawn)), good_view_fraction=g, least_side=0.5, rng=rng)


def test_image_pairs_are_of_one_scene_and_of_existing_drawings_only():
    drawn = np.array([[True, False, True, True], [True, True, False, False]])
    good, windows = image_pairs(1.0, drawn).draw(400)
    bad, _ = image_pairs(0.0, drawn).draw(400)
    one, two = good[..., 0, 0, 0].astype(int)

    assert (one // 10 == two // 10).all()
    assert (one != two).all()
    assert drawn[one // 10, one % 10].all()
    np.testing.assert_array_equal(bad[0], bad[1])
    assert (np.abs(windows[..., :2]) <= 1 - windows[..., 2:3] + 1e-6).all()


def test_image_pairs_refuse_a_scene_with_one_drawing_unless_all_pairs_are_bad():
    drawn = np.array([[True, False], [True, True]])

    with pytest.raises(ForecastError, match="only one"):
        image_pairs(0.5, drawn)
    assert image_pairs(0.0, drawn).draw(3)[0].shape == (2, 3, 32, 32, 3)
