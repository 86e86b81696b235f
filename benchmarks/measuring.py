"""How a benchmark is timed, and what is written of it."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["Measure", "command", "interleaved", "record", "timed"]

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Measure:
    """Processor seconds of our work and of the peer's, medians over `repeats`; what else was found."""

    ours_s: float
    peer_s: float | None = None
    peer: str | None = None
    repeats: int = 1
    found: dict[str, Any] = field(default_factory=dict)


def timed(work: Callable[[], object]) -> float:
    """Processor seconds of one call in this process."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def interleaved(repeats: int, *works: Callable[[], object]) -> list[float]:
    """Median processor seconds of each work, run in turns, so that a change of the machine's load meets all alike."""
    seconds = [[timed(work) for work in works] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*seconds, strict=True)]


def command(words: Sequence[str]) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and peak megabytes of a command; an error where it fails."""
    begun = time.perf_counter()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, cwd=ROOT)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, list(words))
    return time.perf_counter() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def record(name: str, measure: Measure, out: Path) -> dict[str, Any]:
    """Replace one benchmark's entry in the results, and no other's; the entry."""
    entry = {
        "ours_s": _short(measure.ours_s),
        "peer_s": None if measure.peer_s is None else _short(measure.peer_s),
        "ratio": None if measure.peer_s is None else _short(measure.peer_s / measure.ours_s),
        "peer": measure.peer,
        "repeats": measure.repeats,
        "clock": "processor seconds, one thread",
        **measure.found,
        "command": f"make bench ONLY={name}",
        "machine": _machine(),
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _commit(),
    }
    known = json.loads(out.read_text()) if out.is_file() else {}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({**known, name: entry}, indent=1, sort_keys=True) + "\n")
    return entry


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _machine() -> str:
    model = platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    load = os.getloadavg()[0]
    return f"{model}, {os.cpu_count()} cores, load {load:.1f}, Python {sys.version.split()[0]}"


def _commit() -> str:
    """The commit that was measured, with "+" where the fitter's files differ from it."""
    return _git("rev-parse", "--short", "HEAD") + ("+" if _git("status", "--porcelain", "forecast") else "")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
