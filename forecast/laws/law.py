"""What a law is: a formula, its parameters with bounds, its constants and its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from forecast.errors import ForecastError
from forecast.laws.expression import Expression, parse
from forecast.laws.links import LINKS, LinkName

__all__ = ["Columns", "Law", "Parameter", "Scale"]

Array = npt.NDArray[np.float64]
Columns = Mapping[str, Array]
Solver = Callable[[Columns, Mapping[str, Array], Mapping[str, float]], tuple[Array, Mapping[str, Array]]]


@dataclass(frozen=True)
class Parameter:
    """One parameter: where it may lie, where starts are drawn, and whether the engine walks in its logarithm."""

    name: str
    lower: float
    upper: float
    start_lower: float
    start_upper: float
    walk: Literal["linear", "log"] = "linear"

    def inner(self, value: Array | float) -> Array:
        """From the parameter's own unit to the engine's coordinate."""
        return np.log(value) if self.walk == "log" else np.asarray(value, dtype=np.float64)

    def outer(self, value: Array) -> Array:
        """From the engine's coordinate to the parameter's own unit."""
        return np.exp(value) if self.walk == "log" else np.asarray(value, dtype=np.float64)


@dataclass(frozen=True)
class Scale:
    """What a law may know of the data before it is fitted: the metric's marks and the predictors' ranges."""

    low: float
    high: float
    chance: float | None = None
    metric_lower: float | None = None
    metric_upper: float | None = None
    higher_is_better: bool = True
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def span(self) -> float:
        """Range of the outcomes, never 0."""
        return max(self.high - self.low, 1e-9 * max(abs(self.high), 1e-300))

    @property
    def floor(self) -> float:
        """What a code that knows nothing scores: chance, else the metric's lower end, else far below the data."""
        for mark in (self.chance, self.metric_lower):
            if mark is not None:
                return min(mark, self.low)
        return self.low - 3.0 * self.span

    @property
    def top(self) -> float:
        """The highest value that a ceiling may take."""
        return self.metric_upper if self.metric_upper is not None else self.high + 20.0 * self.span

    def middle(self, name: str) -> float:
        """The geometric middle of a positive predictor's range."""
        low, high = self.ranges[name]
        return float(np.sqrt(low * high))


