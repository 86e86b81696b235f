"""Put a new file into a log's folder: whole, durable, and never over another one."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forecast.errors import ForecastError

__all__ = ["LOCK", "TEMPORARY", "lock", "publish"]

LOCK = ".lock"
TEMPORARY = ".tmp"


def publish(path: Path, data: bytes) -> None:
    """Write `data` to the new file `path`; ForecastError if it exists.

    Where the file system can, the file has no name before it is complete (O_TMPFILE), so that a killed
    writer leaves nothing; elsewhere it has the temporary name `.NAME.tmp` first.
    """
    try:
        _publish_unnamed(path, data)
    except FileExistsError as error:
        raise ForecastError(f"{path} exists already; an entry is never written twice") from error
    except OSError as error:
        raise ForecastError(f"{path} cannot be written: {error.strerror}") from error
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def lock(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold `folder` for one writer; the kernel lets go when the process ends, however it ends."""
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise ForecastError(f"cannot write in the log {folder}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise ForecastError(f"another process is writing in the log {folder}; try again when it is done") from error
        yield
    finally:
        os.close(handle)


def _publish_unnamed(path: Path, data: bytes) -> None:
    try:
        handle = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY, 0o644)
    except (OSError, AttributeError):
        return _publish_named(path, data)
    try:
        _write_all(handle, data)
        # A folder handle makes Python call linkat with AT_SYMLINK_FOLLOW, which /proc/self/fd needs.
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.link(f"/proc/self/fd/{handle}", path.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=True)
        except FileExistsError:
            raise
        except OSError:
            return _publish_named(path, data)
        finally:
            os.close(folder)
    finally:
        os.close(handle)
    return None


def _publish_named(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}{TEMPORARY}")
    temporary.unlink(missing_ok=True)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        _write_all(handle, data)
    finally:
        os.close(handle)
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links; the log's lock keeps other writers out
        if path.exists():
            raise
        temporary.rename(path)
    finally:
        temporary.unlink(missing_ok=True)


def _write_all(handle: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]
    os.fsync(handle)
