"""The scenes world: its law in closed form against brute force, and that captions and pictures follow it."""

import itertools

import numpy as np
import pytest

from forecast.errors import ForecastError
from runner.worlds.distinct import DistinctRows, row_hashes
from runner.worlds.scenes import load_scenes
from runner.worlds.scenes_law import Attribute, SceneLaw
from runner.worlds.scenes_pairs import ScenePairs, ScenePicturePairs
from runner.worlds.scenes_pictures import render
from runner.worlds.scenes_text import COLOURS, HEIGHTS, SHAPES
from runner.worlds.skipgrams import skipgrams

SMALL = {"scenes.shapes": 2, "scenes.colours": 2, "scenes.test": 12}
LAW = SceneLaw(
    [
        Attribute("kind", (0, 0, 1), (0.5, 0.2, 0.3), 0.2, 0.4),
        Attribute("tint", (0, 1), (0.6, 0.4), 0.35, 0.1),
    ],
    styles=2,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_closed_form_spectrum_is_the_enumerated_one():
    normalised = np.sqrt(LAW.prior)[:, None] * LAW.channel / np.sqrt(LAW.prior @ LAW.channel)
    enumerated = np.linalg.svd(normalised, compute_uv=False) ** 2

    np.testing.assert_allclose(LAW.spectrum(), enumerated, atol=1e-12)


def test_functions_are_orthonormal_and_eigenfunctions_of_two_observations():
    functions, marginal = LAW.functions(5), LAW.prior @ LAW.channel
    back = LAW.channel @ (LAW.channel.T * LAW.prior / marginal[:, None])

    np.testing.assert_allclose(functions.T @ (LAW.prior[:, None] * functions), np.eye(5), atol=1e-12)
    np.testing.assert_allclose(back @ functions, functions * LAW.spectrum()[1:], atol=1e-12)


def test_features_are_the_scene_means_of_the_best_code_up_to_a_rotation():
    marginal = LAW.prior @ LAW.channel
    right = np.linalg.svd(np.sqrt(LAW.prior)[:, None] * LAW.channel / np.sqrt(marginal))[2]
    code = (right.T / np.sqrt(marginal)[:, None])[:, 1:6]
    means = LAW.channel @ code

    np.testing.assert_allclose(means @ means.T, LAW.features(5) @ LAW.features(5).T, atol=1e-10)


def test_pair_laws_sum_to_one_share_their_margins_and_mix_linearly():
    good, bad = LAW.good_joint(mask=0.3), LAW.bad_joint(mask=0.3)

    assert pytest.approx(1) == good.sum()
    np.testing.assert_allclose(good, good.T)
    np.testing.assert_allclose(good.sum(axis=1), bad.sum(axis=1))
    np.testing.assert_allclose(LAW.joint(0.25, mask=0.3), 0.25 * good + 0.75 * bad)
    np.testing.assert_allclose(LAW.good_joint(), LAW.channel.T @ (LAW.prior[:, None] * LAW.channel))


def test_only_bad_pairs_keep_the_style():
    """The nuisance of the theorem: of the style, a bad pair of unmasked views keeps all, a good one nothing."""
    style = np.where(np.arange(LAW.observations) % 2 == 0, 1.0, -1.0)

    assert pytest.approx(0) == style @ LAW.good_joint() @ style
    assert pytest.approx(1) == style @ LAW.bad_joint() @ style
    assert pytest.approx(0.49) == style @ LAW.bad_joint(mask=0.3) @ style


def test_a_rank_is_complete_only_where_a_gap_follows():
    spectrum = LAW.spectrum()
    complete = [k for k in range(1, 6) if k == 5 or spectrum[k] - spectrum[k + 1] > 1e-12]

    assert max(k for k in complete if k <= 4) == LAW.complete_rank(4)
    assert LAW.gap(LAW.complete_rank(4)) > 0
    with pytest.raises(ForecastError, match="no gap"):
        SceneLaw([Attribute("a", (0, 0, 0), (0.4, 0.3, 0.3), 0.1, 0.0)]).complete_rank(1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shares": (0.5, 0.4)}, "sum to 1"),
        ({"groups": (0, 2)}, "groups must be"),
        ({"omitted": 1.0}, "omitted must lie"),
        ({"groups": (0,), "shares": (1.0,)}, "at least two values"),
    ],
)
def test_impossible_attributes_are_refused(changes, words):
    settings = {"name": "a", "groups": (0, 1), "shares": (0.5, 0.5), "omitted": 0.1, "coarse": 0.1}

    with pytest.raises(ForecastError, match=words):
        Attribute(**settings | changes)


