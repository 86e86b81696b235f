"""Wait for the runs of a folder, with a progress bar on a terminal and in silence elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from runner.living import Ask
from runner.slurm_queue import Patient
from runner.status import FolderStatus, clock, read_status

__all__ = ["clock", "wait_for", "watch"]


def wait_for(folder: Path, *, pause: Callable[[float], None] = time.sleep) -> FolderStatus:
    """Return when no living job is left; the last status. Jobs do not notice if this is interrupted."""
    ask = Patient()
    if not sys.stderr.isatty():
        while True:
            began = time.monotonic()
            status = read_status(folder, ask=ask)
            if not status.active:
                return status
            pause(max(0.5, 10 * (time.monotonic() - began)))
    return _with_bar(folder, pause, ask)


def _with_bar(folder: Path, pause: Callable[[float], None], ask: Ask) -> FolderStatus:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[text]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("runs", total=None, text="starting")
        while True:
            began = time.monotonic()
            status = read_status(folder, ask=ask)
            counts = status.counts()
            done = counts["finished"] + counts["failed"]
            part = sum(run.progress or 0 for run in status.runs if run.state == "running")
            eta = "" if status.eta_s is None else f", {clock(status.eta_s)} left"
            text = f"{counts['running']} running, {counts['failed']} failed{eta}"
            bar.update(task, total=len(status.runs), completed=round(done + part, 2), text=text)
            if not status.active:
                return status
            pause(max(1.0, 10 * (time.monotonic() - began)))


def watch(folder: Path, show: Callable[[FolderStatus], object], *, pause: Callable[[float], None] = time.sleep) -> None:
    """Show the folder's status on the terminal again and again until no job lives; `show` makes what is shown."""
    from rich.console import Console
    from rich.live import Live

    ask = Patient()
    with Live(console=Console(stderr=True), auto_refresh=False) as live:
        while True:
            began = time.monotonic()
            status = read_status(folder, ask=ask)
            live.update(show(status), refresh=True)  # type: ignore[arg-type]
            if not status.active:
                return
            pause(max(1.0, 10 * (time.monotonic() - began)))
