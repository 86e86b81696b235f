"""The exact law of the scenes world: how scenes are distributed, what an observation says, what a pair shares.

A scene gives each attribute one value, independently. An observation says of each attribute, independently, the
value, only the value's group, or nothing. Hence every law here is a product over attributes, and the
eigenfunctions of the pair law are known in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from forecast.errors import ForecastError

__all__ = ["Attribute", "SceneLaw"]

Array = np.ndarray[Any, Any]
MOST_ENTRIES = 50_000_000


@dataclass(frozen=True)
class Attribute:
    """One attribute: its values, their groups (0 .. groups-1), their shares, and how often it is left vague.

    omitted: chance that an observation says nothing of it. coarse: chance that one which says something says
    the group only.
    """

    name: str
    groups: tuple[int, ...]
    shares: tuple[float, ...]
    omitted: float
    coarse: float

    def __post_init__(self) -> None:
        if len(self.groups) != len(self.shares) or len(self.shares) < 2:
            raise ForecastError(f"attribute {self.name} needs at least two values, each with a group and a share")
        if sorted(set(self.groups)) != list(range(max(self.groups) + 1)):
            raise ForecastError(f"attribute {self.name}: groups must be 0 .. groups - 1, got {self.groups}")
        if min(self.shares) <= 0 or abs(math.fsum(self.shares) - 1) > 1e-9:
            raise ForecastError(f"attribute {self.name}: shares must be > 0 and sum to 1, got {self.shares}")
        for name, chance in (("omitted", self.omitted), ("coarse", self.coarse)):
            if not 0 <= chance < 1:
                raise ForecastError(f"attribute {self.name}: {name} must lie in [0, 1), got {chance}")

    @property
    def values(self) -> int:
        """How many values it has."""
        return len(self.shares)

    @property
    def says(self) -> int:
        """How many things an observation can say of it: each value, each group, nothing (the last)."""
        return self.values + max(self.groups) + 2

    @cached_property
    def channel(self) -> Array:
        """What is said of each value: (values, says), rows sum to 1."""
        said = np.zeros((self.values, self.says))
        rows = np.arange(self.values)
        said[rows, rows] = (1 - self.omitted) * (1 - self.coarse)
        said[rows, self.values + np.array(self.groups)] = (1 - self.omitted) * self.coarse
        said[:, -1] = self.omitted
        return said

    @cached_property
    def functions(self) -> tuple[Array, Array]:
        """Orthonormal functions of the value and their eigenvalues under the pair law, the constant first.

        (values, values), a column a function; (values,). A function of the group survives whatever is said:
        1 - omitted. One that differs only within a group needs the value itself: (1 - omitted)(1 - coarse).
        """
        shares, groups = np.array(self.shares), np.array(self.groups)
        by_group = np.array([math.fsum(shares[groups == group]) for group in range(max(groups) + 1)])
        columns = [np.ones(self.values)]
        columns += [contrast[groups] for contrast in _contrasts(by_group)]
        heard = [1.0] + [1 - self.omitted] * (len(columns) - 1)
        for group in range(len(by_group)):
            members = np.flatnonzero(groups == group)
            for contrast in _contrasts(shares[members]):
                column = np.zeros(self.values)
                column[members] = contrast
                columns.append(column)
                heard.append((1 - self.omitted) * (1 - self.coarse))
        return np.stack(columns, axis=1), np.array(heard)

    def masked(self, rate: float) -> Array:
        """A further loss of what was said: each thing said becomes nothing with chance `rate`; (says, says)."""
        kept = np.diag(np.full(self.says, 1 - rate))
        kept[:, -1] += rate
        return kept


def _contrasts(weights: Array) -> list[Array]:
    """len(weights) - 1 functions, orthonormal under `weights`, each of mean 0: Helmert's, for unequal weights."""
    found = []
    for place in range(1, len(weights)):
        before, here = math.fsum(weights[:place]), float(weights[place])
        column = np.zeros(len(weights))
        column[:place] = math.sqrt(here / (before * (before + here)))
        column[place] = -math.sqrt(before / (here * (before + here)))
        found.append(column)
    return found


