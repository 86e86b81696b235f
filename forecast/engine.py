"""Many starts and many refits of one law as one batched Levenberg-Marquardt, with bounds and analytic gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc

from forecast.laws.law import Columns, Law

__all__ = ["Loss", "Minima", "minimise", "project_linear", "starts"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

CHUNK = 400_000  # elements of (batch, rows) worked on at once: bounds the memory


@dataclass(frozen=True)
class Loss:
    """What is summed over rows: squares, or Huber's loss with threshold `delta` in the outcome's unit.

    Squared: w r^2. Huber: w r^2 inside delta, w (2 delta |r| - delta^2) outside (twice the usual form).
    """

    name: Literal["squared", "huber"] = "squared"
    delta: float | None = None

    def total(self, residuals: Array, weights: Array) -> Array:
        """The summed loss, shape (batch,); inf where the law has no finite value."""
        size = np.abs(residuals)
        if self.name == "huber":
            assert self.delta is not None
            each = np.where(size <= self.delta, size**2, 2 * self.delta * size - self.delta**2)
        else:
            each = size**2
        summed = np.sum(np.where(weights > 0, weights * each, 0.0), axis=-1)
        return np.where(np.isfinite(summed), summed, np.inf)

    def reported(self, total: float) -> float:
        """The loss as it is usually written: Huber's is r^2 / 2 inside delta."""
        return total / 2 if self.name == "huber" else total

    def influence(self, residuals: Array, weights: Array) -> Array:
        """Weights of the equivalent least squares at these residuals."""
        if self.name == "huber":
            assert self.delta is not None
            return weights * np.minimum(1.0, self.delta / np.maximum(np.abs(residuals), 1e-300))
        return weights


