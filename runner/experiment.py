"""One run: a design's settings and a seed in, evaluations and counters out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from forecast.errors import ForecastError
from forecast.records import Counters, Evaluation, Scalar
from runner.evaluation import evaluate_text
from runner.settings import complete_settings
from runner.sides import Side, image_side, text_side
from runner.training import Recipe, Trained, train
from runner.worlds.glyphs import load_glyphs

__all__ = ["Outcome", "run_experiment"]

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Outcome:
    """What a run leaves: scores, what it consumed, the world's hash, the loss of each step (steps, 3)."""

    evaluations: tuple[Evaluation, ...]
    counters: Counters
    data_hash: str
    losses: np.ndarray[Any, Any]


def run_experiment(settings: Mapping[str, Scalar], *, seed: int, threads: int, progress: Progress) -> Outcome:
    """Train and score one design with one seed; bit-equal when repeated on one machine with one thread.

    settings: as a Design holds them, completed by `complete_settings`. seed: of weights, order, views and slices.
    Raises ForecastError for an unknown setting, another world than the settings name, or divergence.
    """
    torch.set_num_threads(threads)
    full = complete_settings(settings)
    world = load_glyphs()
    if full["modality"] != "text":
        raise ForecastError("only text designs are scored against the reference; image designs make it")
    started, cpu = time.perf_counter(), time.process_time()
    side, trained = train_side(full, seed=seed, progress=progress)
    evaluations = evaluate_text(side.codes(), world, full)
    return Outcome(
        evaluations=evaluations,
        counters=_counters(full, side, trained, time.perf_counter() - started, time.process_time() - cpu),
        data_hash=world.hash,
        losses=trained.losses,
    )


def train_side(full: Mapping[str, Any], *, seed: int, progress: Progress) -> tuple[Side, Trained]:
    """The encoder of one modality, trained; every random stream follows from `seed`."""
    weights, order, slices = np.random.SeedSequence(seed).spawn(3)
    make: Callable[..., Side] = text_side if full["modality"] == "text" else image_side
    side = make(load_glyphs(), full, rng=np.random.default_rng(order), generator=_generator(weights))
    recipe = Recipe(
        n_samples=full["n_samples"],
        batch_size=full["batch_size"],
        learning_rate=full["optimiser.learning_rate"],
        weight_decay=full["optimiser.weight_decay"],
        warmup=full["optimiser.warmup"],
        sigreg_weight=full["sigreg.weight"],
        sigreg_directions=full["sigreg.directions"],
    )
    return side, train(side.encoder, side.draw, recipe, generator=_generator(slices), progress=progress)


def _generator(stream: np.random.SeedSequence) -> torch.Generator:
    return torch.Generator().manual_seed(int(stream.generate_state(1, np.uint64)[0] >> 1))


def _counters(full: Mapping[str, Any], side: Side, trained: Trained, wall: float, cpu: float) -> Counters:
    counts = side.pairs.counts
    views = 2 * full["n_samples"]
    sigreg = 2 * views * full["encoder.code"] * full["sigreg.directions"]
    return Counters(
        samples_planned=full["n_samples"],
        samples_seen=counts.good_pairs + counts.bad_pairs,
        steps=trained.steps,
        scenes=len(side.pairs.scenes),
        unique_texts=int(counts.seen.sum()) if full["modality"] == "text" else None,
        good_pairs=counts.good_pairs,
        bad_pairs=counts.bad_pairs,
        tokens_unique=side.unique_tokens(),
        tokens_processed=counts.tokens_processed or None,
        tokens_padded=counts.tokens_padded or None,
        flops=3 * (side.forward_flops(views) + sigreg),
        wall_s=round(wall, 3),
        cpu_s=round(cpu, 3),
    )
