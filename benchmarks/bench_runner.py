"""How fast the runner is: `status` of 1,000 runs, `collect` of 10,000 folders, and on SLURM `launch` of 1,000.

python benchmarks/bench_runner.py [--slurm PARTITION]; needs nothing but a temporary folder (and SLURM on PATH).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from forecast.files import canonical_json
from forecast.records import Run
from runner.attempt import now
from runner.collect import collect
from runner.launch import Placing, launch
from runner.presets import ExecutorChoice, Preset
from runner.spec import JobSpec, run_folder
from runner.status import read_status


def specs(count: int) -> list[JobSpec]:
    """So many runs of a design that no training knows."""
    return [
        JobSpec.model_validate(
            {"run_id": f"bench-{k:05d}", "study": "bench", "design": {"settings": {"n_samples": 1000 + k}}, "seed": 0}
            | {"entry": "time:time"}
        )
        for k in range(count)
    ]


def finished(folder: Path, count: int, items: int = 300) -> None:
    """A launch folder of finished runs, each with `items` per-item hits and one attempt."""
    for spec in specs(count):
        value = {"metric": {"name": "m"}, "value": 0.5, "hits": [1, 0] * (items // 2), "trials": 1}
        fields = spec.failed("-").model_dump(mode="json") | {"status": "finished", "failure": None}
        run = Run.model_validate(fields | {"evaluations": [value]})
        files = run_folder(folder, spec.run_id)
        (files.path / "attempts").mkdir(parents=True)
        files.spec.write_bytes(canonical_json(spec.model_dump(mode="json")))
        files.outcome.write_text(run.model_dump_json(indent=1))
        attempt = {"number": 1, "status": "finished", "host": "h", "pid": 1, "created": 0, "job_id": "1", "gpus": 0}
        files.attempt(1).write_text(json.dumps(attempt | {"started": now(), "ended": now(), "reason": None}))


def line(what: str, action: object) -> str:
    """What was done, and the seconds of it."""
    return "{:27}{:6.2f} s wall {:6.2f} s cpu".format(what, *seconds(action))


def seconds(action: object) -> tuple[float, float]:
    """Wall and CPU seconds of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    action()  # type: ignore[operator]
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    """Print one line a measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slurm", metavar="PARTITION", help="also launch 1,000 runs there (they fail at once)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        finished(folder / "status", 1000)
        print(line("status of 1,000 runs", lambda: read_status(folder / "status")))
        finished(folder / "collect", 10_000)
        ledger = folder / "runs.jsonl"
        print(line("collect of 10,000 folders", lambda: collect(folder / "collect", ledger)))
        print(line("collect, nothing new", lambda: collect(folder / "collect", ledger)))
        if given.slurm:
            place = Placing(ExecutorChoice(), Preset(partition=given.slurm, time_min=5))
            print(line("launch of 1,000 on SLURM", lambda: launch(specs(1000), folder / "l", place)))
            print(line("status of these", lambda: read_status(folder / "l")))


if __name__ == "__main__":
    main()
