"""The commands of the package `forecast`: a list of the modules that hold them."""

from __future__ import annotations

import typer

import forecast.commands_data
import forecast.commands_export
import forecast.commands_fit
import forecast.commands_plan
import forecast.commands_predict
import forecast.commands_report

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Register this package's commands on `app`."""
    forecast.commands_data.add_to(app)
    forecast.commands_fit.add_to(app)
    forecast.commands_predict.add_to(app)
    forecast.commands_plan.add_to(app)
    forecast.commands_report.add_to(app)
    forecast.commands_export.add_to(app)
