"""`data/coverage.json` from `reports/calibration.json`: what `platocast predict` says of its intervals' coverage.

python benchmarks/coverage_table.py [--calibration reports/calibration.json] [--out data/coverage.json]

One row per interval method, distance (4 or 10 times the data) and whether the law failed (a deviation drawn per
design): over the simulated worlds, the lowest and the middle share of studies whose 95 % interval for the curve held
the truth, and the number of worlds and studies.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

NOMINAL = 0.95


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The table of the measured rows (world, method, target, nominal, coverage, worlds)."""
    groups: dict[tuple[str, int, bool], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        distance = str(row["target"]).split("x")[0]
        if row["nominal"] == NOMINAL and distance in ("4", "10"):
            groups[row["method"], int(distance), "lack of fit" in row["world"]].append(row)
    table = [
        {
            "method": method,
            "factor": factor,
            "lack_of_fit": lack,
            "lowest": min(row["coverage"] for row in found),
            "middle": statistics.median(row["coverage"] for row in found),
            "worlds": len({row["world"] for row in found}),
            "studies": sum(row["worlds"] for row in found),
        }
        for (method, factor, lack), found in sorted(groups.items())
    ]
    return {"nominal": NOMINAL, "source": "reports/calibration.json", "rows": table}


def main() -> None:
    """Read the measured coverage, write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calibration", type=Path, default=Path("reports/calibration.json"))
    parser.add_argument("--out", type=Path, default=Path("data/coverage.json"))
    options = parser.parse_args()
    table = summary(json.loads(options.calibration.read_text()))
    options.out.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
