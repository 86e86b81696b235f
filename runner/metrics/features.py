"""Feature files made elsewhere: .npy, .npz, .safetensors and .parquet, read one layer at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forecast.errors import ForecastError

if TYPE_CHECKING:
    import duckdb

__all__ = ["FeatureFile", "read_features", "read_ids"]

Array = np.ndarray[Any, Any]
Loader = Callable[[], Array]
ONLY_LAYER = "features"
IDS = ("ids", "id")
_SAFETENSORS_FLOATS = ("F16", "BF16", "F32", "F64")


@dataclass(frozen=True)
class FeatureFile:
    """A file of features: its layers by name, in the file's order, the items' ids if it holds any, its sha256."""

    path: Path
    sha256: str
    ids: tuple[str, ...] | None
    loaders: Mapping[str, Loader]

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers."""
        return tuple(self.loaders)

    def layer(self, name: str) -> Array:
        """Features of one layer as they lie in the file (bfloat16 widened to float32): (items, dimensions).

        Raises ForecastError where they are no matrix of finite floats, with the row and column of the first fault.
        """
        if name not in self.loaders:
            raise ForecastError(f"{self.path} has no layer {name!r}; it has {', '.join(self.layers)}")
        features = np.asarray(self.loaders[name]())
        where = f"{self.path}, layer {name!r}"
        if features.dtype.kind != "f" or features.ndim != 2 or 0 in features.shape:
            raise ForecastError(
                f"{where}: features are a matrix of floats (items x dimensions), got {features.dtype} of shape "
                f"{features.shape}; convert them first, or name the axis of the layers with --layer-axis"
            )
        bad = np.flatnonzero(~np.isfinite(features).all(axis=1))
        if len(bad):
            column = int(np.flatnonzero(~np.isfinite(features[bad[0]]))[0])
            raise ForecastError(
                f"{where}: row {bad[0]}, column {column} is {features[bad[0], column]} and {len(bad)} row(s) of "
                f"{len(features)} are not finite; leave these items out on both sides"
            )
        return features


