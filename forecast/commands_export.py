"""The command that writes charts, tables and predictions as files for other tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forecast.commands_report import page_of
from forecast.console import note
from forecast.errors import ForecastError

if TYPE_CHECKING:
    from forecast.hub import Claim

__all__ = ["CLAIMS", "add_to"]

CLAIMS: list[Callable[[Path], tuple[Sequence[Claim], str] | None]] = []
"""Readers that give a file's predictions and their metric, or None; the packages above add theirs."""


def add_to(app: typer.Typer) -> None:
    """Register `export` on `app`."""
    app.command("export")(export_command)


def export_command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="fit.json or check.json; with --hub predictions or a registration.")
    ],
    out: Annotated[Path, typer.Option("--out", help="The folder to write into; with --hub the hub's folder.")],
    formats: Annotated[
        list[str] | None, typer.Option("--format", help="png, svg, vl.json, csv or parquet; repeat; default all.")
    ] = None,
    runs: Annotated[Path | None, typer.Option("--runs", help="For a fit: its runs, to be drawn one by one.")] = None,
    fit: Annotated[Path | None, typer.Option("--fit", help="For a check: the fit that was registered.")] = None,
    log: Annotated[Path | None, typer.Option("--log", help="For a check: the log that holds the registration.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draws behind the bands.")] = 0,
    hub: Annotated[
        bool, typer.Option("--hub", help="Write predictions in the hubverse's model-output layout instead.")
    ] = False,
    model: Annotated[str, typer.Option("--model", help="With --hub: TEAM-MODEL.")] = "platocast-law",
    round_id: Annotated[
        str | None, typer.Option("--round", help="With --hub: the round's id, a date or a word.")
    ] = None,
    metric: Annotated[str, typer.Option("--metric", help="With --hub and predictions: what they are of.")] = "outcome",
) -> None:
    """Write every chart (PNG, SVG, Vega-Lite) and table (CSV, Parquet) of a fit or a check; or a hub's file."""
    if hub:
        from forecast.hub import hub_rows, write_hub

        if round_id is None:
            raise ForecastError("--hub needs --round: a date (YYYY-MM-DD) or a word")
        claims, name = _claims(file, metric)
        note(f"wrote {write_hub(hub_rows(claims, name), out, model=model, round_id=round_id)}")
        return
    from forecast.exporting import FORMATS, export

    page = page_of(file, runs=runs, fit=fit, log=log, seed=seed)
    written = export(page, out, formats or FORMATS)
    note(f"wrote {len(written)} files to {out}")


def _claims(file: Path, metric: str) -> tuple[Sequence[Claim], str]:
    for reader in CLAIMS:
        found = reader(file)
        if found is not None:
            return found
    from pydantic import TypeAdapter, ValidationError

    from forecast.records import Prediction

    try:
        return TypeAdapter(list[Prediction]).validate_json(file.read_bytes()), metric
    except OSError as error:
        raise ForecastError(f"{file}: cannot be read ({error.strerror}); give what `predict --out` wrote") from error
    except (ValidationError, json.JSONDecodeError) as error:
        raise ForecastError(
            f"{file} holds no predictions; give what `predict --out` wrote, or a registration"
        ) from error
