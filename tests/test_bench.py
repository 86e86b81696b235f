"""The benchmarks run: a few repeats of the quick ones, each renewing its own entry alone."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BENCH = [sys.executable, str(ROOT / "benchmarks" / "bench.py")]
NEEDED = {"ours_s", "peer_s", "ratio", "command", "machine", "date", "commit", "repeats"}


def bench(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*BENCH, *map(str, words)], capture_output=True, text=True, cwd=ROOT, check=False)


def test_a_benchmark_renews_its_own_entry_and_no_other(tmp_path):
    out = tmp_path / "results.json"
    out.write_text(json.dumps({"another": {"ours_s": 1.0}}))
    done = bench("platocast_help", "--small", "--out", out)
    found = json.loads(out.read_text())

    assert 0 == done.returncode, done.stderr
    assert {"another", "platocast_help"} == set(found)
    assert {"ours_s": 1.0} == found["another"]
    assert set(found["platocast_help"]) >= NEEDED
    assert 0 < found["platocast_help"]["ours_s"] < 10


@pytest.mark.skipif(not (ROOT.parent / "shared" / "tables").is_dir(), reason="the public tables are not beside us")
def test_the_starts_meet_one_optimum_and_are_compared_with_the_peer(tmp_path):
    out = tmp_path / "results.json"
    done = bench("chinchilla_starts", "--small", "--out", out)
    found = json.loads(out.read_text())["chinchilla_starts"]

    assert 0 == done.returncode, done.stderr
    assert found["ratio"] == pytest.approx(found["peer_s"] / found["ours_s"], rel=1e-2)
    assert found["largest_relative_gap"] < 1e-6
    assert found["objective"] <= 0.001018275


def test_a_name_that_is_no_benchmark_is_refused():
    done = bench("speed")

    assert 2 == done.returncode
    assert "there is no benchmark 'speed'; there are chinchilla_starts" in done.stderr


def test_the_shipped_results_say_when_where_and_on_what_commit_each_was_measured():
    found = json.loads((ROOT / "benchmarks" / "results.json").read_text())

    assert found.keys() >= {"chinchilla_starts", "chinchilla_bootstrap", "m4_curve", "fit_of_130_runs"}
    assert all(entry.keys() >= NEEDED for entry in found.values())
