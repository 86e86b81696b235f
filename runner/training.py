"""The one training loop: samples in, an encoder out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from forecast.errors import ForecastError
from runner.group import Group
from runner.health import Health, effective_rank
from runner.loading import Loader, Source
from runner.objectives import Objective
from runner.saved_state import pack, unpack

__all__ = ["Keeper", "Recipe", "Stopwatch", "Trained", "in_batches", "learning_rate", "train"]

Array = np.ndarray[Any, Any]
_CHECKED, _ASKED, _TOLD = 50, 10, 10
"""Steps between looks at the loss; between askings of the other processes; lines of log in a run."""


class Keeper(Protocol):
    """Where a training's state is kept; `runner.checkpoint.Checkpoint` is one."""

    @property
    def due(self) -> bool:
        """Whether to save now."""

    def load(self) -> bytes | None:
        """The last saved state."""

    def save(self, state: bytes) -> None:
        """Save; does not return if the job was told to stop."""


@dataclass(frozen=True)
class Recipe:
    """How to train. n_samples: samples in all; warmup: share of the steps.

    precision: of the matrix products; the weights and the loss stay float32. compiled: by torch.compile.
    ahead: batches drawn beforehand, None for 2 on a GPU and 0 elsewhere.
    """

    n_samples: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    warmup: float
    precision: Literal["float32", "bfloat16"] = "float32"
    compiled: bool = False
    ahead: int | None = None

    @property
    def batches(self) -> list[int]:
        """The size of each step's batch; a remainder is spread, so that no step sees a tiny batch."""
        steps = max(1, round(self.n_samples / self.batch_size))
        whole, more = divmod(self.n_samples, steps)
        return [whole + (step < more) for step in range(steps)]


@dataclass
class Stopwatch:
    """Wall and CPU seconds of a run, those of earlier attempts whose state it took over included."""

    wall: float = field(default_factory=lambda: -time.perf_counter())
    cpu: float = field(default_factory=lambda: -time.process_time())

    def read(self) -> tuple[float, float]:
        """Wall and CPU seconds so far."""
        return self.wall + time.perf_counter(), self.cpu + time.process_time()

    def add(self, wall: float, cpu: float) -> None:
        """Count an earlier attempt's."""
        self.wall, self.cpu = self.wall + wall, self.cpu + cpu


@dataclass(frozen=True)
class Trained:
    """losses: (steps, parts), the total first. health: how it stood at some steps."""

    steps: int
    losses: Array
    health: tuple[Health, ...]


def learning_rate(step: int, steps: int, recipe: Recipe) -> float:
    """Linear warm-up, then a half cosine to 0."""
    warm = max(1, round(recipe.warmup * steps))
    if step < warm:
        return recipe.learning_rate * (step + 1) / warm
    return recipe.learning_rate * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))


