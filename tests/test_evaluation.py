import dataclasses

import numpy as np
import pytest

from forecast.code import evaluation_code_hash, own_root
from forecast.errors import ForecastError
from forecast.records import Evaluation, Metric
from runner.evaluation import PRIMARY, caption_draws, evaluate_text
from runner.settings import complete_settings
from runner.worlds.glyphs import load_glyphs

FULL = complete_settings({"good_view_fraction": 1.0, "n_samples": 1000, "evaluation.draws": 4})


def scores(codes: np.ndarray) -> dict[str, float]:
    return {e.metric.name: e.value for e in evaluate_text(codes.astype(np.float32), load_glyphs(), FULL)}


def test_texts_that_carry_their_scenes_reference_score_one_everywhere():
    world = load_glyphs()

    assert {1.0} == set(scores(world.reference[world.tokens.scene]).values())


def test_random_codes_score_chance_on_every_metric():
    world = load_glyphs()
    rng = np.random.default_rng(0)
    for evaluation in evaluate_text(rng.standard_normal((len(world.texts), 64)), world, FULL):
        chance = evaluation.metric.chance

        assert evaluation.value == pytest.approx(chance, abs=0.5 * chance + 0.004)


def test_value_is_the_share_of_hits_and_chance_is_stated():
    world = load_glyphs()
    codes = np.random.default_rng(1).standard_normal((len(world.texts), 64))
    for evaluation in evaluate_text(codes, world, FULL):
        assert evaluation.value == sum(evaluation.hits) / (len(evaluation.hits) * evaluation.trials)
        if evaluation.metric.name == PRIMARY:
            assert evaluation.metric.chance == 10 / 299
            assert len(evaluation.hits) == 300


def test_every_score_names_the_code_that_made_it_and_the_last_state():
    world = load_glyphs()
    found = evaluate_text(np.random.default_rng(0).normal(size=(len(world.texts), 8)), world, FULL)

    assert {evaluation_code_hash(own_root())} == {evaluation.code_hash for evaluation in found}
    assert {None} == {evaluation.checkpoint for evaluation in found}


def test_each_scene_speaks_with_one_of_its_own_texts_and_draws_belong_to_the_design():
    table = load_glyphs().tokens
    rows = caption_draws(table, draws=5, seed=0)

    np.testing.assert_array_equal(np.tile(np.arange(len(table.count)), (5, 1)), table.scene[rows])
    np.testing.assert_array_equal(rows, caption_draws(table, draws=5, seed=0))
    assert not np.array_equal(rows, caption_draws(table, draws=5, seed=1))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"hits": (-5, 11)}, "0 .. 4"),
        ({"hits": (3, 5)}, "0 .. 4"),
        ({"hits": ()}, "at least one item"),
        ({"value": 0.9}, "is not what its hits give, 0.75"),
    ],
)
def test_hits_that_contradict_the_value_are_refused(fields, message):
    good = {"metric": Metric(name="m"), "value": 0.75, "hits": (2, 4), "trials": 4}

    assert Evaluation(**good)
    with pytest.raises(ValueError, match=message):
        Evaluation(**(good | fields))


def test_a_world_without_a_reference_is_refused():
    world = dataclasses.replace(load_glyphs(), reference=None, reference_hash=None)

    with pytest.raises(ForecastError, match="no reference features"):
        evaluate_text(np.ones((len(world.texts), 4)), world, FULL)
