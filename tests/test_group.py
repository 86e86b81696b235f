"""Two processes that share each batch train what one process trains."""

import os
import socket
import subprocess
import sys

import pytest
import torch

from runner.group import Group

WORKER = """
import sys
import numpy as np
import torch
from runner.group import Group
from runner.objectives import Jepa
from runner.saved_state import restore_rng, rng_state
from runner.training import Recipe, train

class Pairs:
    def __init__(self):
        self.rng = np.random.default_rng(3)
    def draw(self, size):
        shared = np.tile(self.rng.standard_normal((size, 3)), (2, 1, 1))
        return (np.concatenate([shared, self.rng.standard_normal((2, size, 5))], axis=2).astype(np.float32),)
    def collate(self, arrays):
        return (torch.from_numpy(arrays[0].reshape(-1, 8)),)
    def state(self):
        return {"rng": rng_state(self.rng)}
    def restore(self, state):
        restore_rng(self.rng, state["rng"])

group = Group.here()
model = torch.nn.Linear(8, 4, bias=False)
with torch.no_grad():
    model.weight.copy_(torch.from_numpy(np.random.default_rng(1).standard_normal((4, 8))))
objective = Jepa(weight=0.3, directions=16, generator=torch.Generator().manual_seed(2), group=group)
recipe = Recipe(n_samples=int(sys.argv[2]), batch_size=33, learning_rate=1e-2, weight_decay=0.0, warmup=0.1)
result = train(model, Pairs(), objective, recipe, progress=lambda *_: None, group=group)
torch.save((model.weight.detach(), torch.from_numpy(result.losses), model.weight.grad), f"{sys.argv[1]}.{group.rank}")
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def run(folder, name, count, samples=330):
    """What each of `count` processes ends with: weights, losses of the whole batches, the last gradient."""
    (folder / "worker.py").write_text(WORKER)
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "SLURM_NTASKS": str(count)}
    workers = [
        subprocess.Popen(
            [sys.executable, str(folder / "worker.py"), str(folder / name), str(samples)],
            env=os.environ | shared | {"SLURM_PROCID": str(rank), "OMP_NUM_THREADS": "1"},
        )
        for rank in range(count)
    ]
    assert [0] * count == [worker.wait(120) for worker in workers]
    return [torch.load(folder / f"{name}.{rank}") for rank in range(count)]


@pytest.mark.slow
def test_two_processes_train_what_one_trains_also_with_odd_batches(tmp_path):
    ((weights, losses, gradient),) = run(tmp_path, "one", 1)
    first, second = run(tmp_path, "two", 2)

    for mine in (first, second):
        torch.testing.assert_close(weights, mine[0], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(losses, mine[1], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(gradient, mine[2], rtol=1e-3, atol=1e-5)
    assert torch.equal(first[0], second[0])


@pytest.mark.slow
def test_one_step_of_two_processes_has_the_gradient_of_the_joined_batch(tmp_path):
    ((_, losses, gradient),) = run(tmp_path, "one", 1, samples=33)
    first, second = run(tmp_path, "two", 2, samples=33)

    assert 1 == len(losses)
    torch.testing.assert_close(gradient, first[2], rtol=1e-4, atol=1e-6)
    assert torch.equal(first[2], second[2])


def test_every_item_of_a_batch_is_some_processes_and_no_two():
    for size in (1, 7, 64):
        parts = [list(range(size))[Group(rank, 3).share(size)] for rank in range(3)]
        assert list(range(size)) == [item for part in parts for item in part]


def test_one_process_waits_for_nobody():
    group = Group()

    assert (True, False, b"x") == (group.agreed(True), group.agreed(False), group.from_first(b"x"))
    assert 3 == float(group.sum(torch.tensor(3.0)))
