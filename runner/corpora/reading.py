"""Caption files as batches of rows, a unit of a file at a time, so that no file has to fit into memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from forecast.errors import ForecastError
from runner.corpora.sources import CaptionSource

__all__ = ["Rows", "Unit", "rows_of", "units_of"]

JSONL_BYTES, IMAGES, PARQUET_ROWS = 16 << 20, 20_000, 65_536


@dataclass(frozen=True)
class Unit:
    """A part of a file that is read in one go. start, stop: bytes (JSONL), images (Karpathy) or row groups."""

    file: Path
    start: int
    stop: int


@dataclass
class Rows:
    """Texts, one an entry: its scene's id, its field's number in the source, the scene's split ("" if unsaid)."""

    scenes: list[str]
    texts: list[str]
    fields: list[int]
    splits: list[str]

    def add(self, scene: Any, texts: Any, field: int, split: Any, where: str) -> None:
        """Take in one field of a row: a text, a list of texts, or nothing."""
        if scene is None or str(scene) == "":
            raise ForecastError(f"{where}: a row has no scene id; every row needs one")
        if texts is None:
            return
        for text in [texts] if isinstance(texts, str) else texts:
            if not isinstance(text, str):
                raise ForecastError(f"{where}: scene {scene} has {text!r} where a text was expected")
            self.scenes.append(str(scene))
            self.texts.append(text)
            self.fields.append(field)
            self.splits.append("" if split is None else str(split))


def units_of(file: Path, source: CaptionSource) -> list[Unit]:
    """The units of `file`, in order; always the same for the same bytes."""
    if source.format == "karpathy":
        count = _count_images(file)
        return [Unit(file, start, min(start + IMAGES, count)) for start in range(0, count, IMAGES)]
    if source.format == "jsonl":
        return _line_ranges(file)
    parquet = _parquet(file, source)
    units, start, rows = [], 0, 0
    for group in range(parquet.num_row_groups):
        rows += parquet.metadata.row_group(group).num_rows
        if rows >= PARQUET_ROWS or group == parquet.num_row_groups - 1:
            units.append(Unit(file, start, group + 1))
            start, rows = group + 1, 0
    return units


def rows_of(unit: Unit, source: CaptionSource) -> Rows:
    """The texts of `unit`. Raises ForecastError with file and place where a row is not as the source says."""
    rows = Rows([], [], [], [])
    if source.format == "karpathy":
        _read_karpathy(unit, source, rows)
    elif source.format == "jsonl":
        _read_lines(unit, source, rows)
    else:
        _read_parquet(unit, source, rows)
    return rows


def _images(file: Path) -> Iterator[dict[str, Any]]:
    import ijson

    with file.open("rb") as stream:
        try:
            yield from ijson.items(stream, "images.item", use_float=True)
        except ijson.JSONError as error:
            raise ForecastError(f"{file} is not JSON: {error}; download it again") from error


def _count_images(file: Path) -> int:
    import ijson

    count = 0
    with file.open("rb") as stream:
        try:
            for prefix, event, _ in ijson.parse(stream):
                count += prefix == "images.item" and event == "start_map"
        except ijson.JSONError as error:
            raise ForecastError(f"{file} is not JSON: {error}; download it again") from error
    if not count:
        raise ForecastError(f"{file} has no list 'images'; a Karpathy file has one")
    return count


def _read_karpathy(unit: Unit, source: CaptionSource, rows: Rows) -> None:
    for image in islice(_images(unit.file), unit.start, unit.stop):
        where = f"{unit.file}, image {image.get('imgid', '?')}"
        for number, text in enumerate(source.texts):
            found = _field(image, text.field, where)
            texts = [s["raw"] if isinstance(s, dict) and "raw" in s else s for s in found]
            rows.add(_field(image, source.scene, where), texts, number, _split(image, source, where), where)


def _line_ranges(file: Path) -> list[Unit]:
    units, start, size = [], 0, file.stat().st_size
    with file.open("rb") as stream:
        while start < size:
            stream.seek(min(start + JSONL_BYTES, size) - 1)
            stream.readline()
            units.append(Unit(file, start, stream.tell()))
            start = stream.tell()
    if not units:
        raise ForecastError(f"{file} is empty")
    return units


def _read_lines(unit: Unit, source: CaptionSource, rows: Rows) -> None:
    with unit.file.open("rb") as stream:
        stream.seek(unit.start)
        content = stream.read(unit.stop - unit.start)
    at = unit.start
    for line in content.splitlines(keepends=True):
        where, at = f"{unit.file}, byte {at}", at + len(line)
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ForecastError(f"{where}: not a line of JSON: {error}") from error
        if not isinstance(row, dict):
            raise ForecastError(f"{where}: a line must be an object, got {type(row).__name__}")
        scene, split = _field(row, source.scene, where), _split(row, source, where)
        for number, text in enumerate(source.texts):
            rows.add(scene, row.get(text.field), number, split, where)


def _parquet(file: Path, source: CaptionSource) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        parquet = pq.ParquetFile(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise ForecastError(f"{file} is not Parquet: {error}") from error
    names = parquet.schema_arrow.names
    for name in (source.scene, *(text.field for text in source.texts), *([source.split] if source.split else [])):
        if name not in names:
            raise ForecastError(f"{file} has no column {name!r}; it has {', '.join(names)}")
    return parquet


def _read_parquet(unit: Unit, source: CaptionSource, rows: Rows) -> None:
    parquet = _parquet(unit.file, source)
    wanted = [source.scene, *(text.field for text in source.texts), *([source.split] if source.split else [])]
    where = f"{unit.file}, row groups {unit.start} to {unit.stop - 1}"
    table = parquet.read_row_groups(list(range(unit.start, unit.stop)), columns=wanted)
    scenes = table[source.scene].to_pylist()
    splits = table[source.split].to_pylist() if source.split else [None] * len(scenes)
    columns = [table[text.field].to_pylist() for text in source.texts]
    for place, (scene, split) in enumerate(zip(scenes, splits, strict=True)):
        for number, column in enumerate(columns):
            rows.add(scene, column[place], number, split, where)


def _field(row: dict[str, Any], name: str, where: str) -> Any:
    if name not in row:
        raise ForecastError(f"{where}: no field {name!r}; there are {', '.join(row)}")
    return row[name]


def _split(row: dict[str, Any], source: CaptionSource, where: str) -> Any:
    return _field(row, source.split, where) if source.split else None
