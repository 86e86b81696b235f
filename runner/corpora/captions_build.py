"""Build a caption corpus from local files: read once, tokenised once, resumed where it was interrupted."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forecast.errors import ForecastError
from forecast.files import canonical_json, sha256_hex, write_atomically
from runner.claim import claimed
from runner.corpora.merging import ARRAYS, merge
from runner.corpora.parts import SPLITS, TRAIN, UNUSED, hashed_ids, make_part, read_part, split_of, write_part
from runner.corpora.reading import Unit, rows_of, units_of
from runner.corpora.sources import CaptionSource, files_of
from runner.corpora.tokeniser import Tokeniser, read_vocabulary, train_vocabulary

__all__ = ["FORMAT", "Recipe", "build_captions", "file_hash"]

FORMAT = "platocast-corpus-1"
VOCABULARY_TEXTS = 200_000
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Recipe:
    """What is made of the files. test_share: share of the scenes held out, None where the files state the split.

    vocabulary: ids to train, or a tokenizer.json made elsewhere. longest: tokens a text keeps.
    """

    source: CaptionSource
    test_share: float | None
    vocabulary: int | Path = 8000
    longest: int = 64

    def __post_init__(self) -> None:
        if (self.test_share is None) == (self.source.split is None):
            problem = "the split is given twice" if self.source.split else "no scene would be held out"
            raise ForecastError(
                f"{problem}; give either a field of splits (--split) or a share of test scenes (--test-share)"
            )
        if self.test_share is not None and not 0 < self.test_share < 1:
            raise ForecastError(f"the share of test scenes must lie in (0, 1), got {self.test_share}")
        if isinstance(self.vocabulary, int) and not 100 <= self.vocabulary <= 2**20:
            raise ForecastError(f"a vocabulary has 100 .. {2**20} ids, got {self.vocabulary}")
        if not 2 <= self.longest <= 4096:
            raise ForecastError(f"a text keeps 2 .. 4096 tokens, got {self.longest}")


def build_captions(paths: Sequence[Path], recipe: Recipe, out: Path, *, progress: Progress) -> dict[str, Any]:
    """Write the corpus of the files in `paths` into `out`; its manifest.

    A build that was interrupted goes on where it was; equal files and recipe give equal bytes, whatever the
    interruptions. Raises ForecastError if `out` holds another corpus, or another process is building there.
    """
    files = files_of(list(paths), recipe.source.format)
    with claimed(out / ".lock") as ours:
        if not ours:
            raise ForecastError(f"another process is building in {out}; wait for it, or give another folder")
        progress("hash", 0, len(files))
        described = _described(files, recipe)
        digest = sha256_hex(canonical_json(described))
        finished = _finished(out, digest)
        if finished is None:
            _sweep(out)
            finished = _build(files, recipe, out, digest, described, progress)
        shutil.rmtree(out / "parts", ignore_errors=True)
        return finished


def file_hash(path: Path) -> str:
    """Lower-case hex sha256 of a file of any size."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _build(
    files: Sequence[Path], recipe: Recipe, out: Path, digest: str, described: dict[str, Any], progress: Progress
) -> dict[str, Any]:
    units = [unit for file in files for unit in units_of(file, recipe.source)]
    vocabulary = _vocabulary(units, recipe, out / "parts" / f"{digest[:16]}-vocabulary.json")
    tokeniser = Tokeniser(vocabulary, longest=recipe.longest)
    parts = []
    for number, unit in enumerate(units):
        path = out / "parts" / f"{digest[:16]}-{number:06d}.npz"
        if read_part(path) is None:
            write_part(path, make_part(rows_of(unit, recipe.source), tokeniser, test_share=recipe.test_share))
        parts.append(path)
        progress("tokenise", number + 1, len(units))
    counts = merge(
        parts, out, dtype=tokeniser.dtype, progress=lambda done, total: progress("order by scene", done, total)
    )
    for split in ("train", "test"):
        if not counts[f"{split}_scenes"]:
            raise ForecastError(f"no scene is in the {split} split; check --split, or give another --test-share")
    write_atomically(out / "vocabulary.json", vocabulary.encode())
    names = [f"{name}.npy" for name in ARRAYS] + ["scene_ids.txt", "vocabulary.json"]
    manifest = described | {
        "build": digest,
        "text_authors": recipe.source.authors,
        "vocabulary_size": tokeniser.vocabulary,
        "counts": counts,
        "files": {name: file_hash(out / name) for name in names},
    }
    write_atomically(out / "manifest.json", (json.dumps(manifest, indent=1, ensure_ascii=False) + "\n").encode())
    return manifest


def _described(files: Sequence[Path], recipe: Recipe) -> dict[str, Any]:
    """All that the corpus follows from. A file's folder is not part of it, its name and bytes are."""
    given = recipe.vocabulary
    return {
        "format": FORMAT,
        "world": "captions",
        "source": recipe.source.model_dump(mode="json"),
        "sources": [{"name": file.name, "bytes": file.stat().st_size, "sha256": file_hash(file)} for file in files],
        "vocabulary": f"trained, at most {given} ids" if isinstance(given, int) else f"sha256 {file_hash(given)}",
        "longest": recipe.longest,
        "split": (
            f"as stated in the field {recipe.source.split}"
            if recipe.test_share is None
            else f"test: scenes whose hashed id lies in the lowest {recipe.test_share!r}"
        ),
    }


def _finished(out: Path, digest: str) -> dict[str, Any] | None:
    """The manifest of this very corpus if it is complete."""
    try:
        manifest: dict[str, Any] = json.loads((out / "manifest.json").read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    if manifest.get("build") != digest:
        raise ForecastError(f"{out} holds another corpus ({manifest.get('build', '?')[:16]}); give another folder")
    whole = all((out / name).is_file() and file_hash(out / name) == sha for name, sha in manifest["files"].items())
    return manifest if whole else None


def _vocabulary(units: Sequence[Unit], recipe: Recipe, path: Path) -> str:
    """The vocabulary's text: read, or trained on the first train texts."""
    if isinstance(recipe.vocabulary, Path):
        return read_vocabulary(recipe.vocabulary)
    if path.exists():
        return path.read_text("utf-8")
    text = train_vocabulary(_train_texts(units, recipe), recipe.vocabulary)
    write_atomically(path, text.encode())
    return text


def _train_texts(units: Sequence[Unit], recipe: Recipe) -> Iterator[str]:
    left = VOCABULARY_TEXTS
    for unit in units:
        rows = rows_of(unit, recipe.source)
        for scene, text, split in zip(rows.scenes, rows.texts, rows.splits, strict=True):
            if _in_training(scene, split, recipe.test_share):
                yield text
                left -= 1
                if not left:
                    return


def _in_training(scene: str, split: str, test_share: float | None) -> bool:
    if test_share is None:
        return SPLITS.get(split, UNUSED) == TRAIN
    return bool(split_of(hashed_ids([scene]), test_share)[0] == TRAIN)


def _sweep(out: Path) -> None:
    """Remove what a killed build left half-written; the lock is ours."""
    for path in [*out.glob(".*.tmp"), *(out / "parts").glob(".*.tmp")]:
        path.unlink(missing_ok=True)
