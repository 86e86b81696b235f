"""The command that writes reports: which page belongs to a file is decided by the file's format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forecast.console import note, working
from forecast.errors import ForecastError

if TYPE_CHECKING:
    from forecast.page import Page

__all__ = ["PAGES", "add_to", "page_of"]

Builder = Callable[[Path, dict[str, Any]], "Page"]

PAGES: dict[str, Builder] = {}
"""Per format ("platocast-fit-1") what builds its page from the file and the command's options.

The packages above add theirs.
"""


def add_to(app: typer.Typer) -> None:
    """Register `report` on `app`."""
    app.command("report")(report_command)
    PAGES.setdefault("platocast-fit-1", _fit_page)


def report_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A fit (fit.json) or a check (check.json).")],
    out: Annotated[Path, typer.Option("--out", help="Where to write the page.")] = Path("index.html"),
    runs: Annotated[
        Path | None, typer.Option("--runs", help="The runs, to be drawn one by one: a ledger, a store or a table.")
    ] = None,
    fit: Annotated[Path | None, typer.Option("--fit", help="For a check: the fit that was registered.")] = None,
    log: Annotated[Path | None, typer.Option("--log", help="For a check: the log that holds the registration.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draws behind the bands.")] = 0,
) -> None:
    """Write a fit or a check as one self-contained HTML page; it opens without a network."""
    from forecast.files import write_atomically

    with working("drawing the page"):
        text = page_of(file, runs=runs, fit=fit, log=log, seed=seed).html().encode()
    write_atomically(out, text)
    note(f"wrote {out} ({len(text) / 1e6:.1f} MB); open it in a browser")


def page_of(file: Path, **options: Any) -> Page:
    """The page of a fit's or a check's file; options: runs, fit, log, seed as the command takes them."""
    kind = _format(file)
    if kind not in PAGES:
        raise ForecastError(f"{file} is a {kind}; there are reports of {', '.join(sorted(PAGES))}")
    return PAGES[kind](file, options)


def _format(file: Path) -> str:
    try:
        found = json.loads(file.read_bytes())
    except OSError as error:
        raise ForecastError(f"{file}: cannot be read ({error.strerror}); give fit.json or check.json") from error
    except ValueError as error:
        raise ForecastError(f"{file} is not JSON ({error}); give fit.json or check.json") from error
    kind = found.get("format") if isinstance(found, dict) else None
    if not isinstance(kind, str):
        raise ForecastError(f"{file} states no format; give a file that `platocast fit` or `platocast check` wrote")
    return kind


def _fit_page(file: Path, options: dict[str, Any]) -> Page:
    import numpy as np

    from forecast.fitted import Fit
    from forecast.reading import read_runs
    from forecast.report import fit_page

    runs = None if options["runs"] is None else read_runs(options["runs"])
    return fit_page(Fit.load(file), runs, rng=np.random.default_rng(options["seed"]), source=file.name)
