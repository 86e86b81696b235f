"""A fit as a person sees it in Python: a table in a terminal, HTML in a notebook, charts as Altair objects."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from forecast.fitted import Fit
from forecast.records import Run

if TYPE_CHECKING:
    import numpy as np

__all__ = ["charts_of", "fit_html", "fit_text"]


def fit_text(fit: Fit, width: int = 100) -> str:
    """Law, parameters with intervals and seed noise, for a terminal."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=_title(fit), title_justify="left", show_edge=False, pad_edge=False)
    rows = _rows(fit)
    for name in rows[0]:
        table.add_column(name, justify="left" if name in ("parameter", "status") else "right")
    for row in rows:
        table.add_row(*("-" if v is None else v if isinstance(v, str) else f"{v:.4g}" for v in row.values()))
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, markup=False)
    console.print(table)
    console.print(_below(fit), soft_wrap=True)
    return out.getvalue().rstrip()


def fit_html(fit: Fit) -> str:
    """The same for a notebook."""
    from html import escape

    from forecast.page import table

    title, below = escape(_title(fit)), escape(_below(fit))
    return f"<p><strong>{title}</strong></p>{table(_rows(fit), sortable=False)}<p>{below}</p>"


def charts_of(fit: Fit, runs: Sequence[Run] | None = None, *, rng: np.random.Generator) -> dict[str, Any]:
    """The charts of the fit's report by name (curves, surface, comparison, observed, ...), as Altair objects."""
    from forecast.report import fit_page

    return fit_page(fit, runs, rng=rng).charts


def _title(fit: Fit) -> str:
    return f"{fit.law}: {fit.metric.name} = {fit.chosen.formula}"


def _rows(fit: Fit) -> list[dict[str, Any]]:
    return [
        {
            "parameter": p.name,
            "value": p.value,
            "standard error": p.standard_error,
            "lower 95 %": p.lower,
            "upper 95 %": p.upper,
            "status": p.status,
        }
        for p in fit.parameters
    ]


def _below(fit: Fit) -> str:
    noise = fit.noise
    sigma = "unknown" if noise.sigma is None else f"{noise.sigma:.4g} ({noise.degrees_of_freedom} degrees of freedom)"
    return f"{noise.runs} runs of {noise.designs} designs; seed noise {sigma}; intervals by {fit.interval_method}"
