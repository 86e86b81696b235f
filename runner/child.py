"""A command as a child process: told to stop when we are, its last words kept, its time and memory measured."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from forecast.errors import ForecastError
from runner.stopping import Stop, StopRequest

__all__ = ["GRACE_S", "Child", "CommandFailed", "Ended"]

GRACE_S = 30
"""How long a command that was told to end may take over it before it is killed."""
_LAST_LINES = 30
_POLL_S = 0.1
_MEMORY_WORDS = ("out of memory", "outofmemoryerror", "memoryerror", "cannot allocate memory", "std::bad_alloc")
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class CommandFailed(ForecastError):
    """A command that ended badly; tail: the end of its standard error."""

    def __init__(self, reason: str, tail: str) -> None:
        self.tail = tail
        super().__init__(reason)


@dataclass(frozen=True)
class Ended:
    """How a command ended. code: its exit code, or minus the signal that ended it; limit_s: the limit it passed."""

    word: str
    code: int
    tail: str
    cpu_s: float
    peak_memory_bytes: int
    limit_s: float | None = None

    def raise_if_bad(self) -> None:
        """Raise CommandFailed unless the command ended by itself with exit code 0."""
        if self.limit_s is not None:
            raise CommandFailed(
                f"time limit: {self.word} ran longer than time_limit_min = {self.limit_s / 60:g}", self.tail
            )
        if self.code == 0:
            return
        lines = [line.strip() for line in self.tail.splitlines() if line.strip()]
        last = f"; standard error ends: {lines[-1][:300]}" if lines else "; it wrote nothing to standard error"
        if self.code < 0:
            reason = f"{self.word} was ended by {_signal_name(-self.code)}"
        else:
            reason = f"{self.word} ended with exit code {self.code}"
        if self.code == -signal.SIGKILL or any(word in self.tail.lower() for word in _MEMORY_WORDS):
            reason = f"out of memory{' or killed' if self.code == -signal.SIGKILL else ''}: {reason}"
        raise CommandFailed(reason + last, self.tail)


class Child:
    """A command in a process group of its own, its standard error passed on and its end remembered."""

    def __init__(self, words: list[str], folder: Path, environment: dict[str, str]) -> None:
        self._word, self._tail = words[0], deque[str](maxlen=_LAST_LINES)
        if not folder.is_dir():
            raise ForecastError(f"the command's folder {folder} is gone; launch again from where the study now lies")
        found = shutil.which(words[0], path=environment.get("PATH")) or (folder / words[0]).exists()
        if not found:
            raise ForecastError(
                f"command {words[0]!r} is not found on PATH nor in {folder}; give its whole path in the study, "
                "or load it in the preset's setup lines"
            )
        sys.stdout.flush()
        try:
            self._process = subprocess.Popen(
                words,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - it calls one function of the C library
            )
        except OSError as error:
            raise ForecastError(f"command {words[0]!r} cannot be started in {folder}: {error.strerror}") from error
        self._started = time.monotonic()
        self._reader = threading.Thread(target=self._read, args=(self._process.stderr,), daemon=True)
        self._reader.start()

    def wait(self, request: StopRequest, limit_s: float | None, look: Callable[[], None]) -> Ended:
        """Wait for the end. Told to stop, the command gets SIGTERM, then SIGKILL, and Stop is raised."""
        passed = False
        while (ended := self._poll()) is None:
            if request.cause is not None:
                self._end()
                request.raise_if_told()
            if limit_s is not None and time.monotonic() - self._started > limit_s:
                ended, passed = self._end(), True
                break
            try:
                look()
            except Stop:
                self._end()
                raise
            time.sleep(_POLL_S)
        status, usage = ended
        self._reader.join(timeout=5)  # a grandchild may hold the pipe open
        return Ended(
            self._word,
            os.waitstatus_to_exitcode(status),
            "".join(self._tail),
            usage.ru_utime + usage.ru_stime,
            usage.ru_maxrss * 1024,
            limit_s if passed else None,
        )

    def _poll(self) -> tuple[int, Any] | None:
        pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
        if pid == 0:
            return None
        self._process.returncode = os.waitstatus_to_exitcode(status)
        return status, usage

    def _end(self) -> tuple[int, Any]:
        """SIGTERM to the whole group, SIGKILL to what is left after the grace; what became of the command."""
        self._signal(signal.SIGTERM)
        end, killed = time.monotonic() + GRACE_S, False
        while (ended := self._poll()) is None:
            if time.monotonic() > end and not killed:
                self._signal(signal.SIGKILL)
                killed = True
            time.sleep(_POLL_S)
        self._signal(signal.SIGKILL)  # what it started and left behind
        return ended

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe:
            for line in pipe:
                text = line.decode("utf-8", errors="replace")
                self._tail.append(text[-2000:])
                sys.stderr.write(text)
                sys.stderr.flush()


def _die_with_parent() -> None:
    """Linux: a command whose job is killed dies too, so that the next launch does not run it twice at a time."""
    if _LIBC is not None:
        _LIBC.prctl(1, signal.SIGKILL)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
