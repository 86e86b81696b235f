"""`make calibration`: coverage of every interval method, and of the peer's, in simulated studies, written as JSON.

python benchmarks/calibration.py [--until 16:00] [--rounds 20] [--parts build/calibration.jsonl]

Works in rounds over all worlds. What a round finds is appended to the file of parts at once, and never measured again:
a run that is stopped goes on where it was. Each round has its own seed, so the result does not depend on stops.
The peer, simple-scaling-laws, is fetched into a folder outside the checkout.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from coverage_users import USERS, rows_of
from coverage_worlds import worlds
from peers import use_peers

from forecast.calibration import World, measure_coverage, simulated_runs
from forecast.intervals import METHODS

Row = dict[str, Any]
KEYS = ("world", "method", "target", "nominal")
STUDIES = {"profile": 400, "delta": 400, "auto": 8, "peer, its link": 3, "peer, no link": 3}
BOOTSTRAPPED = 12
FIRST_ONLY = ("profile", "delta")  # measured in full in the first round


def measured(world: World, index: int, method: str, turn: int) -> list[Row]:
    """One part: a method in a world in a round. Methods see the same studies, the slow ones the first of them."""
    runs = simulated_runs(world, STUDIES["profile"], np.random.default_rng([7, index, turn]))
    runs = runs[: STUDIES.get(method, BOOTSTRAPPED)]
    rng = np.random.default_rng([8, index, turn])
    if method in USERS:
        said = np.stack([USERS[method](world, one, rng) for one in runs])
        return rows_of(world, method, said)
    found = measure_coverage(world, worlds=len(runs), rng=rng, methods=(method,), runs=runs)
    return [row.model_dump() for row in found]


def pooled(parts: list[Row]) -> list[Row]:
    """Parts of one world, method, target and level as one row: mean coverage and mean width over the studies."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in parts:
        groups.setdefault(tuple(row[key] for key in KEYS), []).append(row)
    out = []
    for key, rows in groups.items():
        studies = [row["worlds"] for row in rows]
        mean = {name: float(np.average([r[name] for r in rows], weights=studies)) for name in ("coverage", "width")}
        out.append({**dict(zip(KEYS, key, strict=True)), **mean, "worlds": sum(studies)})
    return out


def run(
    some: list[World], rounds: int, path: Path, methods: tuple[str, ...], stop: Callable[[], bool] = lambda: False
) -> list[Row]:
    """Every part that is not in the file yet, round by round, until told to stop; the pooled rows of all parts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
    done = {(p["index"], p["method"], p["turn"]) for p in known}
    for turn in range(rounds):
        for index, world in enumerate(some):
            for method in methods:
                if (index, method, turn) in done or (turn and method in FIRST_ONLY):
                    continue
                if method.startswith("peer") and "g" in world.law.predictors:
                    continue
                if stop():
                    return pooled([row for part in known for row in part["rows"]])
                part = {"index": index, "method": method, "turn": turn, "rows": measured(world, index, method, turn)}
                known.append(part)
                with path.open("a") as file:
                    file.write(json.dumps(part) + "\n")
    return pooled([row for part in known for row in part["rows"]])


def main() -> None:
    """Measure until done or told to stop, and write the pooled rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--until", default=None, help="clock time at which to stop, such as 16:00")
    parser.add_argument("--parts", type=Path, default=Path("build/calibration.jsonl"))
    parser.add_argument("--no-peer", action="store_true", help="leave simple-scaling-laws out")
    parser.add_argument("--out", type=Path, default=Path("reports/calibration.json"))
    options = parser.parse_args()
    methods = (*METHODS, "auto")
    if not options.no_peer:
        use_peers()
        methods = (*methods, "peer, its link", "peer, no link")
    end = None
    if options.until:
        hour, minute = (int(part) for part in options.until.split(":"))
        end = datetime.now().replace(hour=hour, minute=minute, second=0)
    begun = time.perf_counter()
    rows = run(worlds(), options.rounds, options.parts, methods, lambda: end is not None and datetime.now() >= end)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"{len(rows)} rows after {time.perf_counter() - begun:.0f} s in {options.out}")


if __name__ == "__main__":
    main()
