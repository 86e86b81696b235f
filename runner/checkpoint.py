"""A run's saved state: own files, whole or not at all, never a pickle inside a signal handler."""

from __future__ import annotations

import time
from pathlib import Path

from forecast.files import sha256_hex, write_atomically
from runner.stopping import StopRequest

__all__ = ["Checkpoint"]


class Checkpoint:
    """What an entry point gets if it takes the keyword `checkpoint`.

    At the start `load()`; at each step `if checkpoint.due: checkpoint.save(state)`, which does not
    return when the job was told to stop. every_s: seconds between saves.
    """

    def __init__(self, path: Path, request: StopRequest, *, spec_hash: str, every_s: float = 300) -> None:
        self._path, self._request, self._every_s = path, request, every_s
        self._head = f"platocast-checkpoint-1 {spec_hash} ".encode()
        self._last = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether now is the time to save: told to stop, or `every_s` seconds after the last save."""
        return self._request.cause is not None or time.monotonic() - self._last >= self._every_s

    def load(self) -> bytes | None:
        """The last saved state of this very job spec, None if there is none or it is damaged."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return None
        head, _, rest = content.partition(b"\n")
        expected = self._head + sha256_hex(rest).encode()
        return rest if head == expected else None

    def save(self, state: bytes) -> None:
        """Save `state`; raises Stop afterwards if the job was told to stop."""
        write_atomically(self._path, self._head + sha256_hex(state).encode() + b"\n" + state)
        self._last = time.monotonic()
        self._request.raise_if_told()

    def forget(self) -> None:
        """Remove the saved state, when the run has its outcome."""
        self._path.unlink(missing_ok=True)
