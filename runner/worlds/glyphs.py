"""The glyph world as arrays: texts of scenes as token rows, drawings as pixels, reference features."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from forecast.content import content_path
from forecast.errors import ForecastError
from forecast.files import sha256_hex

__all__ = ["Glyphs", "TextTable", "load_glyphs", "ngram_table"]

Array = np.ndarray[Any, Any]
BUCKETS, MAX_NGRAMS = 2**15, 64


@dataclass(frozen=True, eq=False)
class TextTable:
    """Texts as rows of ids, ordered by scene.

    ids: (texts, longest), 0 is padding. length: (texts,). scene: (texts,), ascending.
    first, count: (scenes,), where a scene's rows start and how many they are. vocabulary: number of ids.
    """

    ids: Array
    length: Array
    scene: Array
    first: Array
    count: Array
    vocabulary: int

    @classmethod
    def of(cls, ids: Array, length: Array, scene: Array, vocabulary: int) -> TextTable:
        """The table with its scene index; `scene` must be ascending."""
        scenes = int(scene.max()) + 1
        first = np.searchsorted(scene, np.arange(scenes))
        return cls(ids, length, scene, first, np.bincount(scene, minlength=scenes), vocabulary)


@dataclass(frozen=True, eq=False)
class Glyphs:
    """The whole world. test: (scenes,) bool. drawn: (scenes, designers). hash: sha256 of the manifest."""

    hash: str
    test: Array
    tokens: TextTable
    pixels: Array
    drawn: Array
    texts: tuple[str, ...]
    reference: Array | None
    reference_hash: str | None


@cache
def load_glyphs(folder: Path | None = None) -> Glyphs:
    """The world under `folder` (default: the shipped one), each file checked against the manifest.

    Raises ForecastError if a file is not the one that the manifest names.
    """
    folder = content_path("glyphs") if folder is None else folder
    raw = (folder / "manifest.json").read_bytes()
    manifest = json.loads(raw)
    for name, digest in manifest["files"].items():
        found = sha256_hex((folder / name).read_bytes())
        if found != digest:
            raise ForecastError(f"{folder / name} has sha256 {found}, its manifest says {digest}; rebuild the world")
    scenes = [json.loads(line) for line in (folder / "scenes.jsonl").read_text(encoding="utf-8").splitlines()]
    with np.load(folder / "tokens.npz") as arrays:
        sources = arrays["source"]
        scene = arrays["scene"].astype(np.int64)
        vocabulary = 1 + int(arrays["tokens"].max())
        tokens = TextTable.of(arrays["tokens"].astype(np.int32), arrays["length"].astype(np.int64), scene, vocabulary)
    with np.load(folder / "images.npz") as arrays:
        pixels, drawn = arrays["pixels"], arrays["drawn"]
    names = manifest["languages"]
    reference, reference_hash = _reference(folder)
    return Glyphs(
        hash=sha256_hex(raw),
        test=np.array([scene["split"] == "test" for scene in scenes]),
        tokens=tokens,
        pixels=pixels,
        drawn=drawn,
        texts=tuple(scenes[s]["texts"][names[source]] for s, source in zip(scene, sources, strict=True)),
        reference=reference,
        reference_hash=reference_hash,
    )


def _reference(folder: Path) -> tuple[Array | None, str | None]:
    """The image features and their hash, checked against the record of their training; None before that."""
    file = folder / "reference.npy"
    if not file.exists():
        return None, None
    found = sha256_hex(file.read_bytes())
    recorded = json.loads((folder / "reference.json").read_bytes())["sha256"]
    if found != recorded:
        raise ForecastError(f"{file} has sha256 {found}, its record says {recorded}; train the reference anew")
    features: Array = np.load(file, allow_pickle=False)
    return features, found


@cache
def ngram_table(world: Glyphs) -> TextTable:
    """Each text as its hashed character trigrams and whole words, at most 64, ids in [1, 2**15)."""
    rows = [_ngrams(text) for text in world.texts]
    ids = np.zeros((len(rows), MAX_NGRAMS), np.int32)
    for row, grams in enumerate(rows):
        ids[row, : len(grams)] = grams
    return TextTable.of(ids, np.array([len(grams) for grams in rows]), world.tokens.scene, BUCKETS)


def _ngrams(text: str) -> list[int]:
    grams: dict[str, None] = {}
    for word in text.replace(",", " ").split():
        marked = f"<{word}>"
        grams[marked] = None
        grams.update(dict.fromkeys(marked[i : i + 3] for i in range(len(marked) - 2)))
    return [1 + zlib.crc32(gram.encode()) % (BUCKETS - 1) for gram in list(grams)[:MAX_NGRAMS]]
