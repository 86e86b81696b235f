import numpy as np
import pytest
import torch

from forecast.errors import ForecastError
from runner.group import Group
from runner.health import effective_rank
from runner.objectives import Jepa
from runner.saved_state import pack, restore_rng, rng_state, unpack
from runner.training import Recipe, learning_rate, train


def recipe(**changes) -> Recipe:
    settings = {
        "n_samples": 1000,
        "batch_size": 64,
        "learning_rate": 1e-2,
        "weight_decay": 0.0,
        "warmup": 0.1,
    }
    return Recipe(**(settings | changes))


class Shared:
    """Pairs that share their first two of six coordinates."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def draw(self, size: int) -> tuple[np.ndarray, ...]:
        shared = np.tile(self.rng.standard_normal((size, 2)), (2, 1, 1))
        return (np.concatenate([shared, self.rng.standard_normal((2, size, 4))], axis=2).astype(np.float32),)

    def collate(self, arrays: tuple[np.ndarray, ...]) -> tuple[torch.Tensor, ...]:
        return (torch.from_numpy(arrays[0].reshape(-1, 6)),)

    def state(self) -> dict[str, str]:
        return {"rng": rng_state(self.rng)}

    def restore(self, state: dict[str, str]) -> None:
        restore_rng(self.rng, state["rng"])


def trained(seed: int = 0, *, weight: float = 0.05, scale: float = 1.0, keeper=None, **changes):
    """A linear map of such pairs: its weights, the result, the progress and what was said."""
    rng = np.random.default_rng(seed)
    encoder = torch.nn.Linear(6, 2, bias=False)
    with torch.no_grad():
        encoder.weight.copy_(torch.from_numpy(scale * rng.standard_normal((2, 6))))
    seen: list[tuple[int, int]] = []
    said: list[str] = []
    slices = torch.Generator().manual_seed(seed)
    result = train(
        encoder,
        Shared(rng),
        Jepa(weight=weight, directions=32, generator=slices, group=Group()),
        recipe(**changes),
        progress=lambda *pair: seen.append(pair),
        keeper=keeper,
        say=said.append,
    )
    return encoder, result, seen, said


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
    encoder, result, seen, _ = trained(n_samples=20_000, learning_rate=3e-2)
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


class Stopped(Exception):
    """What the keeper of these tests raises in place of Stop."""


class Memory:
    """Keeps a state in memory; told to stop after step `stops_at`, as a job is by a signal."""

    def __init__(self, stops_at: int | None) -> None:
        self.asked, self.stops_at, self.kept = 0, stops_at, None

    @property
    def due(self) -> bool:
        self.asked += 1
        return self.asked == self.stops_at

    def load(self) -> bytes | None:
        return self.kept

    def save(self, state: bytes) -> None:
        self.kept, self.asked, self.stops_at = state, 0, None
        raise Stopped


@pytest.mark.parametrize("ahead", [0, 3])
@pytest.mark.parametrize("stops_at", [1, 7, 14])
def test_a_stopped_training_goes_on_bit_for_bit(stops_at, ahead):
    memory = Memory(stops_at)
    with pytest.raises(Stopped):
        trained(keeper=memory, ahead=ahead)
    encoder, resumed, seen, _ = trained(keeper=memory, ahead=ahead)
    undisturbed_encoder, undisturbed, _, _ = trained()

    np.testing.assert_array_equal(undisturbed.losses, resumed.losses)
    assert torch.equal(undisturbed_encoder.weight, encoder.weight)
    assert undisturbed.health == resumed.health
    assert seen[-1] == (1000, 1000)


def test_a_state_without_the_loaders_position_would_not_go_on_bit_for_bit():
    memory = Memory(7)
    with pytest.raises(Stopped):
        trained(keeper=memory)
    state = unpack(memory.kept)
    state["loader"]["source"]["rng"] = rng_state(np.random.default_rng(5))
    memory.kept = pack(state)

    assert not np.array_equal(trained()[1].losses, trained(keeper=memory)[1].losses)


def test_a_state_of_another_version_is_refused_and_never_run():
    with pytest.raises(ForecastError, match="another version"):
        unpack(pack({"format": 0}))


def test_an_error_of_the_thread_that_draws_ahead_is_raised():
    class Broken(Shared):
        def draw(self, size: int) -> tuple[np.ndarray, ...]:
            raise ForecastError("no such shard")

    objective = Jepa(weight=0.1, directions=4, generator=torch.Generator(), group=Group())
    with pytest.raises(ForecastError, match="no such shard"):
        train(
            torch.nn.Linear(6, 2),
            Broken(np.random.default_rng(0)),
            objective,
            recipe(ahead=2),
            progress=lambda done, planned: None,
        )


def test_effective_rank_counts_the_directions_that_a_code_uses():
    basis = torch.eye(8)
    flat = torch.cat([basis, -basis])
    one = torch.linspace(-1, 1, 16)[:, None] * torch.ones(8)

    assert pytest.approx(8) == effective_rank(flat)
    assert pytest.approx(1) == effective_rank(one)
    assert pytest.approx(8) == effective_rank(5 * flat + 3)
    assert 0 == effective_rank(torch.ones(16, 8))


def test_a_collapse_is_said_early_and_a_living_code_is_not_called_one():
    _, alive, _, said = trained(n_samples=6400)
    _, dead, _, warned = trained(n_samples=6400, scale=0.0)

    assert 10 <= len(said) <= 12
    assert not any("the codes collapse" in line for line in said)
    assert not any(health.collapsing for health in alive.health)
    assert all("the codes collapse; raise sigreg.weight" in line for line in warned)
    assert dead.health[0].effective_rank == 0


def test_bfloat16_keeps_weights_and_loss_in_float32_and_changes_little():
    encoder, half, _, _ = trained(precision="bfloat16", n_samples=6400)
    _, full, _, _ = trained(n_samples=6400)

    assert encoder.weight.dtype == torch.float32
    assert not np.array_equal(half.losses, full.losses)
    np.testing.assert_allclose(full.losses[-20:, 0].mean(), half.losses[-20:, 0].mean(), rtol=0.05)
