"""Is the code alive: its effective rank, and an early word when it collapses."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["COLLAPSED", "Health", "effective_rank"]

COLLAPSED = 0.1
"""A code whose effective rank is below this share of what its rows and dimensions allow is said to collapse."""


@dataclass(frozen=True)
class Health:
    """How training stood at a step (counted from 1): total loss, the codes' effective rank, the most it could be."""

    step: int
    loss: float
    effective_rank: float | None
    most: int

    @property
    def collapsing(self) -> bool:
        """Whether the codes occupy less than COLLAPSED of the dimensions that they could."""
        return self.effective_rank is not None and self.effective_rank < COLLAPSED * self.most

    def line(self, steps: int) -> str:
        """The state in one line."""
        text = f"step {self.step} of {steps}: loss {self.loss:.4g}"
        if self.effective_rank is not None:
            text += f", effective rank {self.effective_rank:.1f} of {self.most}"
        if self.collapsing:
            text += "; warning: the codes collapse; raise sigreg.weight or lower optimiser.learning_rate"
        return text


def effective_rank(codes: Tensor) -> float:
    """exp of the entropy of the centred codes' singular values, normalised to sum 1: between 1 and the rank.

    codes: (rows, dimensions). Codes that are all equal have effective rank 0.
    Source: Roy & Vetterli (2007), EUSIPCO, "The effective rank: a measure of effective dimensionality".
    """
    centred = (codes - codes.mean(dim=0)).double()
    values = torch.linalg.svdvals(centred)
    total = values.sum()
    if not bool(total > 1e-12 * codes.abs().sum()):
        return 0.0
    shares = values / total
    return float(torch.exp(torch.special.entr(shares).sum()))
