"""Pictures of the scenes world: two shapes on a plain ground, 32 x 32, anti-aliased, never twice the same."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["PIXELS", "render"]

Array = np.ndarray[Any, Any]
PIXELS = 32
# in the order of scenes_text.SHAPES and COLOURS
_COLOURS = np.array(
    [[200, 30, 40], [240, 140, 20], [30, 80, 200], [40, 160, 70], [25, 25, 25], [140, 140, 140]], np.float32
)
# centre line of the left object for height "lifted", "lowered", "level"; the right one mirrors it
_LINE = np.array([11.0, 21.0, 16.0])


def render(values: Array, rng: np.random.Generator) -> Array:
    """One new picture of each scene, (pictures, 32, 32, 3) bytes.

    values: (pictures, 5) left shape, left colour, right shape, right colour, height.
    Free, and drawn anew: place and size of each object within a few pixels, shades, the ground.
    """
    count = len(values)
    ground = rng.uniform(205, 255, (count, 1, 1, 1)) + rng.uniform(-8, 8, (count, 1, 1, 3))
    canvas = np.broadcast_to(ground, (count, PIXELS, PIXELS, 3)).astype(np.float32)
    grid = np.arange(PIXELS, dtype=np.float32) + 0.5
    for side, column in ((0, 9.0), (1, 23.0)):
        line = _LINE[values[:, 4]]
        centre_y = (line if side == 0 else PIXELS - line) + rng.uniform(-1.5, 1.5, count)
        centre_x = column + rng.uniform(-1.5, 1.5, count)
        radius = rng.uniform(4.5, 6.5, count).astype(np.float32)
        x = (grid[None, :] - centre_x[:, None]).astype(np.float32)[:, None, :]
        y = (grid[None, :] - centre_y[:, None]).astype(np.float32)[:, :, None]
        cover = np.empty((count, PIXELS, PIXELS), np.float32)
        shapes = values[:, 2 * side]
        for shape in np.unique(shapes):
            rows = shapes == shape
            cover[rows] = np.clip(0.5 - _distance(int(shape), x[rows], y[rows], radius[rows, None, None]), 0, 1)
        shade = _COLOURS[values[:, 2 * side + 1]] + rng.uniform(-20, 20, (count, 3)).astype(np.float32)
        canvas += cover[..., None] * (shade[:, None, None, :] - canvas)
    pictures: Array = np.clip(np.rint(canvas), 0, 255).astype(np.uint8)
    return pictures


def _distance(shape: int, x: Array, y: Array, radius: Array) -> Array:
    """About how far outside of the shape a pixel lies (negative inside), in pixels."""
    across, down, arm = np.abs(x), np.abs(y), 0.3 * radius
    found: Array
    if shape in (0, 1):
        from_centre = np.sqrt(x * x + y * y)
        found = from_centre - radius if shape == 0 else np.abs(from_centre - 0.75 * radius) - 0.25 * radius
    elif shape == 2:
        found = np.maximum(across, down) - 0.85 * radius
    elif shape == 3:
        found = (across + down - 1.2 * radius) / np.sqrt(np.float32(2))
    elif shape == 4:
        found = np.maximum(y - 0.7 * radius, 0.87 * across - 0.5 * (y + radius))
    else:
        found = np.minimum(np.maximum(across - arm, down - radius), np.maximum(across - radius, down - arm))
    return found
