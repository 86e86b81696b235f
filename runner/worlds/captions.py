"""A built caption corpus as a world: training texts stay mapped on disk, the scored scenes are held in memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from forecast.errors import ForecastError
from runner.corpora.captions_build import file_hash
from runner.corpora.parts import TEST, TRAIN
from runner.corpora.places import find_corpus, manifest_of
from runner.corpora.reference import load_reference, references_of
from runner.worlds.glyphs import TextTable

__all__ = ["Captions", "PackedRows", "load_captions", "name_corpus"]

Array = np.ndarray[Any, Any]
SCORED_TRAIN_SCENES = 1000


class PackedRows:
    """Texts of unequal length stored without padding; rows come padded to `longest`, like an array of ids.

    tokens: all ids in a row, mapped. starts: (texts + 1,).
    """

    def __init__(self, tokens: Array, starts: Array, longest: int) -> None:
        self._tokens, self._starts = tokens, starts
        self.shape = (len(starts) - 1, longest)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Array) -> Array:
        """The texts `rows`, (rows, longest) int32, 0 is padding."""
        starts = self._starts[rows]
        length = self._starts[np.asarray(rows) + 1] - starts
        ids = np.zeros((len(starts), self.shape[1]), np.int32)
        inside = np.arange(self.shape[1]) < length[:, None]
        ends = np.cumsum(length)
        places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + length, length)
        ids[inside] = self._tokens[places]
        return ids


@dataclass(frozen=True, eq=False)
class Captions:
    """The corpus. hash: sha256 of its manifest.

    table: every text of the corpus, ids as PackedRows. train: train scenes with at least two texts, so that designs
    of every good-view fraction draw from the same scenes.
    scored: the test scenes and up to SCORED_TRAIN_SCENES train scenes that the reference covers (test: bool per
    scored scene); tokens: their texts; overlap: bool per scored scene, whether one of a test scene's texts stands
    in the training texts word for word.
    """

    hash: str
    table: TextTable
    train: Array
    scored: Array
    test: Array
    tokens: TextTable
    overlap: Array
    reference: Array
    reference_hash: str
    text_authors: str


def name_corpus(path: str) -> tuple[str, str]:
    """The hash of the corpus at `path`, which the machine then remembers, and that of its only reference."""
    from runner.corpora.places import remember

    folder = Path(path)
    digest = remember(folder)
    return digest, only_reference(folder)


def only_reference(folder: Path) -> str:
    """The hash of the reference of the corpus in `folder`; refuses none, and a choice."""
    known = references_of(folder)
    if len(known) == 1:
        return next(iter(known.values()))
    if not known:
        raise ForecastError(
            f"{folder} has no reference features to score against; add them with 'platocast world reference'"
        )
    raise ForecastError(
        f"{folder} has several references; give one as reference.hash: "
        + ", ".join(f"{name} = {digest}" for name, digest in known.items())
    )


@cache
def load_captions(digest: str, reference_digest: str) -> Captions:
    """The corpus with this hash, each file checked against its manifest, and the reference with that hash."""
    folder = find_corpus(digest)
    manifest, found = manifest_of(folder)
    if manifest["world"] != "captions" or found != digest:
        raise ForecastError(f"{folder} is not the caption corpus {digest[:16]}")
    for name, sha in manifest["files"].items():
        if file_hash(folder / name) != sha:
            raise ForecastError(f"{folder / name} is not the file that the manifest names; build the corpus again")
    tokens = np.load(folder / "tokens.npy", mmap_mode="r")
    starts, first = np.load(folder / "starts.npy"), np.load(folder / "first.npy")
    split, texts = np.load(folder / "split.npy"), np.load(folder / "text.npy")
    count = np.diff(first)
    longest = int(np.diff(starts).max())
    packed: Any = PackedRows(tokens, starts, longest)
    scene = np.repeat(np.arange(len(count)), count)
    table = TextTable(packed, np.diff(starts), scene, first[:-1], count, manifest["vocabulary_size"])
    train = np.flatnonzero((split == TRAIN) & (count >= 2))
    if not len(train):
        raise ForecastError(f"no train scene of {folder} has two texts, so there are no good pairs; add more texts")
    reference = load_reference(folder, reference_digest)
    test = np.flatnonzero(split == TEST)
    extra = np.intersect1d(np.flatnonzero(split == TRAIN), reference.rows)
    if len(extra) > SCORED_TRAIN_SCENES:
        extra = extra[np.linspace(0, len(extra) - 1, SCORED_TRAIN_SCENES).astype(np.int64)]
    scored = np.concatenate([test, extra])
    rows = np.concatenate([np.arange(first[s], first[s] + count[s]) for s in scored])
    known = np.isin(texts[rows], texts[split[scene] == TRAIN])
    place = np.repeat(np.arange(len(scored)), count[scored])
    return Captions(
        hash=digest,
        table=table,
        train=train,
        scored=scored,
        test=np.arange(len(scored)) < len(test),
        tokens=TextTable.of(packed[rows], np.diff(starts)[rows], place, manifest["vocabulary_size"]),
        overlap=(np.bincount(place, weights=known, minlength=len(scored)) > 0) & (np.arange(len(scored)) < len(test)),
        reference=reference.features[np.searchsorted(reference.rows, scored)],
        reference_hash=reference.hash,
        text_authors=manifest["text_authors"],
    )
