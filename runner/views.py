"""Positive pairs with a set good-view fraction, drawn by array indexing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forecast.errors import ForecastError
from runner.saved_state import restore_rng, rng_state
from runner.worlds.glyphs import TextTable

__all__ = ["ImagePairs", "PairCounts", "Streamed", "TextPairs", "good_quota", "masked_views"]

Array = np.ndarray[Any, Any]


def good_quota(good_view_fraction: float, first: int, size: int) -> int:
    """How many of the pairs first .. first + size - 1 are good, so that the share is exact at every point."""
    return round(good_view_fraction * (first + size)) - round(good_view_fraction * first)


@dataclass
class PairCounts:
    """What has been drawn so far. Tokens count encoder inputs; padded slots are counted apart."""

    good_pairs: int = 0
    bad_pairs: int = 0
    tokens_processed: int = 0
    tokens_padded: int = 0
    seen: Array = field(default_factory=lambda: np.zeros(0, bool))

    def state(self) -> dict[str, Any]:
        """The counts as `runner.saved_state.pack` takes them."""
        return vars(self) | {"seen": np.packbits(self.seen).tobytes()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from the counts of `state`."""
        bits = np.unpackbits(np.frombuffer(state["seen"], np.uint8), count=len(self.seen)).astype(bool)
        vars(self).update(state | {"seen": bits})


