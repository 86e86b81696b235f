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

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecast.engine import Loss, minimise, starts
from forecast.laws.law import Scale
from forecast.laws.registry import build_law

Array = npt.NDArray[np.float64]
LAWS = ("saturating-power", "shifted-power", "m4", "broken-power")
CUTS = (1.5, 2.1)


def extrapolated(name: str, n: Array, loss: Array, train: npt.NDArray[np.bool_], rng: np.random.Generator) -> Array:
    """Log loss at every n by one law fitted to the training points."""
    seen = {"n": (float(n[train].min()), float(n[train].max()))}
    scale = Scale(float(loss[train].min()), float(loss[train].max()), higher_is_better=False, ranges=seen)
    law = replace(build_law(name, scale), link="log")
    columns, y = {"n": n[train]}, np.log(loss[train])
    ones = np.ones(len(y))
    begin = starts(law, 64, rng)
    begin = begin[np.argsort(Loss().total(y - law.value(columns, begin), ones[None]))[:3]]
    found = minimise(law, columns, y, ones, begin, loss=Loss(), iterations=60, tolerance=1e-7)
    return law.value({"n": n}, found.inner[[found.best]])[0]


def curve_errors(n: Array, loss: Array, train: npt.NDArray[np.bool_], rng: np.random.Generator) -> dict[str, float]:
    """Test errors of one curve: each law's, that of the law chosen, and that of the weighted mean."""
    said = {name: extrapolated(name, n, loss, train, rng) for name in LAWS}
    squares: dict[str, list[float]] = {name: [] for name in LAWS}
    for cut in CUTS:
        early = train & (n <= n[train].max() / cut)
        late = train & ~early
        if early.sum() < 6 or not late.any():
            continue
        for name in LAWS:
            error = extrapolated(name, n, loss, early, rng)[late] - np.log(loss[late])
            squares[name].append(float(np.mean(error**2)))
    held = {name: float(np.mean(v)) if v else 1.0 for name, v in squares.items()}
    weights = {name: 1 / max(value, 1e-12) for name, value in held.items()}
    said["chosen"] = said[min(held, key=lambda name: held[name])]
    said["weighted"] = np.sum([weights[k] * said[k] for k in LAWS], axis=0) / sum(weights.values())
    return {k: float(np.sqrt(np.mean((v - np.log(loss))[~train] ** 2))) for k, v in said.items()}


def main() -> None:
    """Run every curve and print the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--most", type=int, default=None, help="only the first so many curves")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/m4_curves.json"))
    options = parser.parse_args()
    frame = pd.read_csv(options.table)
    rng, rows, begun = np.random.default_rng(0), [], time.process_time()
    for _, curve in list(frame.groupby(["Domain", "Task", "Model"]))[: options.most]:
        curve = curve.sort_values("Seen Examples")
        n, loss = curve["Seen Examples"].to_numpy(float), curve["Loss"].to_numpy(float)
        rows.append(curve_errors(n, loss, curve["Training"].to_numpy() == 1, rng))
    means = pd.DataFrame(rows).mean().to_dict()
    result = {"curves": len(rows), "cpu_s_per_curve": (time.process_time() - begun) / len(rows), "mean_rmse": means}
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
