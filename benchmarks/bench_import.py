"""Import of a million rows: seconds and memory. Run: python benchmarks/bench_import.py [ROWS]."""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from forecast.importing.importer import import_file


def write_table(path: Path, rows: int) -> None:
    """A table as a large study exports it: ids, two variables, seeds, three settings, two scores."""
    draw = random.Random(0)
    with open(path, "w", encoding="utf-8") as file:
        file.write("run_id,good_view_fraction,n_samples,seed,width,objective,eval/knn,eval/r_at_1\n")
        for i in range(rows):
            share, count = draw.choice((0, 0.25, 0.5, 0.75, 1)), 8000 * draw.randint(1, 64)
            scores = f"{draw.random():.6f},{draw.random():.6f}"
            file.write(f"run-{i},{share},{count},{i % 7},{draw.choice((64, 128))},lejepa,{scores}\n")


def main() -> None:
    """Print what a first import, a second one and their memory take."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        table, ledger = Path(folder) / "table.csv", Path(folder) / "runs.jsonl"
        write_table(table, rows)
        for what in ("first import", "second import of the same table"):
            wall, processor = time.perf_counter(), time.process_time()
            result = import_file(table, ledger)
            wall, processor = time.perf_counter() - wall, time.process_time() - processor
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            print(f"{what}: {result.added:,} added, {result.known:,} known, {wall:.1f} s, {processor:.1f} s of CPU")
        print(f"peak memory: {peak:.2f} GB")


if __name__ == "__main__":
    main()
