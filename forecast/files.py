"""Bytes on disk: written whole or not at all, hashed as they lie there."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import rfc8785

from forecast.errors import ForecastError

__all__ = ["canonical_json", "read_regular", "sha256_hex", "write_atomically"]


def sha256_hex(data: bytes) -> str:
    """Lower-case hex sha256 of `data`."""
    return hashlib.sha256(data).hexdigest()


def canonical_json(value: Mapping[str, Any] | list[Any]) -> bytes:
    """The RFC 8785 bytes of `value`: equal values, equal bytes (1 and 1.0 are one number).

    Raises ForecastError for NaN, infinities and integers beyond 2^53.
    """
    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError as error:
        raise ForecastError(f"value has no canonical JSON form: {error}; write such integers as text") from error


def read_regular(path: Path, *, most: int = 64 * 2**20) -> bytes:
    """The bytes of the regular file `path`, at most `most` of them.

    Raises OSError for a pipe or a device, which could keep a reader for ever, and for a longer file.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "is no regular file", str(path))
    if found.st_size > most:
        raise OSError(errno.EFBIG, f"has {found.st_size} bytes, more than {most}", str(path))
    return path.read_bytes()


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to `path` by way of a temporary name in the same folder, fsync and rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
