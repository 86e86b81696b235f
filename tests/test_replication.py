"""`make replicate SMOKE=1`: every step of the replication on tiny studies, and again over what is finished."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from prereg.verify import verify_log
from runner.study import load_study

ROOT = Path(__file__).parents[1]


def replicate(out: Path) -> subprocess.CompletedProcess[str]:
    """The script, with its results in `out`."""
    words = {"SMOKE": "1", "OUT": str(out), "JOBS": "1", "PLATOCAST": str(Path(sys.executable).with_name("platocast"))}
    command = ["bash", str(ROOT / "benchmarks" / "replicate.sh")]
    return subprocess.run(command, env=os.environ | words, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_replication_runs_from_nothing_and_again_repeats_nothing(tmp_path):
    out = tmp_path / "replication"
    first = replicate(out)
    assert first.returncode == 0, first.stderr[-2000:]
    files = {path: path.read_bytes() for path in out.rglob("*.json*") if "launched" not in path.parts}
    again = replicate(out)
    check = json.loads((out / "check.json").read_text())

    assert again.returncode == 0, again.stderr[-2000:]
    assert files == {path: path.read_bytes() for path in files}
    assert (4, 4) == (check["expected"], check["finished"])
    assert verify_log(out / "log").ok
    assert "<html" in (out / "index.html").read_text("utf-8")
    shutil.rmtree(out / "launched")


def test_the_pilot_ends_at_256_thousand_samples_and_repeats_every_design():
    study = load_study(ROOT / "data" / "studies" / "replication-pilot.toml")
    designs = study.all_designs()
    seeds = [len(study.seeds.of(design.settings)) for design in designs]

    assert 45 == len(designs)
    assert 256_000 == max(design.settings["n_samples"] for design in designs)
    assert 256 == max(d.settings["n_samples"] for d in designs) / min(d.settings["n_samples"] for d in designs)
    assert min(seeds) >= 2


def test_the_forecast_is_of_85_runs_of_designs_that_the_pilot_lacks():
    pilot = load_study(ROOT / "data" / "studies" / "replication-pilot.toml")
    targets = load_study(ROOT / "data" / "studies" / "replication-targets.toml").targets()
    beyond = [target for target in targets if target.design.settings["n_samples"] >= 4 * 256_000]

    assert 85 == sum(target.replicates for target in targets)
    assert not {design.hash for design in pilot.all_designs()} & {target.design.hash for target in targets}
    assert (20, {3}) == (len(beyond), {target.replicates for target in beyond})
    assert 1.0 in {target.design.settings["good_view_fraction"] for target in beyond}
