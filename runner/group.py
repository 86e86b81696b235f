"""The processes that train one model together, and the device of each."""

from __future__ import annotations

import atexit
import os
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = ["Group"]


@dataclass(frozen=True)
class Group:
    """This process's rank among `count`, and the device it trains on.

    control: the processes' channel for messages that must not wait for a GPU.
    """

    rank: int = 0
    count: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    control: Any = None

    @classmethod
    def here(cls) -> Group:
        """From SLURM's environment: one process a task, joined once a process. CUDA where it is visible.

        The meeting place is MASTER_ADDR and MASTER_PORT, else what submitit reads from SLURM.
        """
        rank, count = int(os.environ.get("SLURM_PROCID", "0")), int(os.environ.get("SLURM_NTASKS", "1"))
        device = torch.device("cpu")
        if torch.cuda.is_available():
            device = torch.device("cuda", int(os.environ.get("SLURM_LOCALID", "0")) % torch.cuda.device_count())
            torch.cuda.set_device(device)
        if count == 1:
            return cls(device=device)
        if not dist.is_initialized():
            _meet(rank, count, device)
        return cls(rank, count, device, dist.new_group(backend="gloo") if device.type == "cuda" else dist.group.WORLD)

    def share(self, size: int) -> slice:
        """Which of `size` items are this process's."""
        return slice(self.rank * size // self.count, (self.rank + 1) * size // self.count)

    def sum(self, values: Tensor) -> Tensor:
        """`values` summed over the processes, in place."""
        if self.count > 1:
            dist.all_reduce(values)
        return values

    def agreed(self, flag: bool) -> bool:
        """What the first process says."""
        if self.count == 1:
            return flag
        said = torch.tensor([int(flag)])
        dist.broadcast(said, 0, group=self.control)
        return bool(said.item())

    def from_first(self, content: bytes | None) -> bytes | None:
        """The first process's bytes, in every process."""
        if self.count == 1:
            return content
        held = [content]
        dist.broadcast_object_list(held, 0, group=self.control)
        return held[0]


def _meet(rank: int, count: int, device: torch.device) -> None:
    if "MASTER_ADDR" not in os.environ:
        import submitit

        submitit.helpers.TorchDistributedEnvironment().export(set_cuda_visible_devices=False)
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, rank=rank, world_size=count)
    atexit.register(dist.destroy_process_group)
