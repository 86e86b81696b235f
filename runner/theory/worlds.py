"""Finite worlds with a pair law, what a JEPA learns on them, and how far two of them can disagree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forecast.errors import ForecastError

__all__ = ["Bound", "PairLaw", "bound", "learned_code", "misalignment", "random_law", "random_pair", "symmetric_law"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class PairLaw:
    """The law of positive pairs over finitely many states: joint (states, states), symmetric, sums to 1.

    The best code of k dimensions (mean 0, covariance I) maximises the agreement of paired states; with
    operator = D^-1/2 joint D^-1/2 less its constant direction, it is spanned by the k first eigenvectors.
    """

    joint: Array

    def __post_init__(self) -> None:
        joint = self.joint
        if joint.ndim != 2 or joint.shape[0] != joint.shape[1] or not np.isfinite(joint).all():
            raise ForecastError(f"a pair law is a square matrix of finite numbers, got shape {joint.shape}")
        if (joint < 0).any() or not np.isclose(joint.sum(), 1) or not np.allclose(joint, joint.T):
            raise ForecastError("a pair law is symmetric, has no negative entry and sums to 1")
        if not (joint.sum(axis=1) > 0).all():
            raise ForecastError("every state of a pair law needs a positive probability; leave the others out")

    @property
    def prior(self) -> Array:
        """Probability of each state: (states,)."""
        total: Array = self.joint.sum(axis=1)
        return total

    @property
    def operator(self) -> Array:
        """(states, states), symmetric; eigenvalues in [-1, 1], the constant direction taken out."""
        root = np.sqrt(self.prior)
        matrix: Array = self.joint / np.outer(root, root) - np.outer(root, root)
        return (matrix + matrix.T) / 2

    def spectrum(self) -> Array:
        """Eigenvalues, falling; one is the 0 of the constant direction."""
        return np.linalg.eigvalsh(self.operator)[::-1]

    def gap(self, k: int) -> float:
        """Eigenvalue k less eigenvalue k + 1: above 0, the best code of k dimensions is one up to rotation."""
        values = self.spectrum()
        return float(values[k - 1] - values[k])

    def basis(self, k: int) -> Array:
        """The k first eigenvectors: (states, k), orthonormal columns."""
        if not 1 <= k < len(self.joint) - 1:
            raise ForecastError(
                f"a code of {len(self.joint)} states has 1 to {len(self.joint) - 2} dimensions, got {k}"
            )
        vectors: Array = np.linalg.eigh(self.operator)[1][:, ::-1][:, :k]
        return vectors


def learned_code(law: PairLaw, k: int, *, rng: np.random.Generator) -> Array:
    """The code (states, k) that a general optimiser finds from a random start: mean 0 and covariance I.

    It minimises E|f(x) - f(x')|^2 over all codes of covariance I, written without constraint as
    2k - 2 tr[(F'DF)^-1 F'JF] with F of mean 0, and knows nothing of eigenvectors.
    """
    from scipy.optimize import minimize

    prior, joint = law.prior, law.joint
    states = len(prior)

    def centred(flat: Array) -> Array:
        f = flat.reshape(states, k)
        moved: Array = f - prior @ f
        return moved

    def loss(flat: Array) -> tuple[float, Array]:
        f = centred(flat)
        inverse = np.linalg.inv(f.T @ (prior[:, None] * f))
        paired = joint @ f
        agreement = inverse @ (f.T @ paired)
        gradient = -4 * (paired @ inverse - prior[:, None] * (f @ agreement @ inverse))
        gradient = gradient - np.outer(prior, gradient.sum(axis=0))
        return 2 * k - 2 * float(np.trace(agreement)), gradient.ravel()

    start = rng.standard_normal(states * k)
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 20_000, "ftol": 1e-16, "gtol": 1e-10}
    )
    f = centred(found.x)
    code: Array = np.linalg.solve(np.linalg.cholesky(f.T @ (prior[:, None] * f)), f.T).T
    return code


def misalignment(one: Array, other: Array) -> float:
    """Sine of the largest angle between two spaces given by orthonormal columns: 0 equal, 1 a direction is lost."""
    across = other - one @ (one.T @ other)
    return min(1.0, float(np.linalg.norm(across, 2)))


@dataclass(frozen=True)
class Bound:
    """What two pair laws over the same states give: misalignment, |K1 - K2| and the gap of the first.

    plain: |K1 - K2| / gap, which is *not* a bound; safe: twice that, which is.
    """

    misalignment: float
    distance: float
    gap: float

    @property
    def plain(self) -> float:
        """|K1 - K2| / gap."""
        return self.distance / self.gap if self.gap > 0 else float("inf")

    @property
    def safe(self) -> float:
        """2 |K1 - K2| / gap."""
        return 2 * self.plain

    @property
    def says_nothing(self) -> bool:
        """Whether the safe bound is 1 or more, as every misalignment is at most 1."""
        return self.safe >= 1


def bound(first: PairLaw, second: PairLaw, k: int) -> Bound:
    """The misalignment of the two best codes of k dimensions and what bounds it; operator norms.

    Source of the factor 2: Yu, Wang & Samworth (2015), doi 10.1093/biomet/asv008, in the operator norm: below
    |K1 - K2| = gap / 2 by Davis & Kahan (1970), doi 10.1137/0707001, with Weyl; from there on it says nothing.
    """
    difference = first.operator - second.operator
    return Bound(misalignment(first.basis(k), second.basis(k)), float(np.linalg.norm(difference, 2)), first.gap(k))


def random_law(states: int, rng: np.random.Generator, *, prior: Array | None = None) -> PairLaw:
    """A positive semi-definite pair law: two observations of one hidden scene, scaled to `prior` (Sinkhorn)."""
    prior = rng.dirichlet(np.full(states, 3.0)) if prior is None else prior
    channel = rng.dirichlet(np.full(states, 0.3), size=max(2, states)) + 1e-4
    joint = channel.T @ (rng.dirichlet(np.ones(len(channel)))[:, None] * channel)
    scale = np.ones(states)
    for _ in range(5000):
        change = np.sqrt(prior / (scale * (joint @ scale)))
        scale *= change
        if np.abs(change - 1).max() < 1e-14:
            break
    joint = joint * np.outer(scale, scale)
    return PairLaw((joint + joint.T) / (2 * joint.sum()))


def random_pair(rng: np.random.Generator) -> tuple[PairLaw, PairLaw, int]:
    """Two laws over the same states with the same prior, from nearly equal to unrelated, and a k."""
    states = int(rng.integers(4, 20))
    first = random_law(states, rng)
    other = random_law(states, rng, prior=first.prior)
    far = 10 ** rng.uniform(-4, 0)
    return first, PairLaw((1 - far) * first.joint + far * other.joint), int(rng.integers(1, states - 1))


def symmetric_law(values: Array, vectors: Array) -> PairLaw:
    """The law over equally likely states whose operator has these eigenvalues and orthonormal eigenvectors.

    vectors: (states, count), each orthogonal to the constant. Raises ForecastError if a probability is negative.
    """
    states = len(vectors)
    return PairLaw((np.full((states, states), 1 / states) + (vectors * values) @ vectors.T) / states)