def read_features(path: Path, *, layer_axis: int | None = None) -> FeatureFile:
    """The features in `path`. Nothing is unpickled, no layer is loaded before it is asked for.

    .npy: (items, dimensions), or three axes of which `layer_axis` (0 or 1) counts the layers.
    .npz, .safetensors: one array a layer, and the items' ids in an array `ids`.
    .parquet: one column of lists a layer, and the items' ids in a column `id` or `ids`.
    """
    readers = {".npy": _npy, ".npz": _npz, ".safetensors": _safetensors, ".parquet": _parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ForecastError(f"{path}: features come as {', '.join(readers)}; convert them first")
    if not path.is_file():
        raise ForecastError(f"{path} does not exist or is no file; give a file of features")
    try:
        loaders, ids = reader(path)
    except (OSError, ValueError) as error:
        raise ForecastError(f"{path} cannot be read as {path.suffix.lower()}: {error}") from error
    if layer_axis is not None:
        loaders = _split(path, loaders, layer_axis)
    if not loaders:
        raise ForecastError(f"{path} holds no layer: no array of floats with two axes")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return FeatureFile(path, digest, None if ids is None else _checked(path, ids), loaders)


def read_ids(path: Path) -> tuple[str, ...]:
    """One id an item, in order: the lines of a text file, or a .npy of integers or texts with one axis."""
    if not path.is_file():
        raise ForecastError(f"{path} does not exist or is no file; give a file of ids")
    try:
        if path.suffix.lower() == ".npy":
            return _checked(path, np.load(path, allow_pickle=False))
        return _checked(path, np.array(path.read_text("utf-8").splitlines()))
    except (OSError, ValueError) as error:
        raise ForecastError(f"{path} cannot be read as ids: {error}") from error


def _checked(path: Path, ids: Array) -> tuple[str, ...]:
    ids = np.asarray(ids)
    if ids.ndim != 1 or ids.dtype.kind not in "iuUO" or not len(ids):
        raise ForecastError(f"{path}: ids are integers or texts, one an item, got {ids.dtype} of shape {ids.shape}")
    texts = tuple(str(name) for name in ids.tolist())
    for row, text in enumerate(texts):
        if not text.strip() or text == "None":
            raise ForecastError(f"{path}: id {row} is empty; every item needs one")
    return texts


def _split(path: Path, loaders: Mapping[str, Loader], axis: int) -> dict[str, Loader]:
    """Every array with three axes as so many layers, named `name/number` (or `number` in a .npy)."""
    if axis not in (0, 1):
        raise ForecastError(f"the axis of the layers is 0 or 1, got {axis}")
    out: dict[str, Loader] = {}
    for name, load in loaders.items():
        array = load()
        if array.ndim != 3:
            raise ForecastError(f"{path}: a layer axis needs three axes, {name!r} has shape {array.shape}")
        prefix = "" if list(loaders) == [ONLY_LAYER] else f"{name}/"
        for number in range(array.shape[axis]):
            out[f"{prefix}{number}"] = lambda load=load, number=number: np.take(load(), number, axis)  # type: ignore[misc]
    return out


def _npy(path: Path) -> tuple[dict[str, Loader], Array | None]:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    return {ONLY_LAYER: lambda: array}, None


def _npz(path: Path) -> tuple[dict[str, Loader], Array | None]:
    with np.load(path, allow_pickle=False) as file:
        if not hasattr(file, "files"):
            raise ForecastError(f"{path} is no .npz archive")
        names = list(file.files)
        ids = next((file[name] for name in IDS if name in names), None)
    return {name: _from_npz(path, name) for name in names if name not in IDS}, ids


def _from_npz(path: Path, name: str) -> Loader:
    def load() -> Array:
        with np.load(path, allow_pickle=False) as file:
            array: Array = file[name]
            return array

    return load


def _safetensors(path: Path) -> tuple[dict[str, Loader], Array | None]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            kinds = {name: (file.get_slice(name).get_dtype(), file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
            ids = next((file.get_tensor(name) for name in IDS if name in kinds), None)
    except SafetensorError as error:
        raise ForecastError(f"{path} cannot be read as .safetensors: {error}") from error
    chosen = [name for name, (kind, shape) in kinds.items() if kind in _SAFETENSORS_FLOATS and len(shape) in (2, 3)]
    return {name: _from_safetensors(path, name, kinds[name][0] == "BF16") for name in chosen}, ids


def _from_safetensors(path: Path, name: str, bfloat16: bool) -> Loader:
    def load() -> Array:
        if bfloat16:
            return _bfloat16(path, name)
        from safetensors import safe_open

        with safe_open(path, framework="np") as file:
            array: Array = file.get_tensor(name)
            return array

    return load


def _bfloat16(path: Path, name: str) -> Array:
    """bfloat16 is the upper half of a float32, and numpy has no such type."""
    import json

    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        entry = json.loads(file.read(length))[name]
    start, _ = entry["data_offsets"]
    halves = np.memmap(path, np.dtype("<u2"), "r", offset=8 + length + start, shape=tuple(entry["shape"]))
    wide: Array = (halves.astype(np.uint32) << 16).view(np.float32)
    return wide


def _parquet(path: Path) -> tuple[dict[str, Loader], Array | None]:
    import duckdb

    with duckdb.connect() as connection:
        try:
            source = connection.read_parquet(str(path))
        except duckdb.Error as error:
            raise ForecastError(f"{path} cannot be read as .parquet: {error}") from error
        columns = dict(zip(source.columns, (str(kind) for kind in source.types), strict=True))
        name = next((name for name in IDS if name in columns), None)
        ids = None if name is None else _column(connection, path, name)
    lists = [name for name, kind in columns.items() if "[" in kind and kind.split("[")[0] in ("FLOAT", "DOUBLE")]
    return {name: _from_parquet(path, name) for name in lists}, ids


def _column(connection: duckdb.DuckDBPyConnection, path: Path, name: str) -> Array:
    quoted = '"' + name.replace('"', '""') + '"'
    rows = connection.execute(f"select {quoted} from read_parquet(?)", [str(path)]).fetchall()
    found = np.empty(len(rows), object)
    found[:] = [row[0] for row in rows]
    return found


def _from_parquet(path: Path, name: str) -> Loader:
    def load() -> Array:
        import duckdb

        quoted = '"' + name.replace('"', '""') + '"'
        with duckdb.connect() as connection:
            connection.execute("set preserve_insertion_order = true")
            lengths = connection.execute(
                f"select min(len({quoted})), max(len({quoted})), count(*), count({quoted}) from read_parquet(?)",
                [str(path)],
            ).fetchone()
            assert lengths is not None
            least, most, rows, filled = lengths
            if rows != filled or least != most:
                raise ForecastError(
                    f"{path}, column {name!r}: every row needs a list of the same length, found {least} to {most} "
                    f"and {rows - filled} empty"
                )
            flat = connection.execute(f"select unnest({quoted}) as x from read_parquet(?)", [str(path)]).fetchnumpy()
        values: Any = flat["x"]
        filled_in = values.filled(np.nan) if np.ma.isMaskedArray(values) else values
        array: Array = filled_in.reshape(rows, most)
        return array

    return load
