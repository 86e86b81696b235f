"""What `platocast export --hub` makes of a registration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from forecast.commands_export import CLAIMS

if TYPE_CHECKING:
    from prereg.statement import TargetClaim

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Teach `export` to read registrations; the command itself is there already."""
    if _registered not in CLAIMS:
        CLAIMS.append(_registered)


def _registered(file: Path) -> tuple[Sequence[TargetClaim], str] | None:
    from prereg.entry import EntryName

    name = EntryName.parse(file.name)
    if name is None or name.kind != "register":
        return None
    from prereg.statement import find_registration

    statement = find_registration(file).statement
    return statement.targets, statement.metric.name
