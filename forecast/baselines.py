"""Forecasts without a law: what any law must beat."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from forecast.laws.law import Columns

__all__ = ["BASELINES", "Baseline", "constant_per_g", "nearest_design"]

Array = npt.NDArray[np.float64]
TIES = 8  # designs at the same distance that are averaged
Baseline = Callable[[Columns, Array, Array, Columns], Array]


def constant_per_g(columns: Columns, means: Array, counts: Array, targets: Columns) -> Array:
    """The mean outcome of each g, whatever n, linear between the g seen; without g the mean of all."""
    rows = len(next(iter(targets.values())))
    if "g" not in columns:
        return np.full(rows, float(np.average(means, weights=counts)))
    levels = np.unique(columns["g"])
    per_level = [np.average(means[columns["g"] == v], weights=counts[columns["g"] == v]) for v in levels]
    return np.asarray(np.interp(targets["g"], levels, per_level))


def nearest_design(columns: Columns, means: Array, counts: Array, targets: Columns) -> Array:
    """The mean outcome of the nearest design: each column scaled to its range, positive ones in logarithms."""
    del counts
    from scipy.spatial import cKDTree

    seen, asked = [], []
    for name, values in columns.items():
        wanted = targets[name]
        if name != "g" and values.min() > 0 and wanted.min() > 0:
            values, wanted = np.log(values), np.log(wanted)
        span = float(np.ptp(values)) or 1.0
        seen.append(values / span)
        asked.append(wanted / span)
    near = min(TIES, len(means))
    found = cKDTree(np.column_stack(seen)).query(np.column_stack(asked), k=near)
    distance, index = (np.asarray(part).reshape(-1, near) for part in found)
    tied = distance <= distance[:, :1] * (1 + 1e-9) + 1e-9
    return np.asarray((tied * means[index]).sum(axis=1) / tied.sum(axis=1))


BASELINES: Mapping[str, Baseline] = {"constant-per-g": constant_per_g, "nearest-design": nearest_design}
