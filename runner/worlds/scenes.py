"""The scenes world: a procedural finite world of two objects, with captions and pictures without end.

Nothing is read from disk: settings and a seed, both of the design, give scenes, split, words and reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from forecast.errors import ForecastError
from forecast.files import canonical_json, sha256_hex
from runner.worlds.glyphs import TextTable
from runner.worlds.scenes_law import Attribute, SceneLaw
from runner.worlds.scenes_text import COLOURS, HEIGHTS, SHAPES, CaptionGrammar

__all__ = ["SCENES_DEFAULTS", "Scenes", "load_scenes"]

Array = np.ndarray[Any, Any]
SCENES_DEFAULTS: dict[str, int | float] = {
    "scenes.seed": 0,
    "scenes.shapes": 6,
    "scenes.colours": 6,
    "scenes.omitted": 0.3,
    "scenes.coarse": 0.25,
    "scenes.test": 300,
    "scenes.rank": 64,
}
CAPTIONS, SCORED_TRAIN_SCENES = 8, 1000
# how much more or less than `scenes.omitted` each attribute is left out, so that no two share an eigenvalue
_OMITTED = {"left shape": 0.8, "left colour": 1.0, "right shape": 1.1, "right colour": 1.3, "height": 1.5}


@dataclass(frozen=True, eq=False)
class Scenes:
    """The world, ready to be drawn from. hash: sha256 of its description and of a sample of what it gives.

    values: (scenes, attributes), each scene's values. train: scenes to train on.
    scored: the scenes that are scored, test scenes among them (test: bool per scored scene); tokens: their
    captions, CAPTIONS each. reference: exact features of the scored scenes, (scored, rank).
    """

    hash: str
    law: SceneLaw
    grammar: CaptionGrammar
    values: Array
    train: Array
    scored: Array
    test: Array
    tokens: TextTable
    reference: Array
    reference_hash: str
    text_authors: str = "procedure (the scenes world's own grammar)"

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        """`size` train scenes, each with its own probability: (size,)."""
        weights = np.cumsum(self.law.prior[self.train])
        found: Array = self.train[np.searchsorted(weights, rng.random(size) * weights[-1], side="right")]
        return found

    def captions(self, scenes: Array, rng: np.random.Generator) -> Array:
        """One new caption of each scene: (scenes, longest) ids."""
        return self.grammar.captions(self.grammar.said(self.values[scenes], rng), rng)


def load_scenes(full: Mapping[str, Any]) -> Scenes:
    """The world of a completed design, or of settings that name only some of `SCENES_DEFAULTS`."""
    return _scenes(**{name.partition(".")[2]: full.get(name, default) for name, default in SCENES_DEFAULTS.items()})


@cache
def _scenes(*, seed: int, shapes: int, colours: int, omitted: float, coarse: float, test: int, rank: int) -> Scenes:
    for name, value in (("scenes.shapes", shapes), ("scenes.colours", colours)):
        if value not in (2, 4, 6):
            raise ForecastError(f"{name} must be 2, 4 or 6 (two a group), got {value}")
    if not 0 <= omitted * max(_OMITTED.values()) < 1:
        raise ForecastError(f"scenes.omitted must lie in [0, {1 / max(_OMITTED.values()):.3f}), got {omitted}")
    streams = [np.random.default_rng(stream) for stream in np.random.SeedSequence(seed).spawn(3)]
    attributes = _attributes(shapes, colours, omitted, coarse, streams[0])
    law, grammar = SceneLaw(attributes), CaptionGrammar(attributes)
    if not 10 < test <= law.scenes // 2:
        raise ForecastError(f"scenes.test must lie in 11 .. {law.scenes // 2} (half the scenes), got {test}")
    values = np.stack(np.unravel_index(np.arange(law.scenes), law.shape), axis=1)
    order = streams[1].permutation(law.scenes)
    held_out, train = order[:test], np.sort(order[test:])
    scored = np.concatenate([np.sort(held_out), np.sort(order[test : test + SCORED_TRAIN_SCENES])])
    scene = np.repeat(np.arange(len(scored)), CAPTIONS)
    ids = grammar.captions(grammar.said(values[scored[scene]], streams[2]), streams[2])
    tokens = TextTable.of(ids, (ids != 0).sum(axis=1), scene, grammar.vocabulary)
    reference = law.features(law.complete_rank(rank))[scored].astype(np.float32)
    described = {
        "format": "platocast-scenes-1",
        "settings": {"seed": seed, "shapes": shapes, "colours": colours, "omitted": omitted, "coarse": coarse},
        "attributes": [{"name": a.name, "groups": list(a.groups), "shares": list(a.shares)} for a in attributes],
        "words": list(grammar.words),
        "test": sha256_hex(np.sort(held_out).astype("<i8").tobytes()),
        "captions": sha256_hex(ids.astype("<i4").tobytes()),
    }
    return Scenes(
        hash=sha256_hex(canonical_json(described)),
        law=law,
        grammar=grammar,
        values=values,
        train=train,
        scored=scored,
        test=np.arange(len(scored)) < test,
        tokens=tokens,
        reference=reference,
        reference_hash=sha256_hex(reference.astype("<f4").tobytes()),
    )


def _attributes(
    shapes: int, colours: int, omitted: float, coarse: float, rng: np.random.Generator
) -> tuple[Attribute, ...]:
    """The five attributes; shares are unequal, so that no two scenes are alike by symmetry."""
    counts = {"left shape": shapes, "left colour": colours, "right shape": shapes, "right colour": colours}
    made = []
    for name, left_out in _OMITTED.items():
        groups = tuple(k // 2 for k in range(counts[name])) if name in counts else (0, 0, 1)
        weights = 20 + rng.permutation(20)[: len(groups)]
        shares = tuple(float(weight) / float(weights.sum()) for weight in weights)
        made.append(Attribute(name, groups, shares, omitted * left_out, coarse))
    return tuple(made)


assert len(SHAPES[0]) == len(COLOURS[0]) == 6
assert len(HEIGHTS[0]) == 3