@dataclass(frozen=True)
class Law:
    """A formula with its parameters: value and analytic gradient on a batch of parameter vectors.

    family: "shift" (g shifts the curve along log n), "ceiling" (g sets the ceiling), "null" or "other".
    solver: for a law without a closed form: (columns, parameters, constants) -> value, gradient by name.
    link: the scale of `value`; the formula is always in the outcome's own unit.
    priors: parameter -> mean and SD of a normal prior, own unit; noise_variance: of one run, what a prior's squares
    are weighed against.
    """

    name: str
    formula: str
    source: str
    predictors: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    constants: Mapping[str, float] = field(default_factory=dict)
    family: str = "other"
    solver: Solver | None = None
    link: LinkName = "identity"
    priors: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    noise_variance: float = 0.0

    @cached_property
    def expression(self) -> Expression:
        """The parsed formula."""
        return parse(self.formula)

    @cached_property
    def _evaluated(self) -> tuple[Expression, LinkName]:
        """What is computed, and the link that is still to be applied: the log of a formula exp(t) is t."""
        root = self.expression.nodes[self.expression.root]
        if self.link == "log" and root.operation == "exp":
            return replace(self.expression, root=root.arguments[0]), "identity"
        return self.expression, self.link

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names in order."""
        return tuple(parameter.name for parameter in self.parameters)

    @cached_property
    def lower(self) -> Array:
        """Lower bounds in the engine's coordinates."""
        return np.array([float(p.inner(p.lower)) for p in self.parameters])

    @cached_property
    def upper(self) -> Array:
        """Upper bounds in the engine's coordinates."""
        return np.array([float(p.inner(p.upper)) for p in self.parameters])

    @cached_property
    def linear(self) -> tuple[int, ...]:
        """Positions of the parameters in which the law is jointly linear (walked linearly, without solver)."""
        if self.solver is not None or self.link != "identity":
            return ()
        walked = [p.name for p in self.parameters if p.walk == "linear"]
        chosen = self.expression.linear_in(walked)
        return tuple(i for i, p in enumerate(self.parameters) if p.name in chosen)

    def outer(self, inner: Array) -> Array:
        """Parameters in their own units, from engine coordinates of shape (..., parameters)."""
        return np.stack([p.outer(inner[..., i]) for i, p in enumerate(self.parameters)], axis=-1)

    def inner(self, outer: Array) -> Array:
        """Engine coordinates from parameters in their own units, shape (..., parameters)."""
        return np.stack([p.inner(outer[..., i]) for i, p in enumerate(self.parameters)], axis=-1)

    def value(self, columns: Columns, inner: Array) -> Array:
        """Values, shape (batch, rows), for engine coordinates of shape (batch, parameters).

        columns: each of shape (rows,), or (batch, rows) where they differ along the batch.
        """
        if self.solver is not None:
            return self.value_and_jacobian(columns, inner)[0]
        outer = self.outer(inner)
        bound: dict[str, Array | float] = {**self.constants, **{k: columns[k] for k in self.predictors}}
        bound |= {name: outer[:, i, None] for i, name in enumerate(self.names)}
        expression, link = self._evaluated
        return np.broadcast_to(_linked(expression.value(bound), link), self._shape(columns, inner))

    def value_and_jacobian(self, columns: Columns, inner: Array) -> tuple[Array, Array]:
        """Values (batch, rows) and derivatives by engine coordinates (batch, rows, parameters)."""
        outer = self.outer(inner)
        mine = {name: outer[:, i, None] for i, name in enumerate(self.names)}
        if self.solver is not None:
            value, named = self.solver(columns, mine, self.constants)
            parts, link = [named[name] for name in self.names], self.link
        else:
            bound: dict[str, Array | float] = {**self.constants, **{k: columns[k] for k in self.predictors}, **mine}
            expression, link = self._evaluated
            value, parts = expression.value_and_gradient(bound, self.names)
        shape = self._shape(columns, inner)
        if link != "identity":
            with np.errstate(all="ignore"):
                slope = LINKS[link].slope(value)
            value, parts = _linked(value, link), [part * slope for part in parts]
        jacobian = np.empty((len(parts), *shape))
        for i, (part, parameter) in enumerate(zip(parts, self.parameters, strict=True)):
            jacobian[i] = part * outer[:, i, None] if parameter.walk == "log" else part
        return np.broadcast_to(value, shape), jacobian.transpose(1, 2, 0)

    def fixed(self, values: Mapping[str, float]) -> Law:
        """The same law with some parameters turned into constants."""
        unknown = set(values) - set(self.names)
        if unknown:
            raise ForecastError(f"{self.name} has no parameter {sorted(unknown)[0]!r}; it has {', '.join(self.names)}")
        free = tuple(p for p in self.parameters if p.name not in values)
        if not free:
            raise ForecastError(f"every parameter of {self.name} is fixed; leave at least one free")
        priors = {name: prior for name, prior in self.priors.items() if name not in values}
        return replace(self, parameters=free, constants={**self.constants, **values}, priors=priors)

    def with_priors(self, priors: Mapping[str, tuple[float, float]]) -> Law:
        """The same law with normal priors: parameter -> mean and SD."""
        unknown = set(priors) - set(self.names)
        if unknown:
            raise ForecastError(
                f"a prior is given for {sorted(unknown)[0]!r}, {self.name} has the free parameters "
                f"{', '.join(self.names)}; name one law with --law"
            )
        for parameter in self.parameters:
            mean = priors.get(parameter.name, (parameter.lower, 0.0))[0]
            if not parameter.lower <= mean <= parameter.upper:
                raise ForecastError(
                    f"the prior of {parameter.name} has the mean {mean:g}, {self.name} keeps it in "
                    f"[{parameter.lower:g}, {parameter.upper:g}]; give a mean inside"
                )
        return replace(self, priors=dict(priors))

    def with_constants(self, values: Mapping[str, float]) -> Law:
        """The same law with more constants."""
        return replace(self, constants={**self.constants, **values})

    def prior_residual(self, inner: Array) -> tuple[Array, Array]:
        """What the priors add to the data's residuals, and its derivative by engine coordinates, (batch, p) each.

        The sum of squares is noise_variance ((parameter - mean) / SD)^2: minus twice the log posterior, as the loss is
        minus twice the log likelihood in units of noise_variance. Zero without priors.
        """
        residual, slope = np.zeros(inner.shape), np.zeros(inner.shape)
        for i, parameter in enumerate(self.parameters):
            if parameter.name in self.priors:
                mean, sd = self.priors[parameter.name]
                unit = np.sqrt(self.noise_variance) / sd
                outer = parameter.outer(inner[:, i])
                residual[:, i] = unit * (mean - outer)
                slope[:, i] = unit * (outer if parameter.walk == "log" else 1.0)
        return residual, slope

    def prior_loss(self, inner: Array) -> Array | float:
        """The priors' share of the loss, (batch,); 0 without priors."""
        if not self.priors:
            return 0.0
        return np.asarray(np.sum(self.prior_residual(inner)[0] ** 2, axis=1))

    def _shape(self, columns: Columns, inner: Array) -> tuple[int, int]:
        first = columns[self.predictors[0]] if self.predictors else next(iter(columns.values()))
        return inner.shape[0], first.shape[-1]


def _linked(value: Array, link: LinkName) -> Array:
    if link == "identity":
        return value
    with np.errstate(all="ignore"):
        return np.asarray(LINKS[link].forward(value))
