"""A run's loss curve: whole in a file beside the run, thinned in its record."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from forecast.files import sha256_hex, write_atomically
from forecast.records import LossCurve
from runner.spec import RunFolder

__all__ = ["MOST_POINTS", "keep_losses", "thinned"]

MOST_POINTS = 64


def keep_losses(run: RunFolder, result: Any) -> LossCurve | None:
    """Save the losses of `result`, (steps, parts) or (steps,), the first part the total; the curve for the record.

    A result that has no `losses` may have a `loss_curve` of its own.
    """
    losses = getattr(result, "losses", None)
    if losses is None:
        curve: LossCurve | None = getattr(result, "loss_curve", None)
        return curve
    rows = np.asarray(losses, dtype=np.float32)
    buffer = io.BytesIO()
    np.save(buffer, rows, allow_pickle=False)
    write_atomically(run.path / "losses.npy", buffer.getvalue())
    return thinned(rows if rows.ndim == 1 else rows[:, 0], sha256_hex(buffer.getvalue()))


def thinned(total: np.ndarray[Any, Any], digest: str | None = None) -> LossCurve | None:
    """At most MOST_POINTS losses, evenly over the steps, the first and the last among them; None if there is none."""
    if not len(total) or not np.isfinite(total).all():
        return None
    chosen = np.unique(np.linspace(0, len(total) - 1, MOST_POINTS).round().astype(int))
    loss = tuple(float(f"{value:.6g}") for value in total[chosen])
    return LossCurve(steps=tuple(int(step) + 1 for step in chosen), loss=loss, sha256=digest)
