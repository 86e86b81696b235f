"""The fixed image reference: features of one image JEPA, trained once on designers' pairs of train scenes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from forecast.files import sha256_hex, write_atomically
from forecast.records import Scalar
from runner.experiment import train_side
from runner.settings import complete_settings
from runner.streams import Streams
from runner.worlds.glyphs import load_glyphs

__all__ = ["REFERENCE", "SEED", "build_reference", "scene_features"]

Array = np.ndarray[Any, Any]
REFERENCE: dict[str, Scalar] = {
    "modality": "image",
    "good_view_fraction": 1.0,
    "n_samples": 256_000,
    "batch_size": 256,
    "optimiser.learning_rate": 1e-3,
}
SEED = 0


def build_reference(folder: Path, *, threads: int, progress: Callable[[int, int], None]) -> str:
    """Train the reference and write `reference.npy` (scenes, code) float32 and `reference.json`; its sha256."""
    torch.set_num_threads(threads)
    full = complete_settings(REFERENCE)
    side, trained = train_side(full, Streams.of(SEED, full), progress=progress)
    features = scene_features(side.codes(), load_glyphs().drawn)
    buffer = io.BytesIO()
    np.save(buffer, features, allow_pickle=False)
    digest = sha256_hex(buffer.getvalue())
    record = {
        "settings": full,
        "seed": SEED,
        "sha256": digest,
        "threads": threads,
        "steps": trained.steps,
        "last_loss": [round(float(x), 5) for x in trained.losses[-50:].mean(axis=0)],
    }
    write_atomically(folder / "reference.npy", buffer.getvalue())
    write_atomically(folder / "reference.json", (json.dumps(record, indent=1) + "\n").encode())
    return digest


def scene_features(codes: Array, drawn: Array) -> Array:
    """Codes of every drawing (scenes * designers, code) averaged over those that exist: (scenes, code)."""
    by_scene = codes.reshape(*drawn.shape, -1) * drawn[:, :, None]
    mean: Array = (by_scene.sum(axis=1) / drawn.sum(axis=1, keepdims=True)).astype(np.float32)
    return mean
