"""How long a log of many entries takes to verify, and how much memory: python benchmarks/log.py [ENTRIES]."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from test_reliability import long_log

from prereg.verify import verify_log


def main() -> None:
    """Write a log, verify it, print seconds and peak memory."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        log = long_log(Path(folder), count)
        written = time.perf_counter()
        report = verify_log(log)
        done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{count} entries: written in {written - started:.1f} s, verified in {done - written:.1f} s, ok={report.ok}")
    print(f"peak memory of the process {peak:.0f} MB")


if __name__ == "__main__":
    main()
