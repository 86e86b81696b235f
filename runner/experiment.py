"""One run: a design's settings and a seed in, evaluations and counters out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from forecast.errors import ForecastError
from forecast.records import Counters, Evaluation, Scalar
from runner.evaluation import evaluate_text
from runner.group import Group
from runner.health import Health
from runner.objectives import Jepa, Objective
from runner.settings import complete_settings
from runner.sides import Side, image_side, text_side
from runner.streams import Streams
from runner.training import Keeper, Recipe, Stopwatch, Trained, train
from runner.views import TextPairs
from runner.worlds.glyphs import load_glyphs

__all__ = ["Outcome", "run_experiment", "train_side"]

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Outcome:
    """What a run leaves: scores, what it consumed, the world's hash, the loss of each step (steps, parts).

    seeds: of each random stream. precision: of the matrix products. health: how training stood at some steps.
    A process that is not the first of its group has no scores.
    """

    evaluations: tuple[Evaluation, ...]
    counters: Counters
    data_hash: str
    losses: np.ndarray[Any, Any]
    seeds: Mapping[str, int] = field(default_factory=dict)
    precision: str = "float32"
    health: tuple[Health, ...] = ()


def run_experiment(
    settings: Mapping[str, Scalar], *, seed: int, threads: int, progress: Progress, checkpoint: Keeper | None = None
) -> Outcome:
    """Train and score one design with one seed; bit-equal when repeated on one machine with one thread.

    settings: as a Design holds them, completed by `complete_settings`. seed: of weights, order, views and slices.
    checkpoint: a run that was stopped and goes on from it is bit-equal to an undisturbed one (on the CPU).
    Raises ForecastError for an unknown setting, another world than the settings name, or divergence.
    """
    torch.set_num_threads(threads)
    clock = Stopwatch()
    full = complete_settings(settings)
    world = load_glyphs()
    if full["modality"] != "text":
        raise ForecastError("only text designs are scored against the reference; image designs make it")
    group = Group.here()
    streams = Streams.of(seed, full)
    side, trained = train_side(full, streams, progress=progress, group=group, keeper=checkpoint, clock=clock)
    evaluations = evaluate_text(side.codes(), world, full) if group.rank == 0 else ()
    return Outcome(
        evaluations=evaluations,
        counters=_counters(full, side, trained, group, clock),
        data_hash=world.hash,
        losses=trained.losses,
        seeds=streams.seeds,
        precision=full.get("precision", "float32"),
        health=trained.health,
    )


def train_side(
    full: Mapping[str, Any],
    streams: Streams,
    *,
    progress: Progress,
    group: Group | None = None,
    keeper: Keeper | None = None,
    clock: Stopwatch | None = None,
) -> tuple[Side, Trained]:
    """The encoder of one modality, trained."""
    group = group or Group()
    make: Callable[..., Side] = text_side if full["modality"] == "text" else image_side
    side = make(load_glyphs(), full, streams)
    recipe = Recipe(
        n_samples=full["n_samples"],
        batch_size=full["batch_size"],
        learning_rate=full["optimiser.learning_rate"],
        weight_decay=full["optimiser.weight_decay"],
        warmup=full["optimiser.warmup"],
        precision=full.get("precision", "float32"),
        compiled=full.get("compiled", False),
    )
    objective: Objective = Jepa(
        weight=full["sigreg.weight"],
        directions=full["sigreg.directions"],
        generator=streams.slices_generator(group.device),
        group=group,
    )
    trained = train(
        side.encoder,
        side,
        objective,
        recipe,
        progress=progress,
        group=group,
        keeper=keeper,
        clock=clock,
        say=_say(group),
    )
    return side, trained


def _say(group: Group) -> Callable[[str], None]:
    return (lambda line: print(line, flush=True)) if group.rank == 0 else (lambda line: None)


def _counters(full: Mapping[str, Any], side: Side, trained: Trained, group: Group, clock: Stopwatch) -> Counters:
    counts = side.pairs.counts
    texts = side.pairs if isinstance(side.pairs, TextPairs) else None
    wall, cpu = clock.read()
    return Counters(
        samples_planned=full["n_samples"],
        samples_seen=counts.good_pairs + counts.bad_pairs,
        steps=trained.steps,
        scenes=len(side.pairs.scenes),
        unique_texts=texts.unique_texts() if texts else None,
        good_pairs=counts.good_pairs,
        bad_pairs=counts.bad_pairs,
        tokens_unique=texts.unique_tokens() if texts else None,
        tokens_processed=counts.tokens_processed or None,
        tokens_padded=counts.tokens_padded or None,
        flops=side.training_flops(full["n_samples"]),
        wall_s=round(wall, 3),
        cpu_s=round(cpu, 3),
        peak_gpu_memory_bytes=torch.cuda.max_memory_allocated(group.device) if group.device.type == "cuda" else None,
        test_set_uses=int(group.rank == 0),
    )
