"""Captions of the scenes world: from what is to be said to words, many at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from runner.worlds.scenes_law import Attribute

__all__ = ["COLOURS", "HEIGHTS", "SHAPES", "CaptionGrammar"]

Array = np.ndarray[Any, Any]
Words = tuple[str, ...]

# each value with its synonyms; neighbours of a group stand together, the group's own words follow
SHAPES: tuple[tuple[Words, ...], tuple[Words, ...]] = (
    (
        ("circle", "disc"),
        ("ring", "hoop"),
        ("square", "box"),
        ("diamond", "rhombus"),
        ("triangle", "wedge"),
        ("cross", "plus"),
    ),
    (("roundish", "curved"), ("foursided", "quadrangular"), ("pointed", "spiky")),
)
COLOURS: tuple[tuple[Words, ...], tuple[Words, ...]] = (
    (
        ("red", "crimson", "scarlet"),
        ("orange", "amber"),
        ("blue", "azure"),
        ("green", "emerald"),
        ("black", "ebony"),
        ("grey", "ashen"),
    ),
    (("warm", "fiery"), ("cool", "fresh"), ("dull", "colourless")),
)
HEIGHTS: tuple[tuple[Words, ...], tuple[Words, ...]] = (
    (("lifted", "raised"), ("lowered", "sunken"), ("level", "aligned")),
    (("tilted", "slanting"), ("straight", "flat")),
)
_PLACES: tuple[tuple[Words, ...], ...] = (
    (("left",), ("on", "the", "left"), ("leftmost",)),
    (("right",), ("on", "the", "right"), ("rightmost",)),
)
_ARTICLES: Words = ("a", "the", "one", "some")
_NOUNS: Words = ("thing", "object", "figure")
_BEFORE_HEIGHT: Words = ("arranged", "placed")
_EMPTY: Words = ("a", "picture")


class CaptionGrammar:
    """Words for the five attributes left shape, left colour, right shape, right colour, height.

    What is free, and drawn anew for every caption: which object comes first, whether the height comes first or
    last, the colour before or after its noun, every synonym, article and place word. Ids start at 1; 0 is padding.
    """

    longest = 19

    def __init__(self, attributes: tuple[Attribute, ...]) -> None:
        self.attributes = attributes
        words = dict.fromkeys(
            [
                *(word for kind in (SHAPES, COLOURS, HEIGHTS) for part in kind for names in part for word in names),
                *(word for place in _PLACES for form in place for word in form),
                *_ARTICLES,
                *_NOUNS,
                *_BEFORE_HEIGHT,
                *_EMPTY,
                "in",
                "and",
            ]
        )
        self.words: Words = ("", *words)
        self._id = {word: number for number, word in enumerate(self.words)}
        kinds = (SHAPES, COLOURS, SHAPES, COLOURS, HEIGHTS)
        self._names = [self._table(kind, a) for kind, a in zip(kinds, attributes, strict=True)]
        self._places = [self._grid([self._ids(form) for form in forms]) for forms in _PLACES]

    @property
    def vocabulary(self) -> int:
        """How many ids there are, padding included."""
        return len(self.words)

    def said(self, values: Array, rng: np.random.Generator) -> Array:
        """What one observation of each scene says: (captions, attributes) in the numbering of `Attribute.says`.

        values: (captions, attributes), the scenes' values.
        """
        said = np.empty_like(values)
        for column, attribute in enumerate(self.attributes):
            value, vague = values[:, column], rng.random((2, len(values)))
            group = attribute.values + np.array(attribute.groups)[value]
            named = np.where(vague[1] < attribute.coarse, group, value)
            said[:, column] = np.where(vague[0] < attribute.omitted, attribute.says - 1, named)
        return said

    def captions(self, said: Array, rng: np.random.Generator) -> Array:
        """Words that say exactly that, (captions, longest) int32 ids from the left, 0 is padding."""
        rows = len(said)
        objects = [self._object(said, side, rng) for side in (0, 1)]
        swapped = rng.random(rows)[:, None] < 0.5
        joint = np.where((objects[0].any(axis=1) & objects[1].any(axis=1)), self._id["and"], 0)[:, None]
        first, second = (np.where(swapped, objects[1 - side], objects[side]) for side in (0, 1))
        height = self._height(said[:, 4], rng)
        before = rng.random(rows)[:, None] < 0.5
        columns = [np.where(before, height, 0), first, joint, second, np.where(before, 0, height)]
        ids = np.concatenate(columns, axis=1).astype(np.int32)
        ids = np.take_along_axis(ids, np.argsort(ids == 0, axis=1, kind="stable"), axis=1)[:, : self.longest]
        ids[~ids.any(axis=1), : len(_EMPTY)] = self._ids(_EMPTY)
        return ids

    def text(self, ids: Array) -> str:
        """One row of ids as a text."""
        return " ".join(self.words[number] for number in ids if number)

    def _object(self, said: Array, side: int, rng: np.random.Generator) -> Array:
        """Place, article, colour and noun of one object; all 0 where nothing is said of it: (captions, 8)."""
        rows, shape, colour = len(said), said[:, 2 * side], said[:, 2 * side + 1]
        shape_word = self._word(2 * side, shape, rng)
        colour_word = self._word(2 * side + 1, colour, rng)
        exact = shape < self.attributes[2 * side].values
        adjective = np.where(exact, 0, shape_word)
        noun = np.where(exact, shape_word, rng.choice(self._ids(_NOUNS), rows))
        after = (rng.random(rows) < 0.3) & (colour_word > 0)
        place = self._places[side][rng.integers(len(_PLACES[side]), size=rows)]
        columns = [
            rng.choice(self._ids(_ARTICLES), rows),
            np.where(after, 0, colour_word),
            adjective,
            noun,
            np.where(after, self._id["in"], 0),
            np.where(after, colour_word, 0),
        ]
        whole = np.concatenate([place, np.stack(columns, axis=1)], axis=1)
        return np.where(((shape_word > 0) | (colour_word > 0))[:, None], whole, 0)

    def _height(self, said: Array, rng: np.random.Generator) -> Array:
        word = self._word(4, said, rng)
        verb = np.where(rng.random(len(said)) < 0.5, rng.choice(self._ids(_BEFORE_HEIGHT), len(said)), 0)
        return np.stack([np.where(word > 0, verb, 0), word], axis=1)

    def _word(self, column: int, said: Array, rng: np.random.Generator) -> Array:
        """One of the synonyms of each thing said, 0 for nothing."""
        names, counts = self._names[column]
        chosen: Array = names[said, (rng.random(len(said)) * counts[said]).astype(np.int64)]
        return chosen

    def _table(self, kind: tuple[tuple[Words, ...], tuple[Words, ...]], attribute: Attribute) -> tuple[Array, Array]:
        values, groups = kind
        forms = [*values[: attribute.values], *groups[: max(attribute.groups) + 1]]
        rows = [self._ids(form) for form in forms] + [np.zeros(1, np.int64)]
        return self._grid(rows), np.array([len(row) for row in rows])

    def _ids(self, words: Words) -> Array:
        return np.array([self._id[word] for word in words])

    @staticmethod
    def _grid(rows: list[Array]) -> Array:
        grid = np.zeros((len(rows), max(map(len, rows))), np.int64)
        for number, row in enumerate(rows):
            grid[number, : len(row)] = row
        return grid
