import math

import pytest
import torch

from runner.sigreg import EXPECTED_FOR_GAUSSIAN, KNOTS, LAST_KNOT, random_directions, sigreg


def as_written(codes: torch.Tensor, directions: torch.Tensor) -> torch.Tensor:
    """The formula with every term materialised, in the precision of its input."""
    projections = codes @ directions
    t = torch.linspace(0, LAST_KNOT, KNOTS, dtype=codes.dtype)
    normal = torch.exp(-t * t / 2)
    angles = projections[..., None] * t
    error = (angles.cos().mean(0) - normal) ** 2 + angles.sin().mean(0) ** 2
    return 2 * len(codes) * torch.trapezoid(error * normal, t, dim=-1).mean()


def test_value_and_gradient_equal_the_formula_as_written():
    generator = torch.Generator().manual_seed(0)
    codes = torch.randn(150, 12, generator=generator) * 1.4 + 0.3
    directions = random_directions(12, 40, generator)
    fast, exact = codes.clone().requires_grad_(), codes.double().requires_grad_()
    loss, expected = sigreg(fast, directions), as_written(exact, directions.double())
    loss.backward()
    expected.backward()

    assert expected.item() == pytest.approx(loss.item(), rel=1e-5)
    assert float((fast.grad - exact.grad).abs().max() / exact.grad.abs().max()) < 1e-4


@pytest.mark.parametrize("count", [8, 64, 512])
def test_exact_normal_codes_score_the_stated_expectation_at_every_batch_size(count):
    generator = torch.Generator().manual_seed(1)
    draws = [
        sigreg(torch.randn(count, 32, generator=generator), random_directions(32, 64, generator)).item()
        for _ in range(400)
    ]
    mean = sum(draws) / len(draws)
    error = math.sqrt(sum((d - mean) ** 2 for d in draws)) / len(draws)

    assert pytest.approx(mean, abs=4 * error) == EXPECTED_FOR_GAUSSIAN
    assert error < 0.02


def test_the_expectation_follows_from_the_closed_form():
    t = torch.linspace(0, LAST_KNOT, KNOTS, dtype=torch.float64)
    trapezoid = 2 * torch.trapezoid((1 - torch.exp(-t * t)) * torch.exp(-t * t / 2), t)

    assert trapezoid.item() == pytest.approx(EXPECTED_FOR_GAUSSIAN, abs=5e-5)
    assert math.sqrt(2 * math.pi) * (1 - 1 / math.sqrt(3)) == pytest.approx(1.0594, abs=5e-5)


def test_codes_that_are_not_normal_score_far_higher():
    generator = torch.Generator().manual_seed(2)
    collapsed = torch.zeros(256, 16)
    directions = random_directions(16, 64, generator)

    assert sigreg(collapsed, directions).item() > 50 * EXPECTED_FOR_GAUSSIAN


def test_directions_are_unit_and_differ_between_draws():
    generator = torch.Generator().manual_seed(3)
    first, second = random_directions(16, 8, generator), random_directions(16, 8, generator)

    torch.testing.assert_close(torch.ones(8), first.norm(dim=0))
    assert not torch.equal(first, second)
