"""Speed of the fitter on the Chinchilla table: `python benchmarks/fitting.py --table runs.csv`.

chinchilla_starts: the optimum out of the published 4,500 starts, against SciPy's L-BFGS with finite differences from
a sample of them, scaled up. chinchilla_bootstrap: robust refits from one warm start, against SciPy's BFGS with finite
differences, likewise. Times are processor seconds of one process; peers are run here, never copied from a paper.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import huber

from forecast.engine import Loss, minimise
from forecast.laws.law import Scale
from forecast.laws.registry import build_law

HUBER = Loss("huber", 1e-3)


def timed(work: Callable[[], object]) -> float:
    """Processor seconds of one call."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> None:
    """Run both benchmarks and add them to the results file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--peers", type=int, default=10, help="starts and refits that the peer does")
    parser.add_argument("--refits", type=int, default=4000)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results.json"))
    options = parser.parse_args()
    frame = pd.read_csv(options.table)
    frame = frame[frame.kept_by_epoch == 1]
    columns = {name: frame[name].to_numpy(float) for name in ("N", "D")}
    y = np.log(frame.loss.to_numpy(float))
    ranges = {k: (float(v.min()), float(v.max())) for k, v in columns.items()}
    law = replace(build_law("chinchilla", Scale(frame.loss.min(), frame.loss.max(), ranges=ranges)), link="log")
    logs = {k: np.log(v) for k, v in columns.items()}

    def objective(t: np.ndarray, weights: np.ndarray) -> float:
        a, b, e, alpha, beta = t
        parts = np.stack([a - alpha * logs["N"], b - beta * logs["D"], np.full(len(y), e)])
        return float(np.sum(weights * huber(1e-3, y - np.logaddexp.reduce(parts))))

    steps, shares = np.arange(0.0, 30.0, 5.0), np.arange(0.0, 2.5, 0.5)
    plain = np.array(list(itertools.product(steps, steps, np.arange(-1, 1.5, 0.5), shares, shares)))
    grid = plain.copy()
    grid[:, 3:] = np.log(np.maximum(grid[:, 3:], 1e-3))
    grid = np.clip(grid, law.lower, law.upper)
    ones = np.ones(len(y))
    found = {}

    def ours() -> None:
        total = HUBER.total(y - law.value(columns, grid), ones[None])
        found["starts"] = minimise(law, columns, y, ones, grid[np.argsort(total)[:6]], loss=HUBER, iterations=400)

    rng = np.random.default_rng(0)
    sample = plain[rng.choice(len(plain), options.peers, replace=False)]
    mine = timed(ours)
    peer = timed(lambda: [minimize(objective, s, args=(ones,), method="L-BFGS-B") for s in sample])
    optimum = found["starts"]
    results = {"chinchilla_starts": {"ours_s": mine, "peer_s": peer / options.peers * len(plain)}}
    drawn = rng.multinomial(len(y), ones / len(y), size=options.refits).astype(float)
    begin = np.tile(optimum.inner[optimum.best], (options.refits, 1))
    mine = timed(
        lambda: minimise(law, columns, y, drawn, begin, loss=HUBER, iterations=120, tolerance=1e-12, near=True)
    )
    outer = optimum.inner[optimum.best].copy()
    outer[3:] = np.exp(outer[3:])
    peer = timed(lambda: [minimize(objective, outer, args=(w,), method="BFGS") for w in drawn[: options.peers]])
    results["chinchilla_bootstrap"] = {"ours_s": mine, "peer_s": peer / options.peers * options.refits}
    for row in results.values():
        row["ratio"] = row["peer_s"] / row["ours_s"]
    known = json.loads(options.out.read_text()) if options.out.is_file() else {}
    options.out.write_text(json.dumps({**known, **results}, indent=1) + "\n")
    print(json.dumps(results, indent=1), "objective", HUBER.reported(float(optimum.loss.min())))


if __name__ == "__main__":
    main()
