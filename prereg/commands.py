"""The commands of the package `prereg`."""

from __future__ import annotations

import typer

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Register this package's commands on `app`."""
