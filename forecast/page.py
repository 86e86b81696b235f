"""One self-contained HTML page of sentences, tables and charts: no request ever leaves it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from forecast.chart_themes import THEMES

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Fact", "Page", "commands", "figure", "formula", "number", "pair", "record", "sentences", "table"]

Rows = Sequence[Mapping[str, Any]]
Tone = Literal["", "good", "bad", "doubt"]
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'"
)


@dataclass(frozen=True)
class Fact:
    """One key number under the headline: what it is, the number, and a word on it."""

    name: str
    value: str
    remark: str = ""


@dataclass
class Page:
    """A page under construction.

    verdict: one sentence; mark: the part of it that is set off; tone: its colour.
    charts, tables: what it shows, by name: Altair charts and rows.
    """

    title: str
    kicker: str
    verdict: str
    mark: str = ""
    tone: Tone = ""
    lead: str = ""
    facts: list[Fact] = field(default_factory=list)
    charts: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, Rows] = field(default_factory=dict)
    parts: list[str] = field(default_factory=list)

    def section(self, title: str, *parts: str, note: str = "") -> None:
        """Add a section of ready HTML parts under a heading that says what is to be seen."""
        intro = f'<p class="note">{escape(note)}</p>' if note else ""
        self.parts.append(f"<section><h2>{escape(title)}</h2>{intro}{''.join(parts)}</section>")

    def chart(self, name: str, chart: alt.TopLevelMixin, caption: str) -> str:
        """The HTML of a figure whose chart is drawn when the page opens; `name`: once a page.

        A name may come from a file of unknown origin: it becomes an id and a file's name, so only plain letters stay.
        """
        plain = name = re.sub(r"[^A-Za-z0-9_-]+", "-", name)[:80] or "chart"
        while name in self.charts:
            name = f"{plain}-{len(self.charts)}"
        self.charts[name] = chart
        return figure(name, caption)

    def table(self, name: str, rows: Rows, *, chosen: int | None = None, tags: str = "") -> str:
        """The HTML of a table, which is kept under `name` for the export."""
        assert name not in self.tables, name
        self.tables[name] = rows
        return table(rows, chosen=chosen, tags=tags)

    def html(self) -> str:
        """The whole page."""
        folder = Path(__file__).parent
        specs = "\n".join(
            f'<script type="application/json" id="{name}-spec">{_json(chart.to_dict())}</script>'
            for name, chart in self.charts.items()
        )
        verdict = escape(self.verdict)
        if self.mark:
            mark = escape(self.mark)
            verdict = verdict.replace(mark, f'<span class="mark">{mark}</span>', 1)
        facts = "".join(_fact(fact) for fact in self.facts)
        return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(self.title)}</title>
<link rel="icon" href="data:,">
<style>
{(folder / "page.css").read_text()}</style>
</head>
<body>
<header>
<p class="kicker">{escape(self.kicker)}</p>
<h1 class="{self.tone}">{verdict}</h1>
{f'<p class="lead">{escape(self.lead)}</p>' if self.lead else ""}
{f'<dl class="facts">{facts}</dl>' if facts else ""}
</header>
<main>
{"".join(self.parts)}
</main>
<footer>Made by platocast. This page is one file: it asks nothing of any network.</footer>
<script type="application/json" id="themes">{_json(THEMES)}</script>
{specs}
<script>{_library()}</script>
<script>
{(folder / "page.js").read_text()}</script>
</body>
</html>
"""


