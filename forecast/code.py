"""The code itself: which files it is made of, and their one hash."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from forecast.files import canonical_json, sha256_hex

__all__ = [
    "PACKAGES",
    "PROJECT_FILES",
    "code_hash",
    "code_names",
    "evaluation_code_hash",
    "files_under",
    "hash_of",
    "own_root",
    "read_files",
]

PACKAGES = ("forecast", "prereg", "runner")
PROJECT_FILES = ("pyproject.toml", "constraints.txt")


def own_root() -> Path:
    """The folder that holds our three packages."""
    return Path(__file__).resolve().parents[1]


def code_hash(root: Path) -> str:
    """The hash of the three packages, pyproject.toml and constraints.txt under `root`."""
    return hash_of(read_files(root, code_names(root)))


def evaluation_code_hash(root: Path) -> str:
    """The hash of what scores our own runs: runner/evaluation*.py and runner/metrics under `root`."""
    names = [name for name in code_names(root) if name.startswith(("runner/evaluation", "runner/metrics/"))]
    return hash_of(read_files(root, names))


def hash_of(files: Mapping[str, bytes]) -> str:
    """The hash of named files: sha256 over the canonical JSON of their sha256."""
    return sha256_hex(canonical_json({name: sha256_hex(data) for name, data in files.items()}))


def read_files(root: Path, names: Sequence[str]) -> dict[str, bytes]:
    """The bytes of the files `names` under `root`."""
    return {name: (root / name).read_bytes() for name in names}


def code_names(root: Path) -> list[str]:
    """The files that are code, as paths under `root`; shipped content is none."""
    names = [name for name in PROJECT_FILES if (root / name).is_file()]
    for package in PACKAGES:
        names += [name for name in files_under(root, package) if not name.startswith("runner/content/")]
    return sorted(names)


def files_under(root: Path, base: str) -> list[str]:
    """The files in `base`, as paths under `root`; no hidden ones and no byte code."""
    found = []
    for folder, subfolders, files in os.walk(root / base):
        subfolders[:] = [name for name in subfolders if name != "__pycache__" and not name.startswith(".")]
        found += [
            (Path(folder) / name).relative_to(root).as_posix()
            for name in files
            if not name.startswith(".") and not name.endswith(".pyc")
        ]
    return sorted(found)
