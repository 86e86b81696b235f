"""Bad views and the observation's own detail: a world of two modalities, each with a detail the other lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from runner.theory.worlds import Bound, PairLaw, bound, symmetric_law

__all__ = ["DetailWorld", "Share", "share_of_good_views"]

Array = np.ndarray[Any, Any]
_HADAMARD = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / 2


@dataclass(frozen=True)
class DetailWorld:
    """States (world, detail of A, detail of B), all equally likely: 4 world states and `details` details each.

    good: what a good view keeps of each of the three world directions; it keeps nothing of a detail.
    bad: what a bad view keeps of these; detail: what it keeps of its own modality's detail.
    """

    good: tuple[float, float, float] = (0.3, 0.25, 0.2)
    bad: tuple[float, float, float] = (0.3, 0.2, 0.1)
    detail: float = 0.35
    details: int = 2

    def laws(self, g: float) -> tuple[PairLaw, PairLaw]:
        """The pair laws of modality A and B at good-view fraction g: (states, states) each."""
        good, bad = (symmetric_law(np.array(kept), _HADAMARD).joint for kept in (self.good, self.bad))
        d = self.details
        none = np.full((d, d), 1 / d**2)
        kept = (1 - self.detail) * none + self.detail * np.eye(d) / d
        clean = g * np.kron(good, np.kron(none, none))
        return (
            PairLaw(clean + (1 - g) * np.kron(bad, np.kron(kept, none))),
            PairLaw(clean + (1 - g) * np.kron(bad, np.kron(none, kept))),
        )

    def world_functions(self) -> Array:
        """The three world directions as functions of the states, orthonormal: (states, 3)."""
        return np.kron(_HADAMARD, np.full((self.details**2, 1), 1 / self.details))

    def switches(self) -> list[float]:
        """Per world direction, the g above which the code prefers it to detail: (1-g) d = g good + (1-g) bad."""
        return [
            max(0.0, (self.detail - b) / (self.detail - b + a)) if self.detail > b else 0.0
            for a, b in zip(self.good, self.bad, strict=True)
        ]


@dataclass(frozen=True)
class Share:
    """Codes of k = 3 dimensions at one g. agreement: correlations of A's and B's code after the best rotation."""

    g: float
    world_dimensions: float
    agreement: tuple[float, ...]
    world_eigenvalues: tuple[float, ...]
    detail_eigenvalue: float
    bound: Bound


def share_of_good_views(world: DetailWorld, g: float) -> Share:
    """What modality A and B learn at good-view fraction g, and how far any rotation can align it."""
    k = 3
    first, second = world.laws(g)
    codes = first.basis(k), second.basis(k)
    kept = np.square(world.world_functions().T @ codes[0]).sum()
    return Share(
        g=g,
        world_dimensions=float(kept),
        agreement=tuple(float(s) for s in np.linalg.svd(codes[0].T @ codes[1], compute_uv=False)),
        world_eigenvalues=tuple(g * a + (1 - g) * b for a, b in zip(world.good, world.bad, strict=True)),
        detail_eigenvalue=(1 - g) * world.detail,
        bound=bound(first, second, k),
    )