class Streamed:
    """Pairs whose chance comes from `rng` (scenes and observations) and `view_rng` (masks and crops)."""

    rng: np.random.Generator
    view_rng: np.random.Generator
    counts: PairCounts

    def state(self) -> dict[str, Any]:
        """Where the drawing stands."""
        return {"order": rng_state(self.rng), "views": rng_state(self.view_rng), "counts": self.counts.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Put the drawing where it stood."""
        restore_rng(self.rng, state["order"])
        restore_rng(self.view_rng, state["views"])
        self.counts.restore(state["counts"])


class TextPairs(Streamed):
    """Two masked views of texts of one scene.

    good: of two different texts of the scene; bad: of one text. Either way each view keeps, at random
    places, a share 1 - mask_rate of its text's tokens (rounded up), at most view_length, with their positions.
    scenes: the scenes to draw from, uniformly with replacement. view_rng: draws the places; None for `rng` too.
    """

    def __init__(
        self,
        table: TextTable,
        scenes: Array,
        *,
        good_view_fraction: float,
        mask_rate: float,
        view_length: int,
        rng: np.random.Generator,
        view_rng: np.random.Generator | None = None,
    ) -> None:
        if not 0 <= mask_rate < 1:
            raise ForecastError(f"mask_rate must lie in [0, 1), got {mask_rate}")
        if not 0 < view_length <= table.ids.shape[1]:
            raise ForecastError(f"view_length must lie in 1 .. {table.ids.shape[1]}, got {view_length}")
        if good_view_fraction > 0 and table.count[scenes].min() < 2:
            raise ForecastError("a good pair needs two texts of a scene, and some scene has only one")
        self.table, self.scenes, self.rng, self.view_rng = table, scenes, rng, view_rng or rng
        self.good_view_fraction, self.mask_rate = good_view_fraction, mask_rate
        self.view_length = view_length
        self.counts = PairCounts(seen=np.zeros(len(table.ids), bool))

    def draw(self, size: int) -> tuple[Array, Array]:
        """ids and positions, each (2, size, view_length) int32: the views of the next `size` pairs."""
        counts = self.counts
        good = good_quota(self.good_view_fraction, counts.good_pairs + counts.bad_pairs, size)
        scene = self.scenes[self.rng.integers(len(self.scenes), size=size)]
        first, count = self.table.first[scene], self.table.count[scene]
        one = self.rng.integers(count)
        shift = np.zeros(size, np.int64)
        shift[:good] = 1 + self.rng.integers(count[:good] - 1) if good else shift[:0]
        rows = np.concatenate([first + one, first + (one + shift) % count])
        ids, positions = masked_views(
            self.table.ids[rows],
            self.table.length[rows],
            mask_rate=self.mask_rate,
            width=self.view_length,
            rng=self.view_rng,
        )
        counts.good_pairs += good
        counts.bad_pairs += size - good
        counts.seen[rows] = True
        kept = int((ids != 0).sum())
        counts.tokens_processed += kept
        counts.tokens_padded += ids.size - kept
        shape = (2, size, self.view_length)
        return ids.reshape(shape), positions.reshape(shape)

    def unique_texts(self) -> int:
        """Different texts drawn so far."""
        return int(self.counts.seen.sum())

    def unique_tokens(self) -> int:
        """Tokens of the different texts drawn so far, each text once."""
        return int(self.table.length[self.counts.seen].sum())


def masked_views(
    ids: Array, length: Array, *, mask_rate: float, width: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """ids and positions, each (texts, width) int32: a random share 1 - mask_rate of each text's tokens, in order.

    ids: (texts, longest), 0 is padding. length: (texts,). The share is rounded up and cut at `width`.
    """
    keep = np.minimum(np.ceil(length * (1 - mask_rate)), width).astype(np.int64)
    longest = ids.shape[1]
    keys = rng.random((len(ids), longest), dtype=np.float32)
    keys[np.arange(longest) >= length[:, None]] = 2.0
    places = np.argsort(keys, axis=1)[:, :width]
    places[np.arange(width) >= keep[:, None]] = longest
    places.sort(axis=1)
    kept = np.take_along_axis(np.pad(ids, ((0, 0), (0, 1))), places, axis=1)
    return kept, np.where(kept == 0, 0, places).astype(np.int32)


class ImagePairs(Streamed):
    """Two crops of drawings of one scene; good: of two designers, bad: of one.

    A crop covers a share of the side drawn from [least_side, 1], at a random place, and each colour
    channel is scaled by a factor in [0.8, 1.2]; training resizes it by bilinear interpolation.
    """

    def __init__(
        self,
        pixels: Array,
        drawn: Array,
        scenes: Array,
        *,
        good_view_fraction: float,
        least_side: float,
        rng: np.random.Generator,
        view_rng: np.random.Generator | None = None,
    ) -> None:
        if not 0 < least_side <= 1:
            raise ForecastError(f"least_side must lie in (0, 1], got {least_side}")
        if good_view_fraction > 0 and drawn[scenes].sum(axis=1).min() < 2:
            raise ForecastError("a good pair needs two drawings of a scene, and some scene has only one")
        self.pixels, self.scenes, self.rng, self.view_rng = pixels, scenes, rng, view_rng or rng
        self.good_view_fraction, self.least_side = good_view_fraction, least_side
        self.count = drawn.sum(axis=1)
        self.designers = np.argsort(~drawn, axis=1, kind="stable")
        self.counts = PairCounts(seen=np.zeros(drawn.size, bool))

    def draw(self, size: int) -> tuple[Array, Array]:
        """pixels (2, size, 32, 32, 3) bytes and windows (2, size, 6): left, top, side in [-1, 1], colour x 3."""
        counts = self.counts
        good = good_quota(self.good_view_fraction, counts.good_pairs + counts.bad_pairs, size)
        scene = self.scenes[self.rng.integers(len(self.scenes), size=size)]
        one = self.rng.integers(self.count[scene])
        shift = np.zeros(size, np.int64)
        shift[:good] = 1 + self.rng.integers(self.count[scene[:good]] - 1) if good else shift[:0]
        two = (one + shift) % self.count[scene]
        designer = np.stack([self.designers[scene, one], self.designers[scene, two]])
        counts.good_pairs += good
        counts.bad_pairs += size - good
        counts.seen[(scene * self.designers.shape[1] + designer).ravel()] = True
        side = self.view_rng.uniform(self.least_side, 1, (2, size))
        centre = self.view_rng.uniform(-1, 1, (2, 2, size)) * (1 - side)
        colour = self.view_rng.uniform(0.8, 1.2, (2, size, 3))
        windows = np.concatenate([centre[0, ..., None], centre[1, ..., None], side[..., None], colour], axis=-1)
        return self.pixels[scene, designer], windows.astype(np.float32)
