"""The state of a training as bytes and back: tensors, plain values and random generators, never code."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import torch

from forecast.errors import ForecastError

__all__ = ["pack", "restore_rng", "rng_state", "unpack"]

_FORMAT = 1


def pack(state: dict[str, Any]) -> bytes:
    """`state` (tensors, numbers, texts, lists and dicts of them) as bytes that `unpack` reads."""
    buffer = io.BytesIO()
    torch.save({"format": _FORMAT} | state, buffer)
    return buffer.getvalue()


def unpack(content: bytes) -> dict[str, Any]:
    """What `pack` was given, on the CPU. Refuses another format; never runs what the bytes hold."""
    state: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    if state.pop("format", None) != _FORMAT:
        raise ForecastError("the checkpoint was written by another version; remove it and the run starts anew")
    return state


def rng_state(rng: np.random.Generator) -> str:
    """Where a numpy generator stands; its 128-bit numbers need text."""
    return json.dumps(rng.bit_generator.state)


def restore_rng(rng: np.random.Generator, state: str) -> None:
    """Put `rng` where it stood when `rng_state` was called."""
    rng.bit_generator.state = json.loads(state)
