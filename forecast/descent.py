"""Damped Gauss-Newton on a whole batch at once: what `engine.minimise` does with each part of its batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from forecast.laws.law import Columns, Law
from forecast.losses import Loss

__all__ = ["Descent", "Problem", "descend"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Index = npt.NDArray[np.int64]

# damping at first, its factors after a good and a bad step; Huber's is a share of the metric, which keeps all rows
PACE: Mapping[str, tuple[float, float, float]] = {"squared": (1e-2, 0.2, 6.0), "huber": (0.3, 0.3, 4.0)}
RIDGE = 0.1  # of the damping: Huber's share of the metric's diagonal, which turns steps from far starts downhill
STEEP = 1e100  # a derivative's size that is as good as infinite; its square is a number still
SINGULAR = 1e-13  # of a unit diagonal: keeps an exactly singular system solvable
POOL = 80_000  # elements of (members, rows) worked on at once: what a core's cache holds
ROOM = 0.2  # share of settled members from which on others take their places


@dataclass(frozen=True)
class Problem:
    """What is minimised: a law on columns, outcomes and weights, each (rows,) or (batch, rows), under a loss."""

    law: Law
    columns: Columns
    outcomes: Array
    weights: Array
    loss: Loss

    def part(self, index: slice | Index) -> Problem:
        """Some members of the batch; what all share stays shared."""
        return Problem(
            self.law,
            {name: v[index] if v.ndim == 2 else v for name, v in self.columns.items()},
            self.outcomes[index] if self.outcomes.ndim == 2 else self.outcomes,
            self.weights[index] if self.weights.ndim == 2 else self.weights,
            self.loss,
        )


@dataclass
class Model:
    """The quadratic model at one point of each member of the batch.

    normal: J'WJ over the rows inside Huber's threshold, the second derivative of the loss but for the law's own
    curvature; metric: J'WJ over all rows; right: minus half the gradient; squares: sum of the squared capped residuals.
    """

    total: Array
    normal: Array
    metric: Array
    right: Array
    squares: Array


@dataclass
class State:
    """Members at work: where they are, the model there, how damped, for how long; which of the batch they are."""

    member: Index
    x: Array
    total: Array
    normal: Array
    metric: Array
    right: Array
    squares: Array
    damping: Array
    ridge: Array
    age: Index
    going: Mask

    def take(self, index: Index) -> State:
        """Some of the members."""
        return State(*(getattr(self, field.name)[index] for field in fields(self)))

    def joined(self, other: State) -> State:
        """These members and others."""
        pairs = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return State(*(np.concatenate(pair) for pair in pairs))

    def move(self, where: Mask, x: Array, model: Model) -> None:
        """Accept a step of some members."""
        self.x[where] = x[where]
        for field in fields(model):
            getattr(self, field.name)[where] = getattr(model, field.name)[where]


@dataclass(frozen=True)
class Descent:
    """Where each member ended, how stationary it is there, whether it moved, and the most steps that one took."""

    inner: Array
    loss: Array
    gradient: Array
    moved: Mask
    iterations: int


def descend(
    problem: Problem, inner: Array, held: Mask, *, rows: int, iterations: int, tolerance: float, near: bool
) -> Descent:
    """Each member's local minimum.

    A row outside Huber's threshold has no curvature, so the normal matrix holds the rows inside alone; damping adds
    all rows' matrix, in which no direction is short, as reweighting would. Near the minimum this is Newton's method but
    for the law's own curvature, which a robust fit through many rows does not need: it ends in some ten steps where
    reweighting takes a hundred. Settled members make room for others, so that the batch stays full.
    """
    law, loss = problem.law, problem.loss
    start = np.clip(inner, law.lower, law.upper)
    batch, room = len(start), max(1, POOL // max(rows, 1))
    out = Descent(start.copy(), np.full(batch, np.inf), np.full(batch, np.inf), np.zeros(batch, dtype=bool), 0)
    _, shrink, grow = PACE[loss.name]
    state, some, waiting, longest = _newcomers(loss, start, np.arange(0), near), problem, 0, 0
    while True:
        if np.count_nonzero(state.going) <= (1 - ROOM) * len(state.going):
            kept = state.take(np.flatnonzero(state.going))
            fresh = np.arange(waiting, min(batch, waiting + room - len(kept.x)))
            waiting += len(fresh)
            state = kept.joined(_newcomers(loss, start, fresh, near))
            some = problem.part(state.member)
            if not len(state.x):
                break
            free = _stationarity(law, state, held[state.member])[0]
        step = _step(loss, state, free)
        trial = np.clip(state.x + step, law.lower, law.upper)
        model = _model(some, trial)
        better = state.going & (model.total < state.total)
        gain = np.subtract(state.total, model.total, out=np.zeros(len(better)), where=better)
        promised = np.sum(state.right * step, axis=1)
        entered = state.age == 0
        state.damping = np.where(
            entered, state.damping, np.clip(state.damping * np.where(better, shrink, grow), 1e-14, 1e12)
        )
        state.ridge = np.where(state.damping > 1.0, RIDGE, state.ridge)
        settled = (better & (gain < tolerance * state.total)) | (~better & (state.damping > 1e9))
        # what so small a promise gains may be lost in rounding, and the step be refused
        settled |= (promised < tolerance * state.total) & (state.damping <= 1.0)
        settled &= ~entered
        state.move(better, trial, model)
        out.moved[state.member[better & ~entered]] = True
        state.age += 1
        free, cosine = _stationarity(law, state, held[state.member])
        settled |= (cosine < 1e-11) | (state.total <= 0) | ~np.isfinite(state.total) | (state.age > iterations)
        ended = state.going & settled
        where = state.member[ended]
        out.inner[where], out.loss[where], out.gradient[where] = state.x[ended], state.total[ended], cosine[ended]
        longest = max(longest, int(state.age.max()) - 1)
        state.going &= ~settled
    return Descent(out.inner, out.loss, out.gradient, out.moved, longest)


def _newcomers(loss: Loss, start: Array, member: Index, near: bool) -> State:
    """Members before their first evaluation: no loss yet, and a model whose step is none."""
    count, p = len(member), start.shape[1]
    unit = np.tile(np.eye(p), (count, 1, 1))
    return State(
        member=member,
        x=start[member],
        total=np.full(count, np.inf),
        normal=unit,
        metric=unit.copy(),
        right=np.zeros((count, p)),
        squares=np.zeros(count),
        damping=np.full(count, PACE[loss.name][0]),
        ridge=np.full(count, 0.0 if near else RIDGE),
        age=np.zeros(count, dtype=np.int64),
        going=np.ones(count, dtype=bool),
    )


def _model(problem: Problem, x: Array) -> Model:
    """The quadratic model at x; a member without a finite loss has total inf."""
    law, w = problem.law, problem.weights
    value, jacobian = law.value_and_jacobian(problem.columns, x)
    residual, j = problem.outcomes - value, jacobian.transpose(2, 0, 1)
    with np.errstate(invalid="ignore", over="ignore"):
        model = _sums(problem.loss, residual, j, w)
        if not np.all(np.isfinite(model.total)) or not np.all(np.isfinite(model.metric)):
            active = np.broadcast_to(w > 0, residual.shape)
            clean = np.clip(np.where(active & np.isfinite(j), j, 0.0), -STEEP, STEEP)
            model = _sums(problem.loss, np.where(active, residual, 0.0), clean, w)
            model.total = np.where(np.isfinite(model.total), model.total, np.inf)
    if law.priors:
        away, slope = law.prior_residual(x)
        extra = np.eye(x.shape[1]) * (slope**2)[:, None, :]
        model.normal, model.metric = model.normal + extra, model.metric + extra
        model.right = model.right + slope * away
        prior = np.sum(away**2, axis=1)
        model.squares, model.total = model.squares + prior, model.total + prior
    return model


def _sums(loss: Loss, residual: Array, j: Array, w: Array) -> Model:
    """Sums over the rows: residual (batch, rows), derivatives j (p, batch, rows)."""
    capped = loss.capped(residual)
    weighted = w * capped
    total = np.vecdot(weighted, 2 * residual - capped)
    right = np.stack([np.vecdot(weighted, each) for each in j], axis=1)
    metric = _gram(w * j, j)
    normal = metric if capped is residual else _gram((w * (capped == residual)) * j, j)
    return Model(total, normal, metric, right, np.vecdot(weighted, capped))


def _gram(weighted: Array, j: Array) -> Array:
    """J'WJ of each member, (batch, p, p)."""
    p = len(j)
    if j[0].size < 4096:
        return np.asarray(np.matmul(weighted.transpose(1, 0, 2), j.transpose(1, 2, 0)))
    out = np.empty((j.shape[1], p, p))
    for a in range(p):
        for b in range(a, p):
            out[:, a, b] = out[:, b, a] = np.vecdot(weighted[a], j[b])
    return out


