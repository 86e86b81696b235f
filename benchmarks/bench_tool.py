"""The command as a user meets it: its help, a fit of 130 runs, big tables, and the curves of the M4 benchmark."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import m4_curves
import numpy as np
from measuring import Measure, command

from forecast.records import Design, Evaluation, Metric, Run

KNN = Metric(name="mutual_knn", chance=10 / 299, lower=0.0, upper=1.0)
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
PLATOCAST = (sys.executable, "-m", "runner")


def platocast_help(tables: Path, small: bool) -> Measure:
    """`platocast --help`."""
    repeats = 1 if small else 9
    seconds = [command([*PLATOCAST, "--help"]) for _ in range(repeats)]
    wall, processor = (statistics.median(s[k] for s in seconds) for k in (0, 1))
    return Measure(processor, repeats=repeats, found={"wall_s": wall, "aim_s": 0.3})


def write_ledger(path: Path, designs: int, replicates: int) -> None:
    """Runs of a Hill curve in effective samples at as many sizes as it takes, at five good-view fractions."""
    rng = np.random.default_rng(0)
    sizes = 8e3 * np.geomspace(1, 64, -(-designs // len(SHARES)))
    with path.open("w") as file:
        for i in range(designs):
            n, g = float(np.round(sizes[i // len(SHARES)])), SHARES[i % len(SHARES)]
            truth = 10 / 299 + 0.087 / (1 + (3e5 / (n * (g + 0.1 * (1 - g)))) ** 0.9)
            for k in range(replicates):
                run = Run(
                    run_id=f"r{i}-{k}",
                    design=Design(settings={"n_samples": n, "good_view_fraction": g}),
                    seed=k,
                    status="finished",
                    evaluations=(Evaluation(metric=KNN, value=truth + float(rng.normal(0, 0.002))),),
                )
                file.write(run.model_dump_json() + "\n")


def fit_of_130_runs(tables: Path, small: bool) -> Measure:
    """`platocast fit` on 65 designs of two runs: every law of alignment, intervals, backtests."""
    repeats = 1 if small else 3
    with tempfile.TemporaryDirectory() as name:
        ledger, out = Path(name) / "runs.jsonl", Path(name) / "fit.json"
        write_ledger(ledger, 10 if small else 65, 2)
        words = [*PLATOCAST, "fit", str(ledger), "--metric", "mutual_knn", "--out", str(out)]
        seconds = [command(words) for _ in range(repeats)]
        rows = json.loads(out.read_text())["candidates"]
    wall, processor, peak = (statistics.median(s[k] for s in seconds) for k in (0, 1, 2))
    laws = sum(row["kind"] == "law" for row in rows)
    return Measure(
        processor, repeats=repeats, found={"wall_s": wall, "peak_mb": round(peak), "laws": laws, "aim_s": 10}
    )


def fit_of_100_000_runs(tables: Path, small: bool) -> Measure:
    """`platocast fit` on 10,000, 30,000 and 100,000 runs, ten of each design: does time grow with the runs?"""
    sizes = (100, 300) if small else (10_000, 30_000, 100_000)
    rows = {}
    with tempfile.TemporaryDirectory() as name:
        ledger, out = Path(name) / "runs.jsonl", Path(name) / "fit.json"
        for size in sizes:
            write_ledger(ledger, size // 10, 10)
            words = [*PLATOCAST, "fit", str(ledger), "--metric", "mutual_knn", "--out", str(out)]
            wall, processor, peak = command(words)
            rows[str(size)] = {"processor_s": round(processor, 2), "wall_s": round(wall, 2), "peak_mb": round(peak)}
    first, last = rows[str(sizes[0])]["processor_s"], rows[str(sizes[-1])]["processor_s"]
    growth = float(np.log(last / first) / np.log(sizes[-1] / sizes[0]))
    return Measure(last, found={"runs": rows, "exponent": round(growth, 3), "aim": "exponent <= 1, < 1000 MB"})


def m4_curve(tables: Path, small: bool) -> Measure:
    """One image-classification curve of the M4 benchmark, every law with its backtest; M4's authors need 11 s."""
    begun = time.process_time()
    result = m4_curves.measured(tables / "google_m4_benchmark" / "benchmark.vision.csv", 2 if small else None)
    seconds = (time.process_time() - begun) / result["curves"]
    found = {"curves": result["curves"], "mean_rmse": result["mean_rmse"], "aim_s": 0.1, "m4_published_rmse": 0.0415}
    return Measure(seconds, found=found)
