"""One unit of a caption file, tokenised: a file of its own, so that an interrupted build loses one at most."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from forecast.errors import ForecastError
from forecast.files import write_atomically
from runner.corpora.reading import Rows
from runner.corpora.tokeniser import Tokeniser, text_hashes

__all__ = [
    "SPLITS",
    "TEST",
    "TRAIN",
    "UNUSED",
    "Part",
    "hashed_ids",
    "make_part",
    "read_part",
    "split_of",
    "write_part",
]

Array = np.ndarray[Any, Any]
TRAIN, TEST, UNUSED = 0, 1, 2
SPLITS = {"train": TRAIN, "restval": TRAIN, "test": TEST, "val": UNUSED, "validation": UNUSED}


@dataclass(frozen=True)
class Part:
    """Texts of one unit. tokens: all ids in a row; length, scene, field, text: one an entry a text.

    scene: place in `keys`. keys: (scenes, 2) uint64, the scenes' hashed ids; names: the ids themselves, UTF-8,
    each ended by a newline. split: one a scene. empty: texts left out since no token remained.
    """

    tokens: Array
    length: Array
    scene: Array
    field: Array
    text: Array
    keys: Array
    names: Array
    split: Array
    empty: Array

    @property
    def ids(self) -> list[str]:
        """The scenes' ids."""
        return self.names.tobytes().decode().split("\n")[:-1]


def make_part(rows: Rows, tokeniser: Tokeniser, *, test_share: float | None) -> Part:
    """The texts of `rows` as a part. test_share: see `split_of`; None where the source states the split."""
    place: dict[str, int] = {}
    scene = np.fromiter((place.setdefault(name, len(place)) for name in rows.scenes), np.int64, len(rows.scenes))
    if any("\n" in name for name in place):
        raise ForecastError("a scene id holds a line break; rename it")
    keys = hashed_ids(list(place))
    if test_share is None:
        split = np.full(len(place), 255, np.uint8)
        stated = np.fromiter(map(_stated, rows.splits), np.uint8, len(rows.splits))
        split[scene] = stated
        if (split[scene] != stated).any():
            raise ForecastError("a scene stands in two splits; a scene belongs to one")
    else:
        split = split_of(keys, test_share)
    tokens, length = tokeniser.encode(rows.texts)
    kept = length > 0
    return Part(
        tokens=tokens,
        length=length[kept].astype(np.uint16),
        scene=scene[kept],
        field=np.array(rows.fields, np.uint8)[kept],
        text=text_hashes(rows.texts)[kept],
        keys=keys,
        names=np.frombuffer("".join(name + "\n" for name in place).encode(), np.uint8),
        split=split,
        empty=np.array([int((~kept).sum())]),
    )


def split_of(keys: Array, test_share: float) -> Array:
    """Test for the scenes whose hashed id lies in the lowest `test_share`: by the id alone, whatever the order."""
    return np.where(keys[:, 0] < np.uint64(int(test_share * 2**64)), TEST, TRAIN).astype(np.uint8)


def write_part(path: Path, part: Part) -> None:
    """Write `part` whole or not at all; equal parts give equal bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{field.name: getattr(part, field.name) for field in fields(Part)})
    write_atomically(path, buffer.getvalue())


def read_part(path: Path) -> Part | None:
    """The part at `path`; None if there is none or it is damaged."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return Part(**{field.name: arrays[field.name] for field in fields(Part)})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def hashed_ids(names: Sequence[str]) -> Array:
    """128 bits of each scene's id: (scenes, 2) uint64."""
    digests = b"".join(hashlib.blake2b(name.encode(), digest_size=16).digest() for name in names)
    return np.frombuffer(digests, "<u8").reshape(-1, 2)


def _stated(split: str) -> int:
    if split not in SPLITS:
        raise ForecastError(f"split {split!r} is not one of {', '.join(SPLITS)}")
    return SPLITS[split]