@dataclass(frozen=True)
class Minima:
    """Where each start ended: engine coordinates (batch, p), loss (batch,), and how.

    gradient: largest cosine between the residuals and a free column of the Jacobian; 0 at a stationary point.
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
) -> Minima:
    """Local minima from every start.

    columns, outcomes, weights: (rows,) or (batch, rows); a row of weight 0 is left out.
    inner: starts in engine coordinates, (batch, p). fixed: (p,) or (batch, p), parameters held where they start.
    tolerance: a step that lowers the loss by less than this share of it is the last.
    """
    batch, rows = inner.shape[0], next(iter(columns.values())).shape[-1]
    held = np.broadcast_to(np.zeros(inner.shape[1], dtype=bool) if fixed is None else fixed, inner.shape)
    y = np.broadcast_to(outcomes, (batch, rows))
    w = np.broadcast_to(weights, (batch, rows))
    size = max(1, CHUNK // max(rows, 1))
    parts = []
    for i in range(0, batch, size):
        some = slice(i, i + size)
        parts.append(
            _descend(law, _part(columns, some), y[some], w[some], inner[some], held[some], loss, iterations, tolerance)
        )
    return Minima(
        inner=np.concatenate([p.inner for p in parts]),
        loss=np.concatenate([p.loss for p in parts]),
        gradient=np.concatenate([p.gradient for p in parts]),
        moved=np.concatenate([p.moved for p in parts]),
        iterations=max(p.iterations for p in parts),
    )


def _part(columns: Columns, index: slice | npt.NDArray[np.int64]) -> Columns:
    """The columns of some members of the batch."""
    return {name: v[index] if v.ndim == 2 else v for name, v in columns.items()}


def _descend(
    law: Law,
    columns: Columns,
    y: Array,
    w: Array,
    inner: Array,
    held: Mask,
    loss: Loss,
    iterations: int,
    tolerance: float,
) -> Minima:
    x = np.clip(inner, law.lower, law.upper)
    batch = len(x)
    total = np.full(batch, np.inf)
    measure = np.full(batch, np.inf)
    moved = np.zeros(batch, dtype=bool)
    damping = np.full(batch, 1e-2)
    alive = np.arange(batch)
    value, jacobian = law.value_and_jacobian(columns, x)
    residual = y - value
    total = loss.total(residual, w) + law.prior_loss(x)
    alive = np.flatnonzero(np.isfinite(total))
    residual, jacobian = residual[alive], jacobian[alive]
    done = 0
    while done < iterations and len(alive):
        done += 1
        normal, right, free, cosine = _normal(law, x[alive], residual, jacobian, w[alive], held[alive], loss)
        measure[alive] = cosine
        step = _damped_step(normal, right, free, damping[alive])
        trial = np.clip(x[alive] + step, law.lower, law.upper)
        value, new_jacobian = law.value_and_jacobian(_part(columns, alive), trial)
        new_residual = y[alive] - value
        new_total = loss.total(new_residual, w[alive]) + law.prior_loss(trial)
        better = new_total < total[alive]
        gain = np.where(better, (total[alive] - new_total) / np.maximum(total[alive], 1e-300), 0.0)
        damping[alive] = np.clip(np.where(better, damping[alive] * 0.2, damping[alive] * 6.0), 1e-14, 1e12)
        taken = alive[better]
        x[taken], total[taken], moved[taken] = trial[better], new_total[better], True
        residual = np.where(better[:, None], new_residual, residual)
        jacobian = np.where(better[:, None, None], new_jacobian, jacobian)
        settled = (better & (gain < tolerance)) | (~better & (damping[alive] > 1e9)) | (total[alive] <= 0)
        settled |= cosine < 1e-11
        alive, residual, jacobian = alive[~settled], residual[~settled], jacobian[~settled]
    last = np.flatnonzero(np.isfinite(total))
    if len(last):
        value, jacobian = law.value_and_jacobian(_part(columns, last), x[last])
        measure[last] = _normal(law, x[last], y[last] - value, jacobian, w[last], held[last], loss)[3]
    return Minima(x, total, measure, moved, done)


def _normal(
    law: Law, x: Array, residual: Array, jacobian: Array, w: Array, held: Mask, loss: Loss
) -> tuple[Array, Array, Mask, Array]:
    """Normal matrix, right side, which parameters are free of their bounds, and the stationarity cosine."""
    active = w > 0
    j = np.where(active[..., None] & np.isfinite(jacobian), jacobian, 0.0)
    r = np.where(active, residual, 0.0)
    weight = loss.influence(r, w)
    weighted = j * weight[..., None]
    normal = np.matmul(weighted.transpose(0, 2, 1), j)
    right = np.einsum("bmp,bm->bp", weighted, r)
    squares = np.sum(weight * r * r, axis=1)
    if law.priors:
        away, slope = law.prior_residual(x)
        normal = normal + np.eye(x.shape[1]) * (slope**2)[:, None, :]
        right, squares = right + slope * away, squares + np.sum(away**2, axis=1)
    tolerance = 1e-12 * np.maximum(1.0, np.abs(x))
    stuck = held | ((x <= law.lower + tolerance) & (right < 0)) | ((x >= law.upper - tolerance) & (right > 0))
    length = np.sqrt(np.maximum(np.einsum("bpp->bp", normal), 0.0))
    norm = np.sqrt(squares)
    cosine = np.abs(right) / np.maximum(length * norm[:, None], 1e-300)
    cosine = np.where(stuck | (length <= 0), 0.0, cosine)
    return normal, right, ~stuck, np.max(cosine, axis=1)


def _damped_step(normal: Array, right: Array, free: Mask, damping: Array) -> Array:
    """The Marquardt step in the free parameters; 0 in the others."""
    diagonal = np.einsum("bpp->bp", normal)
    scale = np.sqrt(np.maximum(diagonal, 1e-20 * np.maximum(diagonal.max(axis=1, keepdims=True), 1e-300)))
    both = free[:, :, None] & free[:, None, :]
    identity = np.eye(right.shape[1])
    scaled = np.where(both, normal / (scale[:, :, None] * scale[:, None, :]), 0.0)
    scaled = np.where(np.isfinite(scaled), scaled, 0.0)
    scaled = scaled * (1 - identity) + identity * (1.0 + damping[:, None, None])
    target = np.where(free, right / scale, 0.0)
    target = np.where(np.isfinite(target), target, 0.0)
    return np.asarray(np.linalg.solve(scaled, target[..., None])[..., 0] / scale)
