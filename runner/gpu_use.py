"""How busy the allocated GPUs were, as nvidia-smi samples it; nothing where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

__all__ = ["GpuUse", "watch_gpus"]

_EVERY_S = 10.0
_QUERY = ("--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits")


@dataclass
class GpuUse:
    """Samples of all watched GPUs together. busy: GPUs' worth of work in each sample."""

    busy: list[float] = field(default_factory=list)
    peak_memory_bytes: int | None = None

    def used_s(self, wall_s: float) -> float | None:
        """GPU-seconds in which kernels ran: the mean of the samples times `wall_s`; None without a sample."""
        return round(sum(self.busy) / len(self.busy) * wall_s, 3) if self.busy else None

    def take(self, text: str) -> None:
        """Take up what nvidia-smi printed: one line a GPU, utilisation in percent and MiB in use."""
        try:
            rows = [[float(cell) for cell in line.split(",")] for line in text.splitlines() if line.strip()]
            busy, memory = sum(row[0] for row in rows) / 100, int(sum(row[1] for row in rows)) << 20
        except (ValueError, IndexError):  # "[N/A]": this GPU does not say
            return
        if rows:
            self.busy.append(busy)
            self.peak_memory_bytes = max(memory, self.peak_memory_bytes or 0)


@contextmanager
def watch_gpus(count: int, every_s: float = _EVERY_S) -> Iterator[GpuUse]:
    """Sample the `count` GPUs of this job (those of CUDA_VISIBLE_DEVICES) until the end."""
    use, program = GpuUse(), shutil.which("nvidia-smi")
    if not count or program is None:
        yield use
        return
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    command = [program, *(["-i", named] if named else []), *_QUERY]
    over = threading.Event()

    def sample() -> None:
        while True:
            try:
                use.take(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)
            except (OSError, subprocess.SubprocessError):
                return
            if over.wait(every_s):
                return

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield use
    finally:
        over.set()
        thread.join(timeout=5)
