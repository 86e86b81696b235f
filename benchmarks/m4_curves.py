"""Extrapolating the learning curves of the M4 benchmark: `python benchmarks/m4_curves.py --table benchmark.vision.csv`.

Every law is fitted to a curve's official training part on the log scale, the laws are weighted by the inverse square
of their error beyond 1/1.5 and 1/2.1 of it, and the root mean square error of the log loss on the official test part
is averaged over the curves. Published with the benchmark: M1 0.1046, M2 0.0823, M3 0.0615, M4 0.0415.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecast.engine import Loss, minimise, starts
from forecast.laws.law import Scale
from forecast.laws.registry import build_law

Array = npt.NDArray[np.float64]
LAWS = ("saturating-power", "shifted-power", "m4", "broken-power")
CUTS = (1.5, 2.1)
POLISHED = 3


def extrapolated(name: str, n: Array, loss: Array, windows: Array, rng: np.random.Generator) -> Array:
    """Log loss (windows, rows) at every n by one law, fitted in each window: weights (windows, rows), 0 outside.

    All windows are one batch, as in the backtests of `platocast fit`: the law's start ranges are those of the largest.
    """
    train = windows[0] > 0
    seen = {"n": (float(n[train].min()), float(n[train].max()))}
    scale = Scale(float(loss[train].min()), float(loss[train].max()), higher_is_better=False, ranges=seen)
    law = replace(build_law(name, scale), link="log")
    columns, y, weights = {"n": n[train]}, np.log(loss[train]), windows[:, train]
    begin = starts(law, 64, rng)
    squares = (y - law.value(columns, begin)) ** 2
    total = weights @ np.where(np.isfinite(squares), squares, 1e12).T
    first = begin[np.argsort(total, axis=1)[:, :POLISHED]]
    found = minimise(
        law,
        columns,
        y,
        np.repeat(weights, POLISHED, axis=0),
        first.reshape(-1, first.shape[2]),
        loss=Loss(),
        iterations=60,
        tolerance=1e-7,
    )
    best = np.argmin(found.loss.reshape(-1, POLISHED), axis=1) + POLISHED * np.arange(len(windows))
    return law.value({"n": n}, found.inner[best])


def curve_errors(n: Array, loss: Array, train: npt.NDArray[np.bool_], rng: np.random.Generator) -> dict[str, float]:
    """Test errors of one curve: each law's, that of the law chosen, and that of the weighted mean."""
    parts = [train & (n <= n[train].max() / cut) for cut in CUTS]
    parts = [early for early in parts if early.sum() >= 6 and (train & ~early).any()]
    windows = np.array([train, *parts], dtype=np.float64)
    every = {name: extrapolated(name, n, loss, windows, rng) for name in LAWS}
    said = {name: values[0] for name, values in every.items()}
    held = {}
    for name, values in every.items():
        errors = [(v - np.log(loss))[train & ~early] for v, early in zip(values[1:], parts, strict=True)]
        held[name] = float(np.mean([np.mean(e**2) for e in errors])) if errors else 1.0
    weights = {name: 1 / max(value, 1e-12) for name, value in held.items()}
    said["chosen"] = said[min(held, key=lambda name: held[name])]
    said["weighted"] = np.sum([weights[k] * said[k] for k in LAWS], axis=0) / sum(weights.values())
    return {k: float(np.sqrt(np.mean((v - np.log(loss))[~train] ** 2))) for k, v in said.items()}


def measured(table: Path, most: int | None = None) -> dict[str, Any]:
    """Seconds a curve and mean errors over the curves of a table, or over the first so many."""
    frame = pd.read_csv(table)
    rng, rows, begun = np.random.default_rng(0), [], time.process_time()
    for _, curve in list(frame.groupby(["Domain", "Task", "Model"]))[:most]:
        curve = curve.sort_values("Seen Examples")
        n, loss = curve["Seen Examples"].to_numpy(float), curve["Loss"].to_numpy(float)
        rows.append(curve_errors(n, loss, curve["Training"].to_numpy() == 1, rng))
    means = pd.DataFrame(rows).mean().to_dict()
    return {"curves": len(rows), "cpu_s_per_curve": (time.process_time() - begun) / len(rows), "mean_rmse": means}


def main() -> None:
    """Run every curve and print the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--most", type=int, default=None, help="only the first so many curves")
    print(json.dumps(measured(**vars(parser.parse_args())), indent=1))


if __name__ == "__main__":
    main()
