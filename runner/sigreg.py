"""SIGReg: how far the codes' projections are from a standard normal, as a loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor

from runner.group import Group

__all__ = ["EXPECTED_FOR_GAUSSIAN", "KNOTS", "LAST_KNOT", "random_directions", "sigreg"]

KNOTS, LAST_KNOT = 17, 3.0
_BLOCK = 2**17  # projections: half a megabyte
_DEALT_OUT = 2**15  # elements from which on torch deals an operation out to threads
EXPECTED_FOR_GAUSSIAN = 1.0525  # of the 17-knot trapezoid; sqrt(2 pi) (1 - 1/sqrt 3) = 1.0594 on the whole line


def random_directions(dimensions: int, count: int, generator: torch.Generator) -> Tensor:
    """Unit directions, (dimensions, count), uniform on the sphere."""
    drawn = torch.randn(dimensions, count, generator=generator, device=generator.device)
    unit: Tensor = drawn / drawn.norm(dim=0)
    return unit


def sigreg(codes: Tensor, directions: Tensor, group: Group | None = None) -> Tensor:
    """Mean Epps-Pulley statistic of the codes' projections, a scalar >= 0.

        N * integral |phi_N(t) - exp(-t^2/2)|^2 exp(-t^2/2) dt, averaged over directions

    with phi_N the empirical characteristic function; trapezoid on 17 knots in [0, 3], doubled
    by symmetry. For exact N(0, I) codes its expectation is 1.0525 at every N.
    codes: (N, dimensions). directions: (dimensions, K). Computed in float32, whatever autocast says.
    group: the processes that hold a share of the N rows each; the statistic is of them all.
    Source: Balestriero & LeCun (2025), LeJEPA, arXiv 2511.08544; Epps & Pulley (1983), doi 10.1093/biomet/70.3.723.
    """
    with torch.autocast(codes.device.type, enabled=False):
        statistic: Tensor = _EppsPulley.apply(codes.float() @ directions, group)  # type: ignore[no-untyped-call]
    return statistic


def _knots() -> tuple[list[float], list[float], list[float]]:
    """Knots t, the normal's characteristic function there, and trapezoid weight times window times 2."""
    step = LAST_KNOT / (KNOTS - 1)
    t = [step * j for j in range(KNOTS)]
    phi = [math.exp(-x * x / 2) for x in t]
    weights = [2 * step * p * (0.5 if j in (0, KNOTS - 1) else 1.0) for j, p in enumerate(phi)]
    return t, phi, weights


def _over_blocks(projections: Tensor, work: Callable[[slice, int], None]) -> int:
    """Do `work(rows, part)` on blocks of rows that stay in a core's cache; how many parts there are.

    A GPU takes all rows at once. On several CPU threads each takes one part of the rows, in blocks too small for
    torch to deal out itself: waiting for each other at each of a hundred small operations costs more than they do.
    """
    count, directions = projections.shape
    threads = 1 if projections.is_cuda else torch.get_num_threads()
    if projections.is_cuda or threads == 1 or count * directions < 4 * _BLOCK:
        size, threads = count if projections.is_cuda else max(1, _BLOCK // directions), 1
    else:
        size = max(1, (_DEALT_OUT - 1) // directions)

    def one_part(part: int) -> None:
        with torch.no_grad():
            end = (part + 1) * count // threads
            for start in range(part * count // threads, end, size):
                work(slice(start, min(start + size, end)), part)

    if threads == 1:
        one_part(0)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(one_part, range(threads)))
    return threads


class _EppsPulley(torch.autograd.Function):
    """The statistic of (N, K) projections without ever holding an (N, K, knots) array.

    cos(t_j x) and sin(t_j x) at evenly spaced knots follow from the first by the Chebyshev recurrence;
    the gradient is a Clenshaw sum of the same terms. Where a group of processes each holds a share of the N rows,
    the characteristic function is of them all, and the gradient is multiplied by their count: the mean over
    processes that follows is then the gradient of the one statistic.
    """

    @staticmethod
    def forward(ctx: Any, projections: Tensor, group: Group | None) -> Tensor:
        _, phi, weights = _knots()
        cosine, sine = torch.empty_like(projections), torch.empty_like(projections)
        by_part = projections.new_zeros(torch.get_num_threads(), 2, KNOTS, projections.shape[1])

        def add(rows: slice, part: int) -> None:
            _add_harmonics(projections[rows], cosine[rows], sine[rows], by_part[part])

        parts = _over_blocks(projections, add)
        sums = by_part[:parts].sum(0) if parts > 1 else by_part[0]
        count = len(projections)
        if group is not None and group.count > 1:
            count = int(group.sum(torch.tensor(count)))
            sums = group.sum(sums)
        real, imaginary = sums / count
        gap = real - projections.new_tensor(phi)[:, None]
        weight = projections.new_tensor(weights)[:, None]
        ctx.save_for_backward(cosine, sine, weight * gap, weight * imaginary)
        ctx.processes = 1 if group is None else group.count
        statistic: Tensor = count * (weight * (gap * gap + imaginary * imaginary)).sum(0).mean()
        return statistic

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        cosine, sine, gap, imaginary = ctx.saved_tensors
        t, _, _ = _knots()
        speed = cosine.new_tensor(t)[:, None] * (2 * ctx.processes / cosine.shape[1])
        on_sine, on_cosine = -gap * speed, imaginary * speed
        slope = torch.empty_like(cosine)
        _over_blocks(cosine, lambda rows, _: _clenshaw(cosine[rows], sine[rows], on_sine, on_cosine, slope[rows]))
        return slope.mul_(gradient), None


def _add_harmonics(projections: Tensor, cosine: Tensor, sine: Tensor, sums: Tensor) -> None:
    """Write cos and sin of the first angle, and add those of every knot, summed over rows, to `sums`."""
    angle = projections * (LAST_KNOT / (KNOTS - 1))
    torch.cos(angle, out=cosine)
    torch.sin(angle, out=sine)
    twice, negative = cosine * 2, angle
    sums[0, 0] += len(projections)
    sums[0, 1] += cosine.sum(0)
    sums[1, 1] += sine.sum(0)
    for part, first, before in ((0, cosine, torch.ones_like(cosine)), (1, sine, torch.zeros_like(sine))):
        old, now = before, first.clone()
        for j in range(2, KNOTS):
            torch.neg(old, out=negative)
            torch.addcmul(negative, twice, now, out=old)
            old, now = now, old
            sums[part, j] += now.sum(0)


def _clenshaw(cosine: Tensor, sine: Tensor, on_sine: Tensor, on_cosine: Tensor, slope: Tensor) -> None:
    """Write the derivative by each projection: sum_j on_sine_j sin(j angle) + on_cosine_j cos(j angle)."""
    twice, start = cosine * 2, torch.empty_like(cosine)
    ends = []
    for weights in (on_sine, on_cosine):
        now, old = torch.zeros_like(cosine), torch.zeros_like(cosine)
        for j in range(KNOTS - 1, 0, -1):
            torch.sub(weights[j], old, out=start)
            torch.addcmul(start, twice, now, out=old)
            now, old = old, now
        ends.append((now, old))
    (of_sine, _), (of_cosine, before) = ends
    torch.mul(sine, of_sine, out=slope).add_(cosine * of_cosine).sub_(before)
