"""The whole loop on the shipped world: each step is a command that a user could type, run and timed."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from forecast.console import note
from forecast.content import content_path
from forecast.errors import CheckFailed, ForecastError

__all__ = ["CLAIM", "METRIC", "run_demo"]

METRIC = "mutual_knn_unseen"
CLAIM = "On the glyph world, alignment on unseen scenes follows the fitted law of good-view fraction and samples."


def run_demo(folder: Path, *, jobs: int) -> Path:
    """Run the loop in `folder`, which is emptied first; the report's path.

    Raises ForecastError if `folder` holds anything that a demo did not make, CheckFailed if a step fails.
    """
    _empty(folder)
    _make_key(folder / "demo-key")
    ledger, store, log = folder / "runs.jsonl", folder / "runs.duckdb", folder / "log"
    fit, targets, check, page = (folder / name for name in ("fit.json", "targets.json", "check.json", "index.html"))
    entry, key = log / "0002-register.json", folder / "demo-key"
    pilot, study = content_path("runs/glyphs-quick.jsonl"), content_path("studies/glyphs-demo.toml")
    signers = folder / "allowed_signers"
    steps: list[tuple[str, list[Sequence[str | Path]]]] = [
        (
            "Load the shipped ledger of real runs into a DuckDB store",
            [
                ["import", pilot, "--ledger", ledger, "--store", store, "--yes"],
                ["runs", store, "--metric", METRIC],
            ],
        ),
        ("Fit a law of alignment", [["fit", store, "--metric", METRIC, "--out", fit]]),
        (
            "Forecast runs that do not exist, and sign the forecast",
            [
                ["targets", study, "--out", targets],
                [
                    *("register", fit, targets, "--log", log, "--key", key, "--author", "platocast demo"),
                    *("--claim", CLAIM, "--known", ledger, "--access", "pilot", "--yes"),
                ],
                ["verify", log, "--allowed-signers", signers],
            ],
        ),
        (
            f"Run them: real training, {jobs} at a time",
            [
                ["launch", entry, "--folder", folder / "launch", "--jobs", str(jobs), "--key", key],
                ["status", folder / "launch"],
            ],
        ),
        (
            "Collect, and check the forecast against outcomes and seed noise",
            [
                ["collect", folder / "launch", "--ledger", ledger],
                [
                    *("check", entry, "--ledger", ledger, "--allowed-signers", signers),
                    *("--resolve", "--key", key, "--out", check),
                ],
                ["verify", log, "--allowed-signers", signers, "--ledger", ledger, "--data", pilot],
            ],
        ),
        ("Write the page", [["report", check, "--log", log, "--fit", fit, "--runs", ledger, "--out", page]]),
    ]
    for number, (title, commands) in enumerate(steps, 1):
        started = time.monotonic()
        note(f"\n[{number}/{len(steps)}] {title}")
        for command in commands:
            _run(command)
            if command[0] == "register":
                _trust(key, signers)
        note(f"      {time.monotonic() - started:.0f} s")
    return page


def _empty(folder: Path) -> None:
    """Remove what an earlier demo left; a folder without the demo's mark is not ours to remove."""
    mark = folder / ".platocast-demo"
    if folder.exists():
        if not mark.is_file() and any(folder.iterdir()):
            raise ForecastError(f"{folder} exists and was not made by a demo; name another with --folder")
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    mark.touch()


def _make_key(path: Path) -> None:
    note(f"A throw-away SSH key for this demo only: {path} (use your own for a real registration)")
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "platocast demo, throw-away", "-f", str(path)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ForecastError(f"ssh-keygen could not make a key: {error}; install openssh-client") from error


def _trust(key: Path, signers: Path) -> None:
    """The verifier's own list of keys; a real verifier gets it from elsewhere than the log."""
    kind, blob = key.with_suffix(".pub").read_text("ascii").split()[:2]
    signers.write_text(f'"platocast demo" {kind} {blob}\n', "utf-8")


def _run(command: Sequence[str | Path]) -> None:
    """One command in a process of its own, as from a shell; its output goes where ours goes."""
    words = [str(word) for word in command]
    note(f"$ platocast {shlex.join(words)}")
    done = subprocess.run([sys.executable, "-P", "-m", "runner", *words], check=False)
    if done.returncode:
        raise CheckFailed(f"the demo stopped: 'platocast {words[0]}' ended with exit code {done.returncode}")