def train(
    model: nn.Module,
    source: Source,
    objective: Objective,
    recipe: Recipe,
    *,
    progress: Callable[[int, int], None],
    group: Group | None = None,
    keeper: Keeper | None = None,
    clock: Stopwatch | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Trained:
    """Train `model` in place on `recipe.n_samples` samples, from where `keeper` says that it stood.

    progress: called with (samples seen, samples planned). group: the processes that share each batch.
    say: told a line about ten times, with the loss and the codes' effective rank.
    Raises ForecastError if the loss is not finite.
    """
    run = _Training(model.train(), source, objective, recipe, group or Group(), clock or Stopwatch())
    saved = run.group.from_first(keeper.load() if keeper is not None else None)
    if saved is not None:
        run.restore(unpack(saved))
    try:
        while run.step < run.steps:
            run.take_step()
            done, asked = run.step, run.group.count == 1 or run.step % _ASKED == 0
            if done % max(1, run.steps // _TOLD) == 0 or done == run.steps:
                say(run.look().line(run.steps))
            if done % _CHECKED == 0 or done == run.steps:
                run.refuse_divergence()
                progress(run.seen, recipe.n_samples)
            if keeper is not None and asked and done < run.steps and run.group.agreed(keeper.due):
                run.refuse_divergence()
                state = run.state()
                if run.group.rank == 0:
                    keeper.save(pack(state))
    finally:
        run.loader.close()
    return Trained(run.steps, run.whole_losses(), tuple(run.health))


class _Training:
    """A training between two steps."""

    def __init__(
        self,
        model: nn.Module,
        source: Source,
        objective: Objective,
        recipe: Recipe,
        group: Group,
        clock: Stopwatch,
    ) -> None:
        self.model, self.objective, self.recipe, self.group, self.clock = model, objective, recipe, group, clock
        model.to(group.device)
        self.forward = _wrapped(model, recipe, group)
        trained = [weight for weight in model.parameters() if weight.requires_grad]
        self.optimiser = torch.optim.AdamW(
            trained, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, betas=(0.9, 0.98), fused=True
        )
        self.sizes = recipe.batches
        self.steps, self.step, self.seen = len(self.sizes), 0, 0
        ahead = recipe.ahead if recipe.ahead is not None else 2 * (group.device.type == "cuda")
        self.loader = Loader(source, self.sizes, group, ahead=ahead)
        self.losses = torch.zeros(self.steps, len(objective.parts), device=group.device)
        self.health: list[Health] = []
        self._outputs: Tensor | None = None

    def take_step(self) -> None:
        """One step; nothing here waits for the device."""
        size = self.sizes[self.step]
        for options in self.optimiser.param_groups:
            options["lr"] = learning_rate(self.step, self.steps, self.recipe)
        batch = self.loader.next()
        with torch.autocast(self.group.device.type, torch.bfloat16, enabled=self.recipe.precision == "bfloat16"):
            outputs = self.forward(*batch)
        parts = self.objective(outputs, size)
        self.optimiser.zero_grad(set_to_none=True)
        parts[0].backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        self.losses[self.step] = torch.stack([part.detach() for part in parts])
        self._outputs = outputs.detach()
        self.step, self.seen = self.step + 1, self.seen + size

    def look(self) -> Health:
        """How the training stands after the last step."""
        assert self._outputs is not None
        codes = self.objective.codes(self._outputs)
        rank = None if codes is None or not bool(torch.isfinite(codes).all()) else effective_rank(codes.float())
        most = 0 if codes is None else min(len(codes) - 1, codes.shape[1])
        self.health.append(Health(self.step, float(self.losses[self.step - 1, 0]), rank, most))
        return self.health[-1]

    def refuse_divergence(self) -> None:
        """Raise if the last loss is not finite, in every process if it is so in one."""
        if not bool(torch.isfinite(self.group.sum(self.losses[self.step - 1].clone())).all()):
            raise ForecastError(
                f"training diverged by step {self.step}: the loss is not finite; lower optimiser.learning_rate"
            )

    def whole_losses(self) -> Array:
        """The losses of the whole batches; every process must ask."""
        losses: Array = (self.group.sum(self.losses.clone()) / self.group.count).cpu().numpy()
        return losses

    def state(self) -> dict[str, Any]:
        """Everything that the next step depends on, and what has been counted; every process must ask."""
        return {
            "step": self.step,
            "seen": self.seen,
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "objective": self.objective.state(),
            "loader": self.loader.state(),
            "losses": torch.from_numpy(self.whole_losses()[: self.step]),
            "health": [list(vars(health).values()) for health in self.health],
            "seconds": list(self.clock.read()),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self.step, self.seen = state["step"], state["seen"]
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.objective.restore(state["objective"])
        self.loader.restore(state["loader"])
        self.losses[: self.step] = state["losses"].to(self.losses.device)
        self.health = [Health(*values) for values in state["health"]]
        self.clock.add(*state["seconds"])


def _wrapped(model: nn.Module, recipe: Recipe, group: Group) -> Callable[..., Tensor]:
    """The model as it is called: its gradients averaged over processes, compiled if the recipe says so."""
    called = model
    if group.count > 1:
        called = DistributedDataParallel(model, device_ids=[group.device] if group.device.type == "cuda" else None)
    return torch.compile(called, dynamic=True) if recipe.compiled else called


def in_batches(rows: int, size: int) -> Iterator[slice]:
    """Slices that cover `rows` in order."""
    return (slice(start, start + size) for start in range(0, rows, size))
