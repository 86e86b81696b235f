import json

import numpy as np
import pytest

from forecast.content import content_path
from forecast.errors import ForecastError
from runner.experiment import run_experiment
from runner.settings import complete_settings
from runner.worlds.reference import REFERENCE

SMALL = {"good_view_fraction": 0.3, "n_samples": 640, "evaluation.draws": 2}


def run(seed: int = 0, **changes):
    return run_experiment(SMALL | changes, seed=seed, threads=1, progress=lambda done, planned: None)


def test_a_run_repeats_bit_for_bit_and_another_seed_does_not():
    same, again, other = run(1), run(1), run(2)

    np.testing.assert_array_equal(same.losses, again.losses)
    assert same.evaluations == again.evaluations
    assert same.evaluations != other.evaluations


def test_counters_count_pairs_tokens_and_steps():
    counters = run().counters

    assert (640, 640, 10) == (counters.samples_planned, counters.samples_seen, counters.steps)
    assert (192, 448) == (counters.good_pairs, counters.bad_pairs)
    assert 2 * 640 * 10 == counters.tokens_processed + counters.tokens_padded
    assert 0 < counters.unique_texts <= 640 + 192
    assert counters.tokens_unique >= 2 * counters.unique_texts
    assert counters.flops > 0


def test_the_quick_encoder_runs_too():
    outcome = run(encoder="ngram_bag", **{"view.length": 32})

    assert 4 == len(outcome.evaluations)


def test_image_designs_are_trained_but_not_scored_against_themselves():
    with pytest.raises(ForecastError, match="only text designs"):
        run_experiment(
            {"modality": "image", "good_view_fraction": 1.0, "n_samples": 64},
            seed=0,
            threads=1,
            progress=lambda done, planned: None,
        )


def test_the_shipped_reference_was_trained_by_the_recorded_recipe():
    recorded = json.loads((content_path("glyphs") / "reference.json").read_bytes())

    assert complete_settings(REFERENCE) == recorded["settings"]
