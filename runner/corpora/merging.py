"""Parts of a caption corpus into one: texts ordered by scene, in arrays that are mapped, never loaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from forecast.errors import ForecastError
from runner.corpora.parts import Part, read_part

__all__ = ["ARRAYS", "Overlap", "merge"]

Array = np.ndarray[Any, Any]
ARRAYS = ("tokens", "starts", "first", "split", "field", "text")
CHUNK_TOKENS = 1 << 22


@dataclass(frozen=True)
class Overlap:
    """Test texts that stand, word for word, among the train texts, and the test scenes that have one."""

    test_texts: int
    test_texts_in_training: int
    test_scenes_with_one: int


def merge(
    parts: Sequence[Path], out: Path, *, dtype: np.dtype[Any], progress: Callable[[int, int], None]
) -> dict[str, Any]:
    """Write ARRAYS as .npy and `scene_ids.txt` into `out`; counts for the manifest.

    tokens: ids of all texts, by scene. starts: (texts + 1,), where each text's tokens begin. first: (scenes + 1,),
    where each scene's texts begin. split: (scenes,). field: (texts,). text: (texts,), hashes. Scenes stand in order
    of first appearance. Memory: one part, and about 60 bytes a text; tokens go straight to disk.
    """
    length, scene, field, text, split, names, empty = _index(parts)
    order = np.argsort(scene, kind="stable")
    starts = np.zeros(len(order) + 1, np.int64)
    np.cumsum(length[order], out=starts[1:])
    first = np.zeros(len(split) + 1, np.int64)
    np.cumsum(np.bincount(scene, minlength=len(split)), out=first[1:])
    goes_to = np.empty(len(order), np.int64)
    goes_to[order] = starts[:-1]
    del order
    _scatter(parts, out / "tokens.npy", goes_to, int(starts[-1]), dtype, progress)
    by_scene = np.argsort(scene, kind="stable")
    arrays = {"starts": starts, "first": first, "split": split, "field": field[by_scene], "text": text[by_scene]}
    for name, array in arrays.items():
        _save(out / f"{name}.npy", array)
    _replace(out / "scene_ids.txt", lambda temporary: temporary.write_text("".join(names), "utf-8"))
    overlap = _overlap(
        arrays["text"], np.repeat(split, np.diff(first)), np.repeat(np.arange(len(split)), np.diff(first))
    )
    return {
        "scenes": len(split),
        "train_scenes": int((split == 0).sum()),
        "test_scenes": int((split == 1).sum()),
        "unused_scenes": int((split == 2).sum()),
        "texts": len(scene),
        "unique_texts": len(np.unique(text)),
        "empty_texts_left_out": empty,
        "tokens": int(starts[-1]),
        "overlap": vars(overlap),
    }


def _parts(paths: Sequence[Path]) -> Iterator[Part]:
    for path in paths:
        part = read_part(path)
        if part is None:
            raise ForecastError(f"{path} is gone or damaged; build the corpus again, what is whole is kept")
        yield part


def _index(parts: Sequence[Path]) -> tuple[Array, Array, Array, Array, Array, list[str], int]:
    """length, scene, field, text of every text in reading order; split and names of every scene; empty texts."""
    lengths, scenes, fields, texts, keys, splits, names = [], [], [], [], [], [], []
    offset = empty = 0
    for part in _parts(parts):
        lengths.append(part.length)
        scenes.append(part.scene + offset)
        fields.append(part.field)
        texts.append(part.text)
        keys.append(part.keys)
        splits.append(part.split)
        names += part.ids
        offset += len(part.keys)
        empty += int(part.empty[0])
    scene, chosen = _joined(np.concatenate(keys), np.concatenate(splits), np.concatenate(scenes), names)
    if not len(scene):
        raise ForecastError("no text was found; check the names of the fields")
    return (
        np.concatenate(lengths),
        scene,
        np.concatenate(fields),
        np.concatenate(texts),
        np.concatenate(splits)[chosen],
        [names[place] + "\n" for place in chosen],
        empty,
    )


def _joined(keys: Array, split: Array, scene: Array, names: list[str]) -> tuple[Array, Array]:
    """Scenes that several parts share become one: each text's scene, and where each scene first appeared.

    A scene of which no text remained is left out.
    """
    order = np.lexsort((np.arange(len(keys)), keys[:, 1], keys[:, 0]))
    new = np.ones(len(keys), bool)
    new[1:] = (keys[order][1:] != keys[order][:-1]).any(axis=1)
    group = np.empty(len(keys), np.int64)
    group[order] = np.cumsum(new) - 1
    first = order[new]
    differs = split != split[first[group]]
    if differs.any():
        raise ForecastError(f"scene {names[int(np.flatnonzero(differs)[0])]} stands in two splits; it belongs to one")
    present = np.zeros(len(first), bool)
    present[group[scene]] = True
    kept = np.flatnonzero(present)
    kept = kept[np.argsort(first[kept])]
    number = np.full(len(first), -1)
    number[kept] = np.arange(len(kept))
    return number[group[scene]], first[kept]


def _scatter(
    parts: Sequence[Path],
    path: Path,
    goes_to: Array,
    total: int,
    dtype: np.dtype[Any],
    progress: Callable[[int, int], None],
) -> None:
    def write(temporary: Path) -> None:
        tokens = np.lib.format.open_memmap(temporary, mode="w+", dtype=dtype, shape=(total,))
        done = 0
        for part in _parts(parts):
            starts = np.concatenate([[0], np.cumsum(part.length, dtype=np.int64)])
            shift = goes_to[done : done + len(part.length)] - starts[:-1]
            for a in range(0, len(part.tokens), CHUNK_TOKENS):
                b = min(a + CHUNK_TOKENS, len(part.tokens))
                here = np.arange(a, b)
                tokens[here + shift[np.searchsorted(starts, here, side="right") - 1]] = part.tokens[a:b]
            done += len(part.length)
            progress(done, len(goes_to))
        tokens.flush()

    _replace(path, write)


def _overlap(text: Array, split: Array, scene: Array) -> Overlap:
    test = split == 1
    known = np.isin(text[test], text[split == 0])
    return Overlap(int(test.sum()), int(known.sum()), len(np.unique(scene[test][known])))


def _save(path: Path, array: Array) -> None:
    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.save(file, array, allow_pickle=False)

    _replace(path, write)


def _replace(path: Path, write: Callable[[Path], Any]) -> None:
    """Let `write` fill a temporary file beside `path`, fsync it, rename it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
