"""What training minimises."""

from __future__ import annotations

from torch import Tensor

from runner.sigreg import sigreg

__all__ = ["lejepa"]


def lejepa(codes: Tensor, directions: Tensor, *, weight: float) -> tuple[Tensor, Tensor, Tensor]:
    """The LeJEPA loss and its two parts, scalars: (total, invariance, sigreg).

        (1 - weight) * mean |z_v - mean_v z|^2 / dimensions  +  weight * mean_v SIGReg(z_v)

    codes: (V views, N pairs, dimensions). directions: (dimensions, K). weight in [0, 1].
    Source: Balestriero & LeCun (2025), arXiv 2511.08544, with SIGReg's statistic multiplied by N.
    """
    invariance = (codes - codes.mean(dim=0)).square().mean()
    regulariser = sum((sigreg(view, directions) for view in codes), start=codes.new_zeros(())) / len(codes)
    return (1 - weight) * invariance + weight * regulariser, invariance, regulariser
