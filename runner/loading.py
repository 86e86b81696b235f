"""Batches for training: drawn in order, one share a process, on the device; a few ahead where a GPU would wait."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from runner.group import Group

__all__ = ["Loader", "Source"]

Array = np.ndarray[Any, Any]
Batch = tuple[Tensor, ...]


class Source(Protocol):
    """What a loader draws from."""

    def draw(self, size: int) -> tuple[Array, ...]:
        """The next `size` samples of the whole batch: arrays (views, size, ...)."""

    def collate(self, arrays: tuple[Array, ...]) -> Batch:
        """The model's inputs for a share of them, views stacked: tensors (views * share, ...)."""

    def state(self) -> dict[str, Any]:
        """Where the source stands, as `runner.saved_state.pack` takes it."""

    def restore(self, state: dict[str, Any]) -> None:
        """Put the source where it stood."""


class Loader:
    """The batches of `sizes`, in order.

    Every process draws the whole batch and takes its share, so that any number of processes sees the same samples.
    ahead: batches drawn by a thread beforehand, 0 for none; they are part of the state.
    """

    def __init__(self, source: Source, sizes: Sequence[int], group: Group, *, ahead: int = 0) -> None:
        self._source, self._sizes, self._group, self._ahead = source, list(sizes), group, ahead
        self._drawn = 0
        self._ready: deque[Batch] = deque()
        self._changed, self._drawing = threading.Condition(), threading.Lock()
        self._failure: BaseException | None = None
        self._closed = False
        self._thread: threading.Thread | None = None

    def next(self) -> Batch:
        """The next batch, on the device."""
        if self._ahead and self._thread is None:
            self._thread = threading.Thread(target=self._fill, daemon=True)
            self._thread.start()
        if self._thread is None:
            if not self._ready:
                self._draw()
            batch = self._ready.popleft()
        else:
            with self._changed:
                self._changed.wait_for(lambda: self._ready or self._failure)
                if not self._ready and self._failure is not None:
                    raise self._failure
                batch = self._ready.popleft()
                self._changed.notify_all()
        return tuple(part.to(self._group.device, non_blocking=True) for part in batch)

    def state(self) -> dict[str, Any]:
        """Where the source stands and what is drawn but not yet used."""
        with self._drawing:
            ready = [list(batch) for batch in self._ready]
            return {"source": self._source.state(), "drawn": self._drawn, "ready": ready}

    def restore(self, state: dict[str, Any]) -> None:
        """Put a loader that has not begun where another stood."""
        self._source.restore(state["source"])
        self._drawn = state["drawn"]
        self._ready = deque(tuple(batch) for batch in state["ready"])

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _draw(self) -> None:
        size = self._sizes[self._drawn]
        share = self._group.share(size)
        batch = self._source.collate(tuple(part[:, share] for part in self._source.draw(size)))
        if self._group.device.type == "cuda":
            batch = tuple(part.pin_memory() for part in batch)
        self._ready.append(batch)
        self._drawn += 1

    def _fill(self) -> None:
        try:
            while self._drawn < len(self._sizes):
                with self._changed:
                    self._changed.wait_for(lambda: self._closed or len(self._ready) < self._ahead)
                    if self._closed:
                        return
                with self._drawing:
                    self._draw()
                with self._changed:
                    self._changed.notify_all()
        except BaseException as error:
            with self._changed:
                self._failure = error
                self._changed.notify_all()