def _stationarity(law: Law, state: State, held: Mask) -> tuple[Mask, Array]:
    """Which parameters may move, and the largest cosine between the capped residuals and such a one's derivative."""
    x, right = state.x, state.right
    slack = 1e-12 * np.maximum(1.0, np.abs(x))
    stuck = held | ((x <= law.lower + slack) & (right < 0)) | ((x >= law.upper - slack) & (right > 0))
    length = np.sqrt(np.maximum(np.einsum("bpp->bp", state.metric), 0.0) * state.squares[:, None])
    cosine = np.where(stuck | (length <= 0), 0.0, np.abs(right) / np.maximum(length, 1e-300))
    return ~stuck, np.max(cosine, axis=1, initial=0.0)


def _step(loss: Loss, state: State, free: Mask) -> Array:
    """The damped step in the free parameters; 0 in the others."""
    diagonal = np.einsum("bpp->bp", state.metric)
    scale = np.sqrt(np.maximum(diagonal, 1e-20 * np.maximum(diagonal.max(axis=1, keepdims=True), 1e-280)))
    both = (free[:, :, None] & free[:, None, :]) / (scale[:, :, None] * scale[:, None, :])
    identity, damping = np.eye(scale.shape[1]), state.damping[:, None, None]
    if loss.name == "squared":
        unit = state.normal * both * (1 - identity) + identity * (1.0 + damping)
    else:
        unit = (state.normal + damping * state.metric) * both
        unit += identity * (SINGULAR + damping * state.ridge[:, None, None] + ~free[:, None, :])
    target = np.where(free, state.right / scale, 0.0)
    return np.asarray(np.linalg.solve(unit, target[..., None])[..., 0] / scale)
