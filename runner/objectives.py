"""What training minimises."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from runner.group import Group
from runner.sigreg import random_directions, sigreg

__all__ = ["Jepa", "Objective", "lejepa"]


class Objective(Protocol):
    """From a model's outputs to losses.

    parts: what the loss is made of, the total first. Each process's parts are of its share of the batch, so scaled
    that their mean over processes, and the mean of their gradients, is that of the whole batch.
    """

    parts: tuple[str, ...]

    def __call__(self, outputs: Tensor, size: int) -> tuple[Tensor, ...]:
        """The parts, scalars; `size` is of the whole batch."""

    def codes(self, outputs: Tensor) -> Tensor | None:
        """The codes among the outputs (rows, dimensions), None if there are none: their collapse is watched."""

    def state(self) -> dict[str, Any]:
        """Where the objective's generators stand."""

    def restore(self, state: dict[str, Any]) -> None:
        """Put them where they stood."""


class Jepa:
    """LeJEPA on two views a sample; its directions are drawn anew each step, the same in every process."""

    parts: tuple[str, ...] = ("total", "invariance", "sigreg")
    views = 2

    def __init__(self, *, weight: float, directions: int, generator: torch.Generator, group: Group) -> None:
        self._weight, self._directions, self._generator, self._group = weight, directions, generator, group

    def __call__(self, outputs: Tensor, size: int) -> tuple[Tensor, ...]:
        codes = outputs.float().view(self.views, -1, outputs.shape[-1])
        directions = random_directions(codes.shape[-1], self._directions, self._generator)
        return lejepa(codes, directions, weight=self._weight, size=size, group=self._group)

    def codes(self, outputs: Tensor) -> Tensor:
        return outputs

    def state(self) -> dict[str, Any]:
        return {"slices": self._generator.get_state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._generator.set_state(state["slices"])


def lejepa(
    codes: Tensor, directions: Tensor, *, weight: float, size: int | None = None, group: Group | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The LeJEPA loss and its two parts, scalars: (total, invariance, sigreg).

        (1 - weight) * mean |z_v - mean_v z|^2 / dimensions  +  weight * mean_v SIGReg(z_v)

    codes: (V views, N pairs, dimensions). directions: (dimensions, K). weight in [0, 1].
    size, group: of the whole batch, where `codes` is one process's share of it.
    Source: Balestriero & LeCun (2025), arXiv 2511.08544, with SIGReg's statistic multiplied by N.
    """
    invariance = (codes - codes.mean(dim=0)).square().mean()
    if group is not None and group.count > 1 and size is not None:
        invariance = invariance * (codes.shape[1] * group.count / size)
    regulariser = sum((sigreg(view, directions, group) for view in codes), start=codes.new_zeros(())) / len(codes)
    return (1 - weight) * invariance + weight * regulariser, invariance, regulariser
