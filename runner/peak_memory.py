"""The most memory that this process used, since the last reset."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

__all__ = ["peak_memory_bytes", "reset_peak_memory"]


def reset_peak_memory() -> None:
    """Start counting anew, where the system can (Linux); elsewhere the peak is the process's."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak_memory_bytes() -> int:
    """Peak resident memory in bytes."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
