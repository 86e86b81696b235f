"""`make bench`: speed of the fitter and the command, into benchmarks/results.json.

python benchmarks/bench.py [NAME ...] [--small] [--out benchmarks/results.json] [--tables ../shared/tables]

Each benchmark replaces its own entry and no other's. Times are processor seconds of one thread, so that a busy machine
changes them little; ours and a peer's are taken in turns, and the medians compared. Peers are run here, never copied
from a paper.
"""

# ruff: noqa: E402 - the number of threads is set before NumPy loads
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(variable, "1")

from bench_chinchilla import chinchilla_bootstrap, chinchilla_bootstrap_several, chinchilla_starts, peer_draws
from bench_tool import fit_of_100_000_runs, fit_of_130_runs, m4_curve, platocast_help
from measuring import ROOT, Measure, record

BENCHMARKS: Mapping[str, Callable[[Path, bool], Measure]] = {
    "chinchilla_starts": chinchilla_starts,
    "chinchilla_bootstrap": chinchilla_bootstrap,
    "chinchilla_bootstrap_several": chinchilla_bootstrap_several,
    "peer_draws": peer_draws,
    "m4_curve": m4_curve,
    "fit_of_130_runs": fit_of_130_runs,
    "fit_of_100_000_runs": fit_of_100_000_runs,
    "platocast_help": platocast_help,
}


def main() -> int:
    """Run the named benchmarks, or all; 2 for a name that is none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=", ".join(BENCHMARKS))
    parser.add_argument("--small", action="store_true", help="a few repeats of everything: does it run?")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results.json")
    parser.add_argument("--tables", type=Path, default=ROOT.parent / "shared" / "tables")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        print(f"there is no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    for name in options.names or BENCHMARKS:
        entry = record(name, BENCHMARKS[name](options.tables, options.small), options.out)
        told = "" if entry["peer_s"] is None else f", peer {entry['peer_s']} s, ratio {entry['ratio']}"
        print(f"{name}: {entry['ours_s']} s{told}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
