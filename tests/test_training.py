import numpy as np
import pytest
import torch

from forecast.errors import ForecastError
from runner.training import Recipe, learning_rate, train


def recipe(**changes) -> Recipe:
    settings = {
        "n_samples": 1000,
        "batch_size": 64,
        "learning_rate": 1e-2,
        "weight_decay": 0.0,
        "warmup": 0.1,
        "sigreg_weight": 0.05,
        "sigreg_directions": 32,
    }
    return Recipe(**(settings | changes))


def trained(seed: int = 0, **changes):
    """A linear map of pairs that share their first two of six coordinates."""
    rng = np.random.default_rng(seed)

    def draw(size: int) -> tuple[torch.Tensor]:
        shared = np.tile(rng.standard_normal((size, 2)), (2, 1))
        own = rng.standard_normal((2 * size, 4))
        return (torch.from_numpy(np.hstack([shared, own]).astype(np.float32)),)

    encoder = torch.nn.Linear(6, 2, bias=False)
    with torch.no_grad():
        encoder.weight.copy_(torch.from_numpy(rng.standard_normal((2, 6))))
    seen: list[tuple[int, int]] = []
    generator = torch.Generator().manual_seed(seed)
    result = train(encoder, draw, recipe(**changes), generator=generator, progress=lambda *pair: seen.append(pair))
    return encoder, result, seen


def test_batches_add_up_to_the_samples_and_none_is_tiny():
    sizes = recipe(n_samples=1000, batch_size=300).batches

    assert sum(sizes) == 1000
    assert min(sizes) > 300 / 2
    assert [5] == recipe(n_samples=5, batch_size=64).batches


def test_the_learning_rate_warms_up_and_ends_near_zero():
    rates = [learning_rate(step, 100, recipe()) for step in range(100)]

    assert pytest.approx(1e-3) == rates[0]
    assert pytest.approx(1e-2) == max(rates)
    assert rates[-1] < 1e-4


def test_training_finds_what_the_views_share_and_drops_the_rest():
    encoder, result, seen = trained(n_samples=20_000, learning_rate=3e-2)
    weight = encoder.weight.detach()

    assert float(weight[:, 2:].norm()) < 0.1 * float(weight[:, :2].norm())
    assert result.losses[-1, 0] < result.losses[0, 0]
    assert seen[-1] == (20_000, 20_000)


def test_one_seed_repeats_bit_for_bit():
    same, again, other = (trained(seed)[1].losses for seed in (1, 1, 2))

    np.testing.assert_array_equal(same, again)
    assert not np.array_equal(same, other)


def test_divergence_is_refused_by_name():
    with pytest.raises(ForecastError, match=r"diverged by step \d+"):
        trained(learning_rate=float("inf"), n_samples=6400)
