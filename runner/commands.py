"""The commands of the package `runner`."""

from __future__ import annotations

import typer

import runner.commands_demo
import runner.commands_jobs
import runner.commands_launch
import runner.commands_world

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Register this package's commands on `app`."""
    runner.commands_launch.add_to(app)
    runner.commands_jobs.add_to(app)
    runner.commands_demo.add_to(app)
    runner.commands_world.add_to(app)
