"""The one training loop: pairs in, an encoder out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from forecast.errors import ForecastError
from runner.objectives import lejepa
from runner.sigreg import random_directions

__all__ = ["Recipe", "Trained", "learning_rate", "train"]

Array = np.ndarray[Any, Any]
Batch = tuple[Tensor, ...]


@dataclass(frozen=True)
class Recipe:
    """How to train. n_samples: pairs in all; warmup: share of the steps; weights as in `lejepa`."""

    n_samples: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    warmup: float
    sigreg_weight: float
    sigreg_directions: int

    @property
    def batches(self) -> list[int]:
        """The size of each step's batch; a remainder is spread, so that no step sees a tiny batch."""
        steps = max(1, round(self.n_samples / self.batch_size))
        return [len(part) for part in np.array_split(np.arange(self.n_samples), steps)]


@dataclass(frozen=True)
class Trained:
    """losses: (steps, 3) total, invariance, SIGReg of each step."""

    steps: int
    losses: Array


def learning_rate(step: int, steps: int, recipe: Recipe) -> float:
    """Linear warm-up, then a half cosine to 0."""
    warm = max(1, round(recipe.warmup * steps))
    if step < warm:
        return recipe.learning_rate * (step + 1) / warm
    return recipe.learning_rate * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))


def train(
    encoder: nn.Module,
    draw: Callable[[int], Batch],
    recipe: Recipe,
    *,
    generator: torch.Generator,
    progress: Callable[[int, int], None],
) -> Trained:
    """Train `encoder` in place on `recipe.n_samples` pairs.

    draw: size -> the encoder's inputs, each with its two views stacked, (2 * size, ...).
    generator: draws the slices of SIGReg. progress: called with (pairs seen, pairs planned).
    Raises ForecastError if the loss is not finite.
    """
    optimiser = torch.optim.AdamW(
        encoder.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay, betas=(0.9, 0.98), fused=True
    )
    sizes = recipe.batches
    losses = torch.zeros(len(sizes), 3)
    seen = 0
    encoder.train()
    for step, size in enumerate(sizes):
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(step, len(sizes), recipe)
        codes = encoder(*draw(size))
        codes = codes.view(2, size, -1)
        directions = random_directions(codes.shape[-1], recipe.sigreg_directions, generator)
        parts = lejepa(codes, directions, weight=recipe.sigreg_weight)
        optimiser.zero_grad(set_to_none=True)
        parts[0].backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses[step] = torch.stack([part.detach() for part in parts])
        seen += size
        if step % 50 == 49:
            _refuse_divergence(losses[: step + 1])
            progress(seen, recipe.n_samples)
    _refuse_divergence(losses)
    progress(seen, recipe.n_samples)
    return Trained(len(sizes), losses.numpy())


def _refuse_divergence(losses: Tensor) -> None:
    if not bool(torch.isfinite(losses[-1]).all()):
        raise ForecastError(f"training diverged by step {len(losses)}: the loss is not finite; lower the learning rate")


def in_batches(rows: int, size: int) -> Iterator[slice]:
    """Slices that cover `rows` in order."""
    return (slice(start, start + size) for start in range(0, rows, size))