def test_a_law_too_large_for_a_matrix_says_so_but_keeps_its_closed_form():
    law = load_scenes({}).law

    with pytest.raises(ForecastError, match="closed form"):
        law.good_joint()
    assert 3888 == len(law.spectrum()) == law.scenes


def heard(text: str, world) -> list[int]:
    """What a caption says, read from its words by this test's own reading: one number an attribute."""
    said = [attribute.says - 1 for attribute in world.law.attributes]
    side = None
    for word in text.split():
        if word in ("left", "leftmost", "right", "rightmost"):
            side = 0 if word.startswith("left") else 1
        for column, (values, groups) in enumerate((SHAPES, COLOURS, HEIGHTS)):
            attribute = (column if side is None else 2 * side + column) if column < 2 else 4
            for number, names in enumerate(values):
                if word in names:
                    said[attribute] = number
            for number, names in enumerate(groups):
                if word in names:
                    said[attribute] = world.law.attributes[attribute].values + number
    return said


def test_a_caption_says_what_it_is_to_say_and_no_more():
    world, random = load_scenes({}), rng()
    scenes = world.draw(400, random)
    said = world.grammar.said(world.values[scenes], random)
    captions = world.grammar.captions(said, random)

    assert said.tolist() == [heard(world.grammar.text(row), world) for row in captions]


def test_captions_follow_the_channel_and_scenes_their_prior():
    world = load_scenes(SMALL)
    scene = world.train[7]
    said = world.grammar.said(np.tile(world.values[scene], (40_000, 1)), rng())
    for column, attribute in enumerate(world.law.attributes):
        shares = np.bincount(said[:, column], minlength=attribute.says) / len(said)

        np.testing.assert_allclose(attribute.channel[world.values[scene, column]], shares, atol=0.012)

    drawn = np.bincount(world.draw(40_000, rng()), minlength=world.law.scenes) / 40_000
    expected = np.where(np.isin(np.arange(world.law.scenes), world.train), world.law.prior, 0)
    np.testing.assert_allclose(expected / expected.sum(), drawn, atol=0.006)


def test_captions_of_one_scene_differ_in_words_order_and_length():
    world = load_scenes({})
    texts = {world.grammar.text(row) for row in world.captions(np.full(200, world.train[0]), rng())}

    assert len(texts) > 150
    assert {"left", "on", "leftmost", "right", "rightmost"} <= {text.split()[0] for text in texts}


def test_the_world_follows_from_its_seed_and_its_settings():
    one, same, other = (
        load_scenes(SMALL),
        load_scenes(SMALL | {"n_samples": 5}),
        load_scenes(SMALL | {"scenes.seed": 1}),
    )

    assert one.hash == same.hash
    assert one.hash != other.hash
    assert one.hash != load_scenes(SMALL | {"scenes.omitted": 0.2}).hash
    assert one.reference_hash != load_scenes(SMALL | {"scenes.rank": 3}).reference_hash
    assert not np.array_equal(one.train, other.train)


def test_no_scored_test_scene_is_ever_trained_on():
    world = load_scenes(SMALL)
    drawn = set(world.draw(5000, rng()).tolist())

    assert 12 == world.test.sum()
    assert set() == drawn & set(world.scored[world.test].tolist())
    assert set(world.train.tolist()) == drawn


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scenes.shapes": 3}, "must be 2, 4 or 6"),
        ({"scenes.omitted": 0.7}, "scenes.omitted must lie"),
        ({"scenes.test": 4000}, "scenes.test must lie"),
        ({"scenes.coarse": 1.0}, "coarse must lie"),
    ],
)
def test_settings_of_no_world_are_refused(changes, words):
    with pytest.raises(ForecastError, match=words):
        load_scenes(changes)


def scene_pairs(g: float, *, bag: bool = False, seed: int = 0, **changes) -> ScenePairs:
    settings = {"mask_rate": 0.0, "view_length": 66 if bag else 19} | changes
    return ScenePairs(load_scenes({}), good_view_fraction=g, bag=bag, rng=rng(seed), **settings)


def test_good_pairs_are_two_captions_of_one_scene_and_bad_pairs_one_caption():
    world = load_scenes({})
    good, _ = scene_pairs(1.0).draw(300)
    bad, _ = scene_pairs(0.0).draw(300)
    said = [[heard(world.grammar.text(row), world) for row in side] for side in good]

    assert (good[0] != good[1]).any(axis=1).mean() > 0.9
    np.testing.assert_array_equal(bad[0], bad[1])
    for one, two in zip(*said, strict=True):
        for attribute, a, b in zip(world.law.attributes, one, two, strict=True):
            if a < attribute.values and b < attribute.values:
                assert a == b


