"""The commands of the package `prereg`: a list of the modules that hold them."""

from __future__ import annotations

import typer

import prereg.commands_check
import prereg.commands_export
import prereg.commands_log
import prereg.commands_register
import prereg.commands_report

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Register this package's commands on `app`."""
    prereg.commands_register.add_to(app)
    prereg.commands_log.add_to(app)
    prereg.commands_check.add_to(app)
    prereg.commands_report.add_to(app)
    prereg.commands_export.add_to(app)