def figure(name: str, caption: str) -> str:
    """The place of a chart and what it shows."""
    return (
        f'<figure><div class="chart" id="{name}" role="img" aria-label="{escape(caption, quote=True)}"></div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def pair(*figures: str) -> str:
    """Figures side by side where there is room."""
    return f'<div class="pair">{"".join(figures)}</div>'


def sentences(texts: Sequence[str]) -> str:
    """A list of sentences."""
    return f'<ul class="sentences">{"".join(f"<li>{escape(text)}</li>" for text in texts)}</ul>' if texts else ""


def record(values: Mapping[str, object]) -> str:
    """Names and values, one a line; hashes (64 hex digits) in their own type."""
    rows = []
    for name, value in values.items():
        text = number(value) if isinstance(value, float) else str(value)
        digest = len(text) == 64 and all(c in "0123456789abcdef" for c in text)
        shown = f'<code class="hash">{text}</code>' if digest else escape(text)
        rows.append(f"<dt>{escape(name)}</dt><dd>{shown}</dd>")
    return f'<dl class="record">{"".join(rows)}</dl>'


def commands(lines: Sequence[str]) -> str:
    """Commands as they are typed."""
    return f"<pre>{escape(chr(10).join(lines))}</pre>"


def formula(text: str) -> str:
    """A formula on a line of its own."""
    return f'<p class="formula"><code>{escape(text)}</code></p>'


def table(rows: Rows, *, chosen: int | None = None, tags: str = "", sortable: bool = True) -> str:
    """A table of rows with the same keys. chosen: the row that is marked; tags: a column of levels."""
    if not rows:
        return "<p>None.</p>"
    columns = {k: [row[k] for row in rows] for k in rows[0]}
    digits = {k: _decimals(v) for k, v in columns.items() if all(isinstance(x, (int, float, type(None))) for x in v)}
    heads = {k: escape(k.replace("_", " ")) for k in columns}
    if sortable:
        heads = {k: f'<button type="button">{text}</button>' for k, text in heads.items()}
    head = "".join(f'<th scope="col"{_class(k in digits)}>{text}</th>' for k, text in heads.items())
    lines = []
    for i, row in enumerate(rows):
        cells = (_cell(k, v, digits, tags) for k, v in row.items())
        lines.append(f"<tr{' class=chosen' if i == chosen else ''}>{''.join(cells)}</tr>")
    inner = f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody>"
    kind = ' class="sortable"' if sortable else ""
    return f'<div class="scroll"><table{kind}>{inner}</table></div>'


def number(value: object, decimals: int | None = None) -> str:
    """A number for people: four digits (or `decimals` places), thousands apart."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    if not isinstance(value, float) or not math.isfinite(value):
        return str(value)
    if decimals is not None:
        text = f"{value:,.{decimals}f}"
    elif value == 0:
        text = "0"
    elif 1e4 <= abs(value) < 1e12:
        text = f"{round(value, 3 - math.floor(math.log10(abs(value)))):,.0f}"
    else:
        text = f"{value:.4g}"
        if "e" in text:
            base, _, power = text.partition("e")
            text = f"{base}×10{_superscript(int(power))}"
    return text.replace("-", "−")


def _decimals(values: Sequence[Any]) -> int | None:
    """The decimal places that give the largest of `values` four digits; None where one rule does not fit all."""
    sizes = [abs(v) for v in values if isinstance(v, float) and v != 0 and math.isfinite(v)]
    if not sizes or max(sizes) / min(sizes) > 1e4 or max(sizes) >= 1e4:
        return None if any(isinstance(v, float) and v != 0 for v in values) else 0
    if all(float(f"{v:.4g}") == round(v, 2) for v in sizes):
        return None
    return max(0, 3 - math.floor(math.log10(max(sizes))))


def _superscript(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _cell(name: str, value: Any, digits: Mapping[str, int | None], tags: str) -> str:
    key = "" if value is None else escape(str(value), quote=True)
    if name in digits:
        return f'<td class="number" data-value="{key}">{number(value, digits[name])}</td>'
    text = escape(number(value) if not isinstance(value, str) else value)
    if name == tags:
        text = f'<span class="tag {str(value).replace(" ", "-")}">{text}</span>'
    return f'<td data-value="{key}">{text}</td>'


def _class(numeric: bool) -> str:
    return ' class="number"' if numeric else ""


def _fact(fact: Fact) -> str:
    remark = f"<small>{escape(fact.remark)}</small>" if fact.remark else ""
    return f"<div><dt>{escape(fact.name)}</dt><dd>{escape(fact.value)}{remark}</dd></div>"


def _json(value: object) -> str:
    """JSON that cannot end the script element around it."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


@lru_cache(maxsize=1)
def _library() -> str:
    """Vega, Vega-Lite and vega-embed in one script, from vl-convert's own copy."""
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", "6.4").replace("</script", "<\\/script")
