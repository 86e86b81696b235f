"""A built caption corpus as a world: what is trained on, what is scored, and features matched by id."""

import numpy as np
import pytest
from corpus_files import built, features

from forecast.errors import ForecastError
from runner.corpora.places import PLACES, manifest_of
from runner.corpora.reference import add_reference, load_reference, references_of, scene_ids
from runner.views import TextPairs
from runner.worlds.captions import PackedRows, load_captions, name_corpus, only_reference


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return built(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def world(corpus, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv(PLACES, raising=False)
    return load_captions(*name_corpus(str(corpus)))


def test_packed_rows_are_the_padded_ones():
    packed = PackedRows(np.arange(1, 7, dtype=np.uint16), np.array([0, 2, 3, 6]), 3)

    assert [[4, 5, 6], [1, 2, 0], [4, 5, 6]] == packed[np.array([2, 0, 2])].tolist()
    assert (3, 3) == packed.shape == (len(packed), packed[np.array([1])].shape[1])
    assert (0, 3) == packed[np.array([], np.int64)].shape


def test_test_scenes_are_scored_and_never_trained_on(corpus, world):
    split = np.load(corpus / "split.npy")

    assert set(np.flatnonzero(split == 1)) == set(world.scored[world.test])
    assert set(np.flatnonzero(split == 0)) == set(world.train) >= set(world.scored[~world.test])
    assert len(world.reference) == len(world.scored) == len(world.overlap)
    assert not world.overlap[~world.test].any()
    assert "human (sentences)" == world.text_authors
    assert manifest_of(corpus)[1] == world.hash


def test_scored_texts_and_features_are_those_of_their_scene(corpus, world):
    ids = scene_ids(corpus)
    first = np.load(corpus / "first.npy")
    expected = features(corpus.parent / "again.npz", ids)
    for place in (0, 3, len(world.scored) - 1):
        scene = world.scored[place]
        rows = world.tokens.first[place] + np.arange(world.tokens.count[place])

        np.testing.assert_array_equal(
            world.table.ids[np.arange(first[scene], first[scene + 1])], world.tokens.ids[rows]
        )
        np.testing.assert_allclose(expected[scene], world.reference[place], atol=1e-6)


def test_pairs_are_drawn_from_a_corpus_as_from_a_table_in_memory(world):
    def draw(g):
        settings = {"good_view_fraction": g, "mask_rate": 0.0, "view_length": world.table.ids.shape[1]}
        return TextPairs(world.table, world.train, rng=np.random.default_rng(0), **settings).draw(60)[0]

    good, bad = draw(1.0), draw(0.0)

    assert (good[0] != good[1]).any(axis=1).all()
    np.testing.assert_array_equal(bad[0], bad[1])


def test_a_changed_file_or_reference_is_refused(corpus, tmp_path, monkeypatch):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(corpus, copy)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv(PLACES, str(copy))
    digest, reference = manifest_of(copy)[1], only_reference(copy)
    load_captions.cache_clear()
    stored = copy / "reference" / "toy.npz"
    with np.load(stored) as arrays:
        kept = dict(arrays)
    np.savez(stored, features=kept["features"] + 1, rows=kept["rows"])
    with pytest.raises(ForecastError, match="its record says"):
        load_reference(copy, reference)
    (copy / "split.npy").write_bytes(b"other")
    with pytest.raises(ForecastError, match="not the file that the manifest names"):
        load_captions(digest, reference)


def test_a_corpus_without_one_clear_reference_says_what_to_do(corpus, tmp_path):
    bare = built(tmp_path, reference=False)

    with pytest.raises(ForecastError, match="platocast world reference"):
        only_reference(bare)
    with pytest.raises(ForecastError, match="no reference with the hash"):
        load_reference(bare, "0" * 64)
    ids = scene_ids(bare)
    features(tmp_path / "f.npz", ids)
    add_reference(bare, tmp_path / "f.npz", name="one")
    features(tmp_path / "g.npz", ids[:-1])
    add_reference(bare, tmp_path / "g.npz", name="two")
    assert {"one", "two"} == set(references_of(bare))
    with pytest.raises(ForecastError, match="several references"):
        only_reference(bare)


def test_rows_are_matched_by_id_whatever_their_order(corpus, tmp_path):
    bare = built(tmp_path, reference=False)
    ids = scene_ids(bare)
    array = features(tmp_path / "f.npz", ids).astype(np.float32)
    record = add_reference(bare, tmp_path / "f.npz", name="in_order")
    order = np.random.default_rng(0).permutation(len(ids))
    np.save(tmp_path / "mixed.npy", array[order])
    (tmp_path / "ids.txt").write_text("".join(ids[k] + "\n" for k in order))
    mixed = add_reference(bare, tmp_path / "mixed.npy", name="mixed", ids=tmp_path / "ids.txt")

    assert record["sha256"] == mixed["sha256"]
    assert mixed["source"]["sha256"] != record["source"]["sha256"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda ids: [*ids[:-1], ids[0]], "stands twice"),
        (lambda ids: [*ids[:-1], "stranger 1"], "are no scene of the corpus"),
        (lambda ids: ids[10:], "test scenes, the first"),
    ],
)
def test_rows_that_do_not_match_the_scenes_are_refused(tmp_path, change, words):
    bare = built(tmp_path, reference=False)
    features(tmp_path / "f.npz", change(scene_ids(bare)))

    with pytest.raises(ForecastError, match=words):
        add_reference(bare, tmp_path / "f.npz", name="bad")
    assert {} == references_of(bare)


def test_features_without_ids_are_refused(corpus, tmp_path):
    np.save(tmp_path / "f.npy", np.ones((160, 4), np.float32))

    with pytest.raises(ForecastError, match="--ids"):
        add_reference(corpus, tmp_path / "f.npy", name="bad")
    (tmp_path / "ids.txt").write_text("000000.jpg\n")
    with pytest.raises(ForecastError, match="160 rows, but there are 1 ids"):
        add_reference(corpus, tmp_path / "f.npy", name="bad", ids=tmp_path / "ids.txt")