class SceneLaw:
    """The law of scenes, of observations, and of pairs of observations.

    styles: ways of saying the same, equally likely and independent of the scene; a good pair draws two, a bad
    pair shares one. Scenes and observations are numbered by their attributes, the last running fastest; an
    observation's style is its last part.
    """

    def __init__(self, attributes: Sequence[Attribute], *, styles: int = 1) -> None:
        if not attributes or styles < 1:
            raise ForecastError("a scene law needs at least one attribute and one style")
        self.attributes, self.styles = tuple(attributes), styles
        self.shape = tuple(attribute.values for attribute in attributes)
        self.scenes = math.prod(self.shape)
        self.observations = math.prod(attribute.says for attribute in attributes) * styles

    @cached_property
    def prior(self) -> Array:
        """How probable each scene is: (scenes,)."""
        return _product([np.array(attribute.shares) for attribute in self.attributes])

    @cached_property
    def channel(self) -> Array:
        """How probable each observation of a scene is: (scenes, observations)."""
        self._affordable(self.scenes * self.observations)
        return _product([*(a.channel for a in self.attributes), np.full((1, self.styles), 1 / self.styles)])

    def good_joint(self, *, mask: float = 0.0) -> Array:
        """The law of a good pair, two observations of one scene: (observations, observations), sums to 1."""
        return self._joint(lambda a: _pair(np.array(a.shares), a.channel @ a.masked(mask)), self._style(0.0, mask))

    def bad_joint(self, *, mask: float = 0.0) -> Array:
        """The law of a bad pair, one observation twice masked: (observations, observations), sums to 1."""
        return self._joint(
            lambda a: _pair(np.array(a.shares) @ a.channel, a.masked(mask)),
            self._style(1.0, mask),
        )

    def joint(self, good_view_fraction: float, *, mask: float = 0.0) -> Array:
        """The law of a pair that is good with chance `good_view_fraction`; both kinds have the same margins."""
        if not 0 <= good_view_fraction <= 1:
            raise ForecastError(f"good_view_fraction must lie in [0, 1], got {good_view_fraction}")
        good, bad = self.good_joint(mask=mask), self.bad_joint(mask=mask)
        return good_view_fraction * good + (1 - good_view_fraction) * bad

    @cached_property
    def _order(self) -> Array:
        return np.argsort(-_product([a.functions[1] for a in self.attributes]), kind="stable")

    def spectrum(self) -> Array:
        """Eigenvalues of the good-pair law, descending, the constant function's 1 first: (scenes,)."""
        return _product([a.functions[1] for a in self.attributes])[self._order]

    def functions(self, count: int) -> Array:
        """The first `count` eigenfunctions after the constant, orthonormal under the prior: (scenes, count)."""
        if not 1 <= count < self.scenes:
            raise ForecastError(f"there are {self.scenes - 1} functions of a scene beside the constant, got {count}")
        chosen = np.unravel_index(self._order[1 : count + 1], self.shape)
        values = np.unravel_index(np.arange(self.scenes), self.shape)
        columns = np.ones((self.scenes, count))
        for attribute, value, function in zip(self.attributes, values, chosen, strict=True):
            columns *= attribute.functions[0][np.ix_(value, function)]
        return columns

    def features(self, count: int) -> Array:
        """The mean code of each scene under the best code of `count` dimensions, up to a rotation: (scenes, count).

        The best code of good pairs is the pair law's first eigenfunctions of an observation, of variance 1; its
        mean over the observations of a scene is the eigenfunction of the scene times the root of its eigenvalue.
        """
        return self.functions(count) * np.sqrt(self.spectrum()[1 : count + 1])

    def gap(self, count: int) -> float:
        """The eigenvalue of function `count` less the next: where it is 0 the first `count` are not determined."""
        spectrum = self.spectrum()
        return float(spectrum[count] - spectrum[count + 1]) if count + 1 < self.scenes else float(spectrum[count])

    def complete_rank(self, at_most: int) -> int:
        """The most functions, `at_most` or fewer, that are determined up to a rotation (a gap follows)."""
        for count in range(min(at_most, self.scenes - 1), 0, -1):
            if self.gap(count) > 1e-12:
                return count
        raise ForecastError(f"no gap within the first {at_most} functions of the scene law; ask for more of them")

    def _joint(self, of_attribute: Callable[[Attribute], Array], of_style: Array) -> Array:
        self._affordable(self.observations**2)
        return _product([*(of_attribute(a) for a in self.attributes), of_style])

    def _style(self, shared: float, mask: float) -> Array:
        """The pair law of styles: `shared` chance that both draw one, each replaced anew with chance `mask`."""
        kept = shared * (1 - mask) ** 2
        return kept * np.eye(self.styles) / self.styles + (1 - kept) * np.full((self.styles, self.styles), 1.0) / (
            self.styles**2
        )

    def _affordable(self, entries: int) -> None:
        if entries > MOST_ENTRIES:
            raise ForecastError(
                f"this law as a matrix has {entries:,} entries, more than {MOST_ENTRIES:,}; take fewer values, "
                "or the closed form (spectrum, functions, features)"
            )


def _pair(weights: Array, channel: Array) -> Array:
    joint: Array = channel.T @ (weights[:, None] * channel)
    return joint


def _product(parts: Sequence[Array]) -> Array:
    return reduce(np.kron, parts)
