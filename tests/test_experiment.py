import json
from pathlib import Path

import numpy as np
import pytest

from forecast.content import content_path
from forecast.errors import ForecastError
from runner.checkpoint import Checkpoint
from runner.experiment import run_experiment
from runner.settings import complete_settings
from runner.stopping import Stop, StopRequest
from runner.worlds.reference import REFERENCE

SMALL = {"good_view_fraction": 0.3, "n_samples": 640, "evaluation.draws": 2}


def run(seed: int = 0, *, checkpoint: Checkpoint | None = None, **changes):
    progress = lambda done, planned: None  # noqa: E731
    return run_experiment(SMALL | changes, seed=seed, threads=1, progress=progress, checkpoint=checkpoint)


def test_a_run_repeats_bit_for_bit_and_another_seed_does_not():
    same, again, other = run(1), run(1), run(2)

    np.testing.assert_array_equal(same.losses, again.losses)
    assert same.evaluations == again.evaluations
    assert same.evaluations != other.evaluations


def stopped_and_resumed(tmp_path: Path, after: int, **changes):
    """A run that is told to stop at its `after`-th step, by the contract that jobs keep, and goes on."""

    request = StopRequest()
    kept = Checkpoint(tmp_path / "checkpoint", request, spec_hash="a" * 64)
    steps = 0

    class Counting(Checkpoint):
        @property
        def due(self) -> bool:
            nonlocal steps
            steps += 1
            request.cause = "preempted" if steps == after else None
            return super().due

    with pytest.raises(Stop):
        run(1, checkpoint=Counting(tmp_path / "checkpoint", request, spec_hash="a" * 64), **changes)
    request.cause = None
    return run(1, checkpoint=kept, **changes)


@pytest.mark.parametrize("changes", [{}, {"encoder": "ngram_bag", "view.length": 32, "seed.streams": "separate"}])
def test_a_stopped_run_goes_on_to_the_undisturbed_result(tmp_path, changes):
    resumed, undisturbed = (
        stopped_and_resumed(tmp_path, int(np.random.default_rng().integers(1, 10)), **changes),
        run(1, **changes),
    )
    timeless = {"wall_s": None, "cpu_s": None}

    np.testing.assert_array_equal(undisturbed.losses, resumed.losses)
    assert undisturbed.evaluations == resumed.evaluations
    assert undisturbed.counters.model_copy(update=timeless) == resumed.counters.model_copy(update=timeless)


def test_a_checkpoint_of_another_run_is_not_taken_over(tmp_path):
    stopped_and_resumed(tmp_path, 3)
    other = Checkpoint(tmp_path / "checkpoint", StopRequest(), spec_hash="b" * 64)

    np.testing.assert_array_equal(run(1).losses, run(1, checkpoint=other).losses)


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
