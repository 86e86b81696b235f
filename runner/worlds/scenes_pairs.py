"""Pairs of views of the scenes world, drawn anew at every step: of captions, and of pictures."""

from __future__ import annotations

from typing import Any

import numpy as np

from forecast.errors import ForecastError
from runner.views import PairCounts, good_quota, masked_views
from runner.worlds.distinct import DistinctRows
from runner.worlds.scenes import Scenes
from runner.worlds.scenes_pictures import render
from runner.worlds.skipgrams import GAPS, skipgrams

__all__ = ["ScenePairs", "ScenePicturePairs"]

Array = np.ndarray[Any, Any]


class ScenePairs:
    """Two masked views of new captions of train scenes; the contract of `TextPairs`, without a table.

    good: of two captions of the scene, independent given the scene; bad: of one caption.
    """

    def __init__(
        self,
        world: Scenes,
        *,
        good_view_fraction: float,
        mask_rate: float,
        view_length: int,
        bag: bool,
        rng: np.random.Generator,
    ) -> None:
        if not 0 <= mask_rate < 1:
            raise ForecastError(f"mask_rate must lie in [0, 1), got {mask_rate}")
        longest = world.grammar.longest
        most = sum(longest - gap for gap in range(GAPS + 1)) if bag else longest
        if not 0 < view_length <= most:
            raise ForecastError(f"view_length must lie in 1 .. {most}, got {view_length}")
        self.world, self.scenes, self.rng, self.bag = world, world.train, rng, bag
        self.good_view_fraction, self.mask_rate, self.view_length = good_view_fraction, mask_rate, view_length
        self.counts = PairCounts()
        self.distinct = DistinctRows()

    def draw(self, size: int) -> tuple[Array, Array]:
        """ids and positions, each (2, size, view_length) int32: the views of the next `size` pairs."""
        counts = self.counts
        good = good_quota(self.good_view_fraction, counts.good_pairs + counts.bad_pairs, size)
        scenes = self.world.draw(size, self.rng)
        one, other = self.world.captions(scenes, self.rng), self.world.captions(scenes[:good], self.rng)
        self.distinct.add(one)
        self.distinct.add(other)
        captions = np.concatenate([one, other, one[good:]])
        rows = skipgrams(captions) if self.bag else captions
        if rows.shape[1] < self.view_length:
            rows = np.pad(rows, ((0, 0), (0, self.view_length - rows.shape[1])))
        ids, positions = masked_views(
            rows, (rows != 0).sum(axis=1), mask_rate=self.mask_rate, width=self.view_length, rng=self.rng
        )
        counts.good_pairs += good
        counts.bad_pairs += size - good
        kept = int((ids != 0).sum())
        counts.tokens_processed += kept
        counts.tokens_padded += ids.size - kept
        shape = (2, size, self.view_length)
        return ids.reshape(shape).astype(np.int32), positions.reshape(shape)

    def unique_texts(self) -> int:
        """Different captions drawn so far."""
        return self.distinct.rows

    def unique_tokens(self) -> int:
        """Words of the different captions drawn so far."""
        return self.distinct.tokens


class ScenePicturePairs:
    """Two crops of new pictures of train scenes; the contract of `ImagePairs`.

    good: of two pictures, independent given the scene; bad: of one picture.
    """

    def __init__(
        self, world: Scenes, *, good_view_fraction: float, least_side: float, rng: np.random.Generator
    ) -> None:
        if not 0 < least_side <= 1:
            raise ForecastError(f"least_side must lie in (0, 1], got {least_side}")
        self.world, self.scenes, self.rng = world, world.train, rng
        self.good_view_fraction, self.least_side = good_view_fraction, least_side
        self.counts = PairCounts()

    def draw(self, size: int) -> tuple[Array, Array]:
        """pixels (2, size, 32, 32, 3) bytes and windows (2, size, 6), as `ImagePairs.draw`."""
        counts = self.counts
        good = good_quota(self.good_view_fraction, counts.good_pairs + counts.bad_pairs, size)
        scenes = self.world.draw(size, self.rng)
        pictures = render(self.world.values[np.concatenate([scenes, scenes[:good]])], self.rng)
        counts.good_pairs += good
        counts.bad_pairs += size - good
        one, other = pictures[:size], np.concatenate([pictures[size:], pictures[good:size]])
        return np.stack([one, other]), windows(2, size, self.least_side, self.rng)


def windows(views: int, size: int, least_side: float, rng: np.random.Generator) -> Array:
    """A crop and a colour scale for each view: (views, size, 6) left, top, side in [-1, 1], colour x 3."""
    side = rng.uniform(least_side, 1, (views, size))
    centre = rng.uniform(-1, 1, (2, views, size)) * (1 - side)
    colour = rng.uniform(0.8, 1.2, (views, size, 3))
    joined = np.concatenate([centre[0, ..., None], centre[1, ..., None], side[..., None], colour], axis=-1)
    return joined.astype(np.float32)
