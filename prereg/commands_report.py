"""What `platocast report` makes of a check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from forecast.commands_report import PAGES
from forecast.errors import ForecastError

if TYPE_CHECKING:
    from forecast.page import Page

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Teach `report` the format of a check; the command itself is there already."""
    PAGES.setdefault("platocast-check-1", _check_page)


def _check_page(file: Path, options: dict[str, Any]) -> Page:
    import numpy as np

    from forecast.files import sha256_hex
    from forecast.fitted import Fit
    from prereg.check import Check
    from prereg.report_check import check_page
    from prereg.resolving import signed_in
    from prereg.statement import find_registration
    from prereg.verify import examine_log

    check, log = Check.load(file), options["log"]
    if log is None:
        raise ForecastError("a check's report shows what was registered; give the log's folder with --log LOG")
    registration = find_registration(check.registration, log=log)
    fit = None
    if options["fit"] is not None:
        found = sha256_hex(Path(options["fit"]).read_bytes()) if Path(options["fit"]).is_file() else "no file"
        if found != registration.statement.fit.file_hash:
            wanted = registration.statement.fit.file_hash
            raise ForecastError(
                f"{options['fit']} is not the fit that was registered ({found[:16]}, not {wanted[:16]})"
            )
        fit = Fit.load(options["fit"])
    found_in_log = examine_log(log)
    return check_page(
        check,
        registration,
        rng=np.random.default_rng(options["seed"]),
        fit=fit,
        findings=[*found_in_log.findings, signed_in(found_in_log, Path(log), check)],
        source=file.name,
    )
