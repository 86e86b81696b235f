import pytest

from forecast.errors import ForecastError
from forecast.records import Design
from runner.settings import complete_settings
from runner.worlds.glyphs import load_glyphs

SMALLEST = {"good_view_fraction": 0.5, "n_samples": 1000}


def test_defaults_and_hashes_are_filled_in():
    full = complete_settings(SMALLEST)

    assert load_glyphs().hash == full["world.hash"]
    assert load_glyphs().reference_hash == full["reference.hash"]
    assert full["encoder"] == "transformer"


def test_a_stated_default_and_an_unstated_one_are_one_design():
    stated = complete_settings(SMALLEST | {"encoder.width": 64, "good_view_fraction": 0.5})

    assert Design(settings=complete_settings(SMALLEST)).hash == Design(settings=stated).hash


def test_completing_twice_changes_nothing():
    full = complete_settings(SMALLEST)

    assert full == complete_settings(full)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"encoder.widht": 64}, "did you mean 'encoder.width'"),
        ({"encoder": "lstm"}, "not one of transformer, ngram_bag"),
        ({"modality": "sound"}, "not one of text, image"),
        ({"encoder.width": "wide"}, "of the kind of its default"),
        ({"batch_size": 2.5}, "of the kind of its default"),
        ({"world.hash": "0" * 64}, "not the same test items"),
        ({"n_samples": None}, "needs n_samples"),
        ({"good_view_fraction": None}, "needs good_view_fraction"),
        ({"seed": 3}, "unknown setting 'seed'"),
    ],
)
def test_wrong_settings_are_refused_by_name(changes, words):
    with pytest.raises(ForecastError, match=words):
        complete_settings(SMALLEST | changes)


def test_an_option_is_part_of_a_design_only_where_it_is_given():
    plain = complete_settings({"good_view_fraction": 1.0, "n_samples": 1000})
    chosen = complete_settings({"good_view_fraction": 1.0, "n_samples": 1000, "precision": "bfloat16", "seed.init": 3})

    assert not {"precision", "compiled", "seed.streams", "seed.init"} & set(plain)
    assert ("bfloat16", 3) == (chosen["precision"], chosen["seed.init"])
    with pytest.raises(ForecastError, match=r"precision = 'int8' is not one of float32, bfloat16"):
        complete_settings({"good_view_fraction": 1.0, "n_samples": 1000, "precision": "int8"})
