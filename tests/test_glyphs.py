import hashlib
import json
import shutil

import numpy as np
import pytest

from forecast.content import content_path
from forecast.errors import ForecastError
from runner.worlds.glyphs import load_glyphs, ngram_table
from runner.worlds.glyphs_build import TEST_SCENES
from runner.worlds.glyphs_sources import SOURCES, find_tarball
from runner.worlds.reference import scene_features


def scenes() -> list[dict]:
    return [json.loads(line) for line in (content_path("glyphs") / "scenes.jsonl").read_text("utf-8").splitlines()]


def test_the_split_is_that_of_the_smallest_hashes():
    ranked = sorted(scenes(), key=lambda s: hashlib.sha256(f"glyphs-1/{s['scene']}".encode()).hexdigest())

    assert TEST_SCENES == 300
    assert {s["scene"] for s in ranked[:300]} == {s["scene"] for s in scenes() if s["split"] == "test"}


def test_arrays_and_scenes_agree():
    world, listed = load_glyphs(), scenes()
    row = 5000
    scene = listed[world.tokens.scene[row]]

    assert len(listed) == len(world.test) == len(world.pixels)
    assert world.texts[row] in scene["texts"].values()
    np.testing.assert_array_equal([s["split"] == "test" for s in listed], world.test)
    np.testing.assert_array_equal([len(s["texts"]) for s in listed], world.tokens.count)
    np.testing.assert_array_equal((world.tokens.ids != 0).sum(axis=1), world.tokens.length)


def test_no_scene_is_a_flag_or_has_a_skin_tone_and_each_has_three_drawings():
    points = [int(part, 16) for scene in scenes() for part in scene["scene"].split("-")]

    assert not any(0x1F1E6 <= p <= 0x1F1FF or 0x1F3FB <= p <= 0x1F3FF for p in points)
    assert load_glyphs().drawn.sum(axis=1).min() >= 3
    assert load_glyphs().tokens.count.min() >= 12


def test_the_card_names_every_source_with_licence_and_hash():
    card = (content_path("glyphs") / "README.md").read_text("utf-8")

    assert len(SOURCES) == 7
    for source in SOURCES.values():
        assert f"`{source.package}` {source.version}" in card
        assert source.licence in card
        assert source.sha256 in card


def test_a_changed_file_is_refused(tmp_path):
    shutil.copytree(content_path("glyphs"), tmp_path / "glyphs")
    file = tmp_path / "glyphs" / "scenes.jsonl"
    file.write_bytes(file.read_bytes().replace(b"train", b"test!", 1))

    with pytest.raises(ForecastError, match="its manifest says"):
        load_glyphs(tmp_path / "glyphs")


def test_a_changed_reference_is_refused(tmp_path):
    shutil.copytree(content_path("glyphs"), tmp_path / "glyphs")
    file = tmp_path / "glyphs" / "reference.npy"
    file.write_bytes(file.read_bytes()[:-4] + b"\0\0\0\0")

    with pytest.raises(ForecastError, match="its record says"):
        load_glyphs(tmp_path / "glyphs")


def test_a_source_package_of_another_content_is_refused(tmp_path):
    (tmp_path / SOURCES["emojilib"].tarball).write_bytes(b"not it")

    with pytest.raises(ForecastError, match="fetch it afresh"):
        find_tarball("emojilib", tmp_path)


def test_ngrams_of_a_text_are_its_words_and_trigrams():
    table = ngram_table(load_glyphs())

    assert table.ids.shape == (len(load_glyphs().texts), 64)
    assert int(table.ids.max()) < table.vocabulary
    np.testing.assert_array_equal((table.ids != 0).sum(axis=1), table.length)


def test_scene_features_average_existing_drawings_only():
    codes = np.array([[1.0], [100.0], [3.0], [5.0]])
    drawn = np.array([[True, False], [True, True]])

    np.testing.assert_array_equal([[1.0], [4.0]], scene_features(codes, drawn))
