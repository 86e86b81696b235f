"""Being told to stop: one owner of signals, a safe point, and the requeue."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass, field
from types import FrameType
from typing import Literal

__all__ = ["Stop", "StopRequest", "requeue", "worker_init"]

Cause = Literal["time limit", "preempted", "terminated"]
_MARGIN_S = 60
"""SLURM may send its signal up to 60 s earlier than asked for."""


class Stop(BaseException):
    """The run stops here, to be continued or repeated. No Exception: a user's `except Exception` lets it pass."""

    def __init__(self, cause: Cause) -> None:
        self.cause: Cause = cause
        super().__init__(cause)


@dataclass
class StopRequest:
    """Notes the signals SIGUSR2 (time limit or preemption) and SIGTERM (cancel); never raises inside a handler.

    limit_s: the job's time limit in seconds, None if it has none; delay_s: how long before it SIGUSR2 comes.
    """

    limit_s: float | None = None
    delay_s: float = 90
    cause: Cause | None = None
    _owner: int = field(default_factory=os.getpid)
    _started: float = field(default_factory=time.monotonic)

    def listen(self) -> StopRequest:
        """Take over both signals in this process; its forked children pass them over."""
        signal.signal(signal.SIGUSR2, self._told)
        signal.signal(signal.SIGTERM, self._told)
        return self

    def raise_if_told(self) -> None:
        """A safe point: raise Stop if a signal has come."""
        if self.cause is not None and os.getpid() == self._owner:
            raise Stop(self.cause)

    def _told(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._owner:
            return
        if number == signal.SIGUSR2:
            self.cause = "time limit" if self._at_limit() else "preempted"
        elif self.cause is None:
            self.cause = "terminated"

    def _at_limit(self) -> bool:
        if self.limit_s is None:
            return False
        return time.monotonic() - self._started >= self.limit_s - self.delay_s - _MARGIN_S - 15


def worker_init(_: int = 0) -> None:
    """For forked data loaders (`worker_init_fn`): signals are the main process's affair."""
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCONT, signal.SIG_DFL)


def requeue() -> str | None:
    """Ask SLURM to run this job again; None if it will, else what is in the way."""
    number = os.environ.get("SLURM_JOB_ID")
    if number is None:
        return "not in a SLURM job"
    try:
        done = subprocess.run(["scontrol", "requeue", number], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"scontrol requeue {number}: {error}"
    if done.returncode == 0 or re.search(r"pending execution|already requeued", done.stderr, re.IGNORECASE):
        return None
    return f"scontrol requeue {number}: {done.stderr.strip()}"
