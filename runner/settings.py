"""What a glyph design's settings are: names, defaults, rules. A design's hash is of the completed settings."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from forecast.errors import ForecastError
from forecast.records import Scalar
from runner.worlds.glyphs import load_glyphs

__all__ = ["complete_settings"]

_SHARED: dict[str, Scalar] = {
    "world": "glyphs",
    "modality": "text",
    "objective": "jepa",
    "batch_size": 64,
    "encoder.code": 64,
    "optimiser.learning_rate": 2e-3,
    "optimiser.weight_decay": 0.01,
    "optimiser.warmup": 0.05,
    "sigreg.weight": 0.02,
    "sigreg.directions": 256,
}
_BY_ENCODER: dict[str, dict[str, Scalar]] = {
    "transformer": {"encoder.width": 64, "encoder.layers": 2, "encoder.heads": 2},
    "ngram_bag": {"encoder.width": 64},
    "convnet": {"encoder.width": 32},
}
_BY_MODALITY: dict[str, dict[str, Scalar]] = {
    "text": {
        "encoder": "transformer",
        "view.mask_rate": 0.5,
        "view.length": 10,
        "evaluation.neighbours": 10,
        "evaluation.draws": 16,
        "evaluation.seed": 0,
    },
    "image": {"encoder": "convnet", "view.least_side": 0.6},
}
_OPTIONS: dict[str, Scalar] = {
    "precision": "float32",
    "compiled": False,
    "seed.streams": "joint",
    "seed.init": 0,
    "seed.order": 0,
    "seed.slices": 0,
    "seed.views": 0,
}
"""Part of a design only where given, so that designs made before an option keep their hash; each with its kind."""
_GIVEN = {"precision": ("float32", "bfloat16"), "seed.streams": ("joint", "separate")}
_CHOICES = {"world": ("glyphs",), "modality": ("text", "image"), "objective": ("jepa",), **_GIVEN}
_ENCODERS = {"text": ("transformer", "ngram_bag"), "image": ("convnet",)}


def complete_settings(given: Mapping[str, Scalar]) -> dict[str, Any]:
    """`given` with every default filled in, and the hashes of the world and the reference it is scored on.

    Raises ForecastError for an unknown name (with the nearest known one), a missing good_view_fraction or
    n_samples, a value of another kind, or a hash that is not the one of the world at hand.
    """
    choices = _CHOICES | {"encoder": _ENCODERS.get(str(given.get("modality", "text")), ())}
    for name, allowed in choices.items():
        if name in given and given[name] not in allowed:
            raise ForecastError(f"setting {name} = {given[name]!r} is not one of {', '.join(allowed)}")
    modality = str(given.get("modality", "text"))
    defaults = _SHARED | _BY_MODALITY[modality]
    defaults |= _BY_ENCODER[str(given.get("encoder", defaults["encoder"]))]
    world = load_glyphs()
    hashes: dict[str, Scalar] = {"world.hash": world.hash}
    if modality == "text":
        hashes["reference.hash"] = world.reference_hash
    defaults_and_options = defaults | _OPTIONS
    known = {"good_view_fraction", "n_samples", *defaults_and_options, *hashes}
    for name, value in given.items():
        if name not in known:
            near = get_close_matches(name, sorted(known), n=1)
            raise ForecastError(f"unknown setting {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        if name in hashes and value != hashes[name]:
            raise ForecastError(f"{name} is {value}, but the world at hand has {hashes[name]}: not the same test items")
        _same_kind(name, value, defaults_and_options.get(name))
    for name in ("good_view_fraction", "n_samples"):
        if given.get(name) is None:
            raise ForecastError(f"a design of objective jepa needs {name}")
    return {**defaults, **given, **hashes}


def _same_kind(name: str, value: Scalar, default: Scalar) -> None:
    if name == "good_view_fraction" or default is None:
        return
    fits = isinstance(value, (int, float)) if isinstance(default, float) else isinstance(value, type(default))
    if not fits or isinstance(value, bool) != isinstance(default, bool):
        raise ForecastError(f"setting {name} = {value!r} must be of the kind of its default {default!r}")