def test_the_share_of_good_pairs_is_exact_and_views_are_masked():
    pairs = scene_pairs(0.3, mask_rate=0.5, view_length=10)
    ids = np.concatenate([pairs.draw(size)[0] for size in (7, 64, 29)], axis=1)

    assert (30, 70) == (pairs.counts.good_pairs, pairs.counts.bad_pairs)
    assert pairs.counts.tokens_processed + pairs.counts.tokens_padded == 2 * 100 * 10
    assert (ids != 0).any(axis=2).all()


def test_the_bag_sees_words_and_pairs_of_words():
    pairs = scene_pairs(0.5, bag=True)
    ids, _ = pairs.draw(50)

    assert (2, 50, 66) == ids.shape
    assert pairs.unique_texts() <= 75
    with pytest.raises(ForecastError, match=r"1 \.\. 70"):
        scene_pairs(0.5, bag=True, view_length=71)


def test_skipgrams_are_the_tokens_and_their_pairs_up_to_three_apart():
    rows = np.array([[5, 6, 7, 8, 9], [5, 6, 0, 0, 0]])
    grams = skipgrams(rows)
    pairs_of_five = sum(1 for a, b in itertools.combinations(range(5), 2) if b - a <= 3)

    assert [5 + pairs_of_five, 3] == (grams != 0).sum(axis=1).tolist()
    assert set(grams[1][:3]) <= set(grams[0].tolist())
    assert not np.array_equal(skipgrams(np.array([[5, 6]])), skipgrams(np.array([[6, 5]])))


def test_different_rows_are_counted_once_whatever_their_padding():
    counter, rows = DistinctRows(), rng().integers(1, 50, (3000, 4))
    counter.add(rows)
    counter.add(np.pad(rows[:500], ((0, 0), (0, 3))))
    again = DistinctRows()
    again.restore(counter.state())
    again.add(np.array([[99, 0]]))

    assert len(np.unique(rows, axis=0)) == counter.rows
    assert 4 * counter.rows == counter.tokens
    assert counter.rows + 1 == again.rows
    assert row_hashes(np.array([[1, 2]])) != row_hashes(np.array([[2, 1]]))


def test_pictures_show_the_colours_and_heights_of_their_scene():
    values = np.array([[0, 0, 2, 2, 0], [0, 0, 2, 2, 1]]).repeat(30, axis=0)
    pictures = render(values, rng()).astype(int)
    red = (pictures[..., 0] > 150) & (pictures[..., 2] < 110)
    blue = (pictures[..., 2] > 150) & (pictures[..., 0] < 110)
    columns, lines = np.arange(32), np.arange(32)

    assert (red.any(axis=(1, 2)) & blue.any(axis=(1, 2))).all()
    assert ((red.sum(axis=1) * columns).sum(axis=1) / red.sum(axis=(1, 2)) < 16).all()
    assert ((blue.sum(axis=1) * columns).sum(axis=1) / blue.sum(axis=(1, 2)) > 16).all()
    middle = (red.sum(axis=2) * lines).sum(axis=1) / red.sum(axis=(1, 2))
    assert (middle[:30] < 16).all()
    assert (middle[30:] > 16).all()


def test_every_shape_looks_different_and_no_picture_comes_twice():
    values = np.array([[shape, 4, 0, 5, 2] for shape in range(6)])
    one, two = render(values, rng(1)), render(values, rng(2))
    left = one[:, :, :16].astype(int)

    assert all((left[a] != left[b]).any() for a, b in itertools.combinations(range(6), 2))
    assert not np.array_equal(one, two)
    np.testing.assert_array_equal(one, render(values, rng(1)))


def test_bad_picture_pairs_are_one_picture_and_good_ones_two():
    settings = {"least_side": 0.6}
    good, windows = ScenePicturePairs(load_scenes({}), good_view_fraction=1.0, rng=rng(), **settings).draw(20)
    bad, _ = ScenePicturePairs(load_scenes({}), good_view_fraction=0.0, rng=rng(), **settings).draw(20)

    assert (2, 20, 32, 32, 3) == good.shape
    assert (2, 20, 6) == windows.shape
    assert (good[0] != good[1]).any(axis=(1, 2, 3)).all()
    np.testing.assert_array_equal(bad[0], bad[1])
