"""Locks that die with their owner: one job a run, at most so many local jobs at a time."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["claimed", "exclusive", "slot"]


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Whether this process now holds the lock file `path`; freed at the end, or by the process's death."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        yield _try_lock(handle)
    finally:
        os.close(handle)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file `path`; waits for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def slot(folder: Path, count: int) -> Iterator[int]:
    """The number (0 .. count-1) of a free place in `folder`; waits until one of `count` is free."""
    folder.mkdir(parents=True, exist_ok=True)
    handles = [os.open(folder / f"{k}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644) for k in range(count)]
    try:
        while (free := next((k for k, handle in enumerate(handles) if _try_lock(handle)), None)) is None:
            time.sleep(0.2)
        yield free
    finally:
        for handle in handles:
            os.close(handle)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
