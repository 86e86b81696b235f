"""The random streams of a run: weights, order, views and slices, each of its own seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

__all__ = ["STREAMS", "Streams"]

STREAMS = ("init", "order", "slices", "views")


@dataclass(frozen=True)
class Streams:
    """Where each kind of chance in a run comes from.

    init: the first weights. order: which scenes and observations, in which order. views: their masks and crops.
    slices: the directions of SIGReg. `views` is None where masks and crops are drawn from `order`, as the first
    designs of this project did.
    """

    init: np.random.SeedSequence
    order: np.random.SeedSequence
    slices: np.random.SeedSequence
    views: np.random.SeedSequence | None

    @classmethod
    def of(cls, seed: int, full: Mapping[str, Any]) -> Streams:
        """The streams of a run's seed: its first four children in the order of STREAMS.

        full: a completed design. `seed.NAME` holds one stream fixed whatever the run's seed, to learn which of them
        seed noise comes from; `seed.streams` = "separate" gives views a stream of their own.
        """
        roots = [full.get(f"seed.{name}", seed) for name in STREAMS]
        init, order, slices, views = (np.random.SeedSequence(root, spawn_key=(k,)) for k, root in enumerate(roots))
        return cls(init, order, slices, views if full.get("seed.streams") == "separate" else None)

    @property
    def seeds(self) -> dict[str, int]:
        """What is recorded of each stream: the 63 bits that torch is seeded with, equal for equal streams."""
        drawn = {name: getattr(self, name) or self.order for name in STREAMS}
        return {name: _word(stream) for name, stream in drawn.items()}

    def order_rng(self) -> np.random.Generator:
        """The generator of scenes and observations."""
        return np.random.default_rng(self.order)

    def views_rng(self, order: np.random.Generator) -> np.random.Generator:
        """The generator of masks and crops: `order` itself where the design has no stream for them."""
        return order if self.views is None else np.random.default_rng(self.views)

    def init_generator(self) -> torch.Generator:
        """The generator of the first weights."""
        return torch.Generator().manual_seed(_word(self.init))

    def slices_generator(self, device: torch.device) -> torch.Generator:
        """The generator of SIGReg's directions, on the device that uses them."""
        return torch.Generator(device).manual_seed(_word(self.slices))


def _word(stream: np.random.SeedSequence) -> int:
    return int(stream.generate_state(1, np.uint64)[0] >> 1)
