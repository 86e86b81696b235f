"""Features of a corpus's scenes, made elsewhere by another model: matched by id, kept beside the corpus."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from forecast.errors import ForecastError
from forecast.files import sha256_hex, write_atomically
from runner.corpora.places import manifest_of
from runner.metrics.features import read_features, read_ids

__all__ = ["Reference", "add_reference", "load_reference", "references_of"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Reference:
    """features: (rows, dimensions) float32 of the scenes `rows` (ascending places in the corpus). hash: of both."""

    features: Array
    rows: Array
    hash: str


def add_reference(
    corpus: Path, features: Path, *, name: str, ids: Path | None = None, layer: str | None = None
) -> dict[str, Any]:
    """Match the rows of a feature file to the corpus's scenes and keep them under `corpus`/reference; the record.

    features: .npy, .npz, .safetensors or .parquet; ids: a file of one scene id a row, unless the features hold them.
    layer: which of several. Every test scene needs a row; scenes without one are not scored. Raises ForecastError
    for a row that is no scene of the corpus, an id twice, or test scenes without a row.
    """
    if not name.isidentifier():
        raise ForecastError(f"a reference's name is letters, digits and _, got {name!r}")
    digest = manifest_of(corpus)[1]
    file = read_features(features)
    if layer is None and len(file.layers) > 1:
        raise ForecastError(f"{features} has the layers {', '.join(file.layers)}; choose one with --layer")
    found = read_ids(ids) if ids else file.ids
    if found is None:
        raise ForecastError(f"{features} holds no ids; give the scene id of each row with --ids")
    array = file.layer(layer or file.layers[0])
    if len(found) != len(array):
        raise ForecastError(f"{features} has {len(array)} rows, but there are {len(found)} ids; one id a row")
    rows = _places(corpus, found, features)
    split = np.load(corpus / "split.npy")
    missing = np.setdiff1d(np.flatnonzero(split == 1), rows)
    if len(missing):
        raise ForecastError(
            f"{features} has no row for {len(missing)} of {int((split == 1).sum())} test scenes, the first "
            f"is {scene_ids(corpus)[missing[0]]}; every test scene needs one"
        )
    order = np.argsort(rows)
    arrays = {"features": np.ascontiguousarray(array[order], "<f4"), "rows": rows[order].astype("<i8")}
    if not (np.linalg.norm(arrays["features"], axis=1) > 0).all():
        raise ForecastError(f"{features} has a row of zeros; its direction is not defined")
    record = {
        "format": "platocast-reference-1",
        "corpus": digest,
        "source": {"file": features.name, "sha256": file.sha256, "layer": layer or file.layers[0]},
        "ids": None if ids is None else {"file": ids.name, "sha256": sha256_hex(ids.read_bytes())},
        "rows": len(rows),
        "dimensions": int(array.shape[1]),
        "sha256": _digest(arrays["features"], arrays["rows"]),
    }
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    write_atomically(corpus / "reference" / f"{name}.npz", buffer.getvalue())
    write_atomically(corpus / "reference" / f"{name}.json", (json.dumps(record, indent=1) + "\n").encode())
    return record


def references_of(corpus: Path) -> dict[str, str]:
    """The corpus's references: name -> hash."""
    digest = manifest_of(corpus)[1]
    records = {path.stem: json.loads(path.read_bytes()) for path in sorted((corpus / "reference").glob("*.json"))}
    return {name: record["sha256"] for name, record in records.items() if record["corpus"] == digest}


def load_reference(corpus: Path, digest: str) -> Reference:
    """The reference with this hash. Raises ForecastError if there is none, or its bytes are other ones."""
    known = references_of(corpus)
    for name, recorded in known.items():
        if recorded != digest:
            continue
        with np.load(corpus / "reference" / f"{name}.npz", allow_pickle=False) as arrays:
            features, rows = arrays["features"], arrays["rows"]
        found = _digest(features, rows)
        if found != digest:
            raise ForecastError(f"reference {name} of {corpus} has sha256 {found[:16]}, its record says {digest[:16]}")
        return Reference(features, rows, digest)
    raise ForecastError(
        f"{corpus} has no reference with the hash {digest[:16]}; it has "
        f"{', '.join(f'{name} {value[:16]}' for name, value in known.items()) or 'none'}; "
        "add one with 'platocast world reference'"
    )


def scene_ids(corpus: Path) -> list[str]:
    """The ids of the corpus's scenes, in its order."""
    return (corpus / "scene_ids.txt").read_text("utf-8").split("\n")[:-1]


def _places(corpus: Path, ids: tuple[str, ...], features: Path) -> Array:
    place = {name: number for number, name in enumerate(scene_ids(corpus))}
    strangers = [name for name in ids if name not in place]
    if strangers:
        raise ForecastError(
            f"{features}: {len(strangers)} of {len(ids)} ids are no scene of the corpus, the first is "
            f"{strangers[0]!r} (a scene is named like {next(iter(place))!r}); leave these rows out or mend the ids"
        )
    rows = np.array([place[name] for name in ids])
    if len(np.unique(rows)) < len(rows):
        twice = ids[int(np.flatnonzero(np.bincount(rows)[rows] > 1)[0])]
        raise ForecastError(f"{features}: the id {twice!r} stands twice; one row a scene")
    return rows


def _digest(features: Array, rows: Array) -> str:
    """The hash of what is scored against: shape, features, and which scenes they are of."""
    head = f"{features.shape[0]} {features.shape[1]} ".encode()
    return sha256_hex(head + features.astype("<f4").tobytes() + rows.astype("<i8").tobytes())
