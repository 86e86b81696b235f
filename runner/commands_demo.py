"""The command `demo`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from forecast.console import note

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Register this command on `app`."""
    app.command("demo")(demo_command)


def demo_command(
    folder: Annotated[
        Path, typer.Option("--folder", help="Where the demo works; emptied first if a demo made it.")
    ] = Path("reports/demo"),
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Trainings at a time, one thread each.")] = 2,
    installed_in: Annotated[
        float | None, typer.Option("--installed-in", help="Seconds that the installation took, to print the split.")
    ] = None,
) -> None:
    """Run the whole loop on the shipped world: fit, register, train, check, report. About four minutes."""
    from runner.demo import run_demo

    started = time.monotonic()
    page = run_demo(folder, jobs=jobs)
    install = "" if installed_in is None else f"installation {installed_in:.0f} s, "
    note(f"\n{install}loop {time.monotonic() - started:.0f} s. Open {page}")
