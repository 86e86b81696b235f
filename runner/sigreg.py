"""SIGReg: how far the codes' projections are from a standard normal, as a loss."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

__all__ = ["EXPECTED_FOR_GAUSSIAN", "KNOTS", "LAST_KNOT", "random_directions", "sigreg"]

KNOTS, LAST_KNOT = 17, 3.0
EXPECTED_FOR_GAUSSIAN = 1.0525  # of the 17-knot trapezoid; sqrt(2 pi) (1 - 1/sqrt 3) = 1.0594 on the whole line


def random_directions(dimensions: int, count: int, generator: torch.Generator) -> Tensor:
    """Unit directions, (dimensions, count), uniform on the sphere."""
    drawn = torch.randn(dimensions, count, generator=generator)
    unit: Tensor = drawn / drawn.norm(dim=0)
    return unit


def sigreg(codes: Tensor, directions: Tensor) -> Tensor:
    """Mean Epps-Pulley statistic of the codes' projections, a scalar >= 0.

        N * integral |phi_N(t) - exp(-t^2/2)|^2 exp(-t^2/2) dt, averaged over directions

    with phi_N the empirical characteristic function; trapezoid on 17 knots in [0, 3], doubled
    by symmetry. For exact N(0, I) codes its expectation is 1.0525 at every N.
    codes: (N, dimensions). directions: (dimensions, K). Computed in float32.
    Source: Balestriero & LeCun (2025), LeJEPA, arXiv 2511.08544; Epps & Pulley (1983), doi 10.1093/biomet/70.3.723.
    """
    statistic: Tensor = _EppsPulley.apply(codes.float() @ directions)  # type: ignore[no-untyped-call]
    return statistic


def _knots() -> tuple[list[float], list[float], list[float]]:
    """Knots t, the normal's characteristic function there, and trapezoid weight times window times 2."""
    step = LAST_KNOT / (KNOTS - 1)
    t = [step * j for j in range(KNOTS)]
    phi = [float(torch.exp(torch.tensor(-x * x / 2, dtype=torch.float64))) for x in t]
    weights = [2 * step * p * (0.5 if j in (0, KNOTS - 1) else 1.0) for j, p in enumerate(phi)]
    return t, phi, weights


class _EppsPulley(torch.autograd.Function):
    """The statistic of (N, K) projections without ever holding an (N, K, knots) array.

    cos(t_j x) and sin(t_j x) at evenly spaced knots follow from the first by the Chebyshev recurrence;
    the gradient is a Clenshaw sum of the same terms.
    """

    @staticmethod
    def forward(ctx: Any, projections: Tensor) -> Tensor:
        t, phi, weights = _knots()
        count, directions = projections.shape
        angle = projections * t[1]
        cosine, sine = angle.cos(), angle.sin()
        twice = cosine * 2
        real = projections.new_empty(KNOTS, directions)
        imaginary = projections.new_empty(KNOTS, directions)
        real[0], imaginary[0] = 1.0, 0.0
        real[1], imaginary[1] = cosine.mean(0), sine.mean(0)
        cos_old, cos_now = torch.ones_like(cosine), cosine.clone()
        sin_old, sin_now = torch.zeros_like(sine), sine.clone()
        for j in range(2, KNOTS):
            torch.addcmul(-cos_old, twice, cos_now, out=cos_old)
            torch.addcmul(-sin_old, twice, sin_now, out=sin_old)
            cos_old, cos_now, sin_old, sin_now = cos_now, cos_old, sin_now, sin_old
            real[j], imaginary[j] = cos_now.mean(0), sin_now.mean(0)
        gap = real - projections.new_tensor(phi)[:, None]
        weight = projections.new_tensor(weights)[:, None]
        ctx.save_for_backward(cosine, sine, weight * gap, weight * imaginary)
        statistic: Tensor = count * (weight * (gap * gap + imaginary * imaginary)).sum(0).mean()
        return statistic

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        cosine, sine, gap, imaginary = ctx.saved_tensors
        t, _, _ = _knots()
        directions = cosine.shape[1]
        speed = cosine.new_tensor(t)[:, None] * (2 / directions)
        on_sine, on_cosine = -gap * speed, imaginary * speed
        twice = cosine * 2
        sine_now, sine_old = torch.zeros_like(cosine), torch.zeros_like(cosine)
        cos_now, cos_old = torch.zeros_like(cosine), torch.zeros_like(cosine)
        for j in range(KNOTS - 1, 0, -1):
            torch.addcmul(on_sine[j] - sine_old, twice, sine_now, out=sine_old)
            torch.addcmul(on_cosine[j] - cos_old, twice, cos_now, out=cos_old)
            sine_now, sine_old, cos_now, cos_old = sine_old, sine_now, cos_old, cos_now
        slope: Tensor = gradient * (sine * sine_now + cosine * cos_now - cos_old)
        return slope
