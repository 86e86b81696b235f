"""Many starts and many refits of one law as one batched descent, with bounds and analytic gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc

from forecast.descent import Problem, descend
from forecast.laws.law import Columns, Law
from forecast.losses import Loss

__all__ = ["Loss", "Minima", "minimise", "project_linear", "starts"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Minima:
    """Where each start ended: engine coordinates (batch, p), loss (batch,), and how.

    gradient: largest cosine between the (capped) residuals and a free column of the Jacobian; 0 at a stationary point.
    moved: whether a step was ever accepted.
    """

    inner: Array
    loss: Array
    gradient: Array
    moved: Mask
    iterations: int

    @property
    def converged(self) -> Mask:
        """Stationary to the accuracy that double precision gives, with a finite loss."""
        return np.isfinite(self.loss) & (self.gradient < 1e-5)

    @property
    def best(self) -> int:
        """Index of the smallest loss."""
        return int(np.argmin(self.loss))

    def take(self, index: npt.NDArray[np.int64]) -> Minima:
        """Some of the starts."""
        return replace(self, **{name: getattr(self, name)[index] for name in ("inner", "loss", "gradient", "moved")})

    def joined(self, other: Minima) -> Minima:
        """These and others."""
        names = ("inner", "loss", "gradient", "moved")
        both = {name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in names}
        return Minima(**both, iterations=max(self.iterations, other.iterations))


def starts(law: Law, count: int, rng: np.random.Generator) -> Array:
    """Start points in engine coordinates, a scrambled Sobol sequence over the law's start ranges, (count, p)."""
    low = np.array([float(p.inner(p.start_lower)) for p in law.parameters])
    high = np.array([float(p.inner(p.start_upper)) for p in law.parameters])
    unit = qmc.Sobol(len(low), scramble=True, rng=rng).random_base2(int(np.ceil(np.log2(max(count, 2)))))[:count]
    return np.asarray(np.clip(low + unit * (high - low), law.lower, law.upper))


def project_linear(law: Law, columns: Columns, outcomes: Array, weights: Array, inner: Array) -> Array:
    """The same points with the law's linear parameters set to their least-squares values, within bounds."""
    if not law.linear:
        return inner
    where = list(law.linear)
    base = inner.copy()
    base[:, where] = np.clip(0.0, law.lower[where], law.upper[where])
    value, jacobian = law.value_and_jacobian(columns, base)
    basis = jacobian[:, :, where]
    rest = np.where(np.isfinite(value), outcomes - value, 0.0)
    basis = np.where(np.isfinite(basis), basis, 0.0)
    weighted = basis * weights[..., None]
    gram = np.einsum("bmi,bmj->bij", weighted, basis)
    scale = np.maximum(np.einsum("bii->bi", gram), 1e-300)
    right = np.einsum("bmi,bm->bi", weighted, rest)
    normal = gram / np.sqrt(scale[:, :, None] * scale[:, None, :]) + 1e-10 * np.eye(len(where))
    step = np.linalg.solve(normal, (right / np.sqrt(scale))[..., None])[..., 0] / np.sqrt(scale)
    base[:, where] = np.clip(base[:, where] + step, law.lower[where], law.upper[where])
    return base


def minimise(
    law: Law,
    columns: Columns,
    outcomes: Array,
    weights: Array,
    inner: Array,
    *,
    loss: Loss,
    iterations: int = 200,
    fixed: Mask | None = None,
    tolerance: float = 1e-15,
    near: bool = False,
) -> Minima:
    """Local minima from every start.

    columns, outcomes, weights: (rows,) or (batch, rows); a row of weight 0 is left out.
    inner: starts in engine coordinates, (batch, p). fixed: (p,) or (batch, p), parameters held where they start.
    tolerance: a step that lowers the loss by less than this share of it is the last.
    near: the starts are optima of almost the same data, as a bootstrap's are; Huber's steps are bolder then.
    """
    rows = next(iter(columns.values())).shape[-1]
    held = np.broadcast_to(np.zeros(inner.shape[1], dtype=bool) if fixed is None else fixed, inner.shape)
    problem = Problem(law, columns, outcomes, weights, loss)
    found = descend(problem, inner, held, rows=rows, iterations=iterations, tolerance=tolerance, near=near)
    return Minima(found.inner, found.loss, found.gradient, found.moved, found.iterations)
