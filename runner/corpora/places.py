"""Where built corpora lie on this machine: a design names a corpus by its hash, never by a path."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from forecast.errors import ForecastError
from forecast.files import sha256_hex, write_atomically

__all__ = ["PLACES", "corpora_known", "find_corpus", "manifest_of", "remember"]

PLACES = "PLATOCAST_CORPORA"
"""Environment variable: folders of corpora, or corpora, joined as in PATH; searched before the user's own list."""


def manifest_of(folder: Path) -> tuple[dict[str, Any], str]:
    """The manifest of the corpus in `folder` and its hash, which is the corpus's."""
    try:
        raw = (folder / "manifest.json").read_bytes()
        manifest = json.loads(raw)
        world = manifest["world"]
    except FileNotFoundError as error:
        raise ForecastError(
            f"{folder} holds no built corpus (no manifest.json); build one with 'platocast world build'"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise ForecastError(f"{folder / 'manifest.json'} is not a corpus's manifest; build the corpus again") from error
    if world not in ("captions", "pictures"):
        raise ForecastError(f"{folder} holds the world {world!r}, not a corpus of captions or pictures")
    return manifest, sha256_hex(raw)


def remember(folder: Path) -> str:
    """Note on the user's list that the corpus in `folder` lies there; its hash."""
    digest = manifest_of(folder)[1]
    write_atomically(_list() / digest, f"{folder.resolve()}\n".encode())
    return digest


def find_corpus(digest: str) -> Path:
    """The folder of the corpus with this hash. Raises ForecastError with what to do if none is known."""
    for folder, found in _candidates():
        if found == digest:
            return folder
    raise ForecastError(
        f"no corpus with the hash {digest[:16]} is known here; run 'platocast world add FOLDER', "
        f"or name its folder in {PLACES}"
    )


def corpora_known() -> list[tuple[Path, str]]:
    """Every corpus that can be found, with its hash, each once."""
    first: dict[str, Path] = {}
    for folder, digest in _candidates():
        first.setdefault(digest, folder)
    return [(folder, digest) for digest, folder in first.items()]


def _candidates() -> list[tuple[Path, str]]:
    places = [Path(place) for place in os.environ.get(PLACES, "").split(os.pathsep) if place]
    folders = [folder for place in places for folder in (place, *_children(place))]
    if _list().is_dir():
        folders += [Path(note.read_text("utf-8").strip()) for note in sorted(_list().iterdir()) if len(note.name) == 64]
    found = []
    for folder in folders:
        try:
            found.append((folder, manifest_of(folder)[1]))
        except (ForecastError, OSError):
            continue
    return found


def _children(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _list() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "platocast" / "corpora"
