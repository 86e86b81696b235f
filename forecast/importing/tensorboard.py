"""TensorBoard: the last scalar of one tag per run folder, read without TensorFlow.

An event file is a row of records (length u64, checksum u32, bytes, checksum u32; little-endian), each a protocol
buffer `Event`: 2 step, 5 summary { 1 value { 1 tag, 2 simple_value, 8 tensor { 1 dtype, 4 content, 5 float_val } } }.
Source: tensorflow/core/util/event.proto, framework/summary.proto, lib/io/record_writer.cc.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

from forecast.errors import ForecastError
from forecast.importing.objects import Found, flatten, table_of
from forecast.importing.table import Table
from forecast.importing.yaml_files import read_yaml

__all__ = ["read_tensorboard", "scalars"]

_IN_PATH = re.compile(r"(?:^|[/,_ ])([A-Za-z][A-Za-z0-9.]*(?:_[A-Za-z][A-Za-z0-9.]*)*)=([^/,_ ]+)")
Field = tuple[int, int | bytes]


def read_tensorboard(root: Path, tag: str | None) -> Table:
    """One run per folder with event files below `root`: the value of `tag` at its last step.

    Settings come from hparams.yaml in the folder, and from parts of its path such as `g=0.5`.
    """
    folders: dict[Path, list[Path]] = {}
    for path in sorted(root.rglob("events.out.tfevents.*")):
        folders.setdefault(path.parent, []).append(path)
    last = {folder: _last_values(paths) for folder, paths in folders.items()}
    tags = sorted({name for values in last.values() for name in values})
    if tag is None and len(tags) != 1:
        raise ForecastError(f"{root} has the tags {', '.join(tags) or '(none)'}; name one with --tag")
    if tag is not None and tag not in tags:
        raise ForecastError(f"{root} has no tag {tag!r}; it has {', '.join(tags) or 'none'}")
    chosen = tag or tags[0]

    def runs() -> Iterator[Found]:
        for folder, values in last.items():
            name = folder.relative_to(root).as_posix()
            given = folder / "hparams.yaml"
            settings = flatten(read_yaml(given)) if given.is_file() else {}
            settings |= dict(_IN_PATH.findall(name))
            if chosen in values:
                yield Found(settings, {chosen: values[chosen]}, {"run_id": name if name != "." else root.name})

    return table_of(str(root), runs())


def scalars(path: Path) -> Iterator[tuple[int, str, float]]:
    """Step, tag and value of each scalar in an event file; a last record that is still being written is left out."""
    with open(path, "rb") as file:
        while len(header := file.read(12)) == 12:
            length = struct.unpack("<Q", header[:8])[0]
            record = file.read(length + 4)
            if len(record) < length + 4:
                return
            step, values = 0, []
            for number, content in _fields(record[:length]):
                if number == 2 and isinstance(content, int):
                    step = content
                elif number == 5 and isinstance(content, bytes):
                    values = [_scalar(v) for n, v in _fields(content) if n == 1 and isinstance(v, bytes)]
            yield from ((step, tag, value) for tag, value in values if tag and value is not None)


def _last_values(paths: list[Path]) -> dict[str, float]:
    found: dict[str, tuple[int, float]] = {}
    for path in paths:
        for step, tag, value in scalars(path):
            if tag not in found or step >= found[tag][0]:
                found[tag] = step, value
    return {tag: value for tag, (_, value) in found.items()}


def _scalar(message: bytes) -> tuple[str, float | None]:
    tag, value = "", None
    for number, content in _fields(message):
        if number == 1 and isinstance(content, bytes):
            tag = content.decode("utf-8", "replace")
        elif number == 2 and isinstance(content, bytes):
            value = struct.unpack("<f", content)[0]
        elif number == 8 and isinstance(content, bytes):
            value = _tensor(content)
    return tag, value


def _tensor(message: bytes) -> float | None:
    """The number in a tensor of one float (dtype 1) or double (2)."""
    fields = dict(_fields(message))
    kind, content = fields.get(1), fields.get(4) or fields.get(5) or fields.get(6)
    sizes = {1: ("<f", 4), 2: ("<d", 8)}
    if kind not in sizes or not isinstance(content, bytes) or len(content) != sizes[kind][1]:
        return None
    return float(struct.unpack(sizes[kind][0], content)[0])


def _fields(message: bytes) -> Iterator[Field]:
    """Number and content of each field of a protocol buffer; 4- and 8-byte fields as their bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield number, value
            continue
        if kind == 2:
            size, at = _varint(message, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ForecastError(f"not an event file: a field of kind {kind}; delete or restore it")
        yield number, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            break
    return value, at
