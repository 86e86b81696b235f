"""A page's charts and tables as files: PNG and SVG at paper size, Vega-Lite, CSV and Parquet."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forecast.chart_themes import THEMES
from forecast.errors import ForecastError
from forecast.files import write_atomically

if TYPE_CHECKING:
    from forecast.page import Page

__all__ = ["FORMATS", "export"]

FORMATS = ("png", "svg", "vl.json", "csv", "parquet")
WIDTH_MM, DOTS_PER_INCH = 170, 300
_POINTS = round(WIDTH_MM / 25.4 * 72)


def export(page: Page, folder: Path | str, formats: Collection[str] = FORMATS) -> list[Path]:
    """Write every chart and table of `page` into `folder`, named after them; returns the paths.

    PNG: 170 mm wide at 300 dots per inch; SVG: the same in points. Both on white, in the light theme.
    Raises ForecastError for a format that is not in FORMATS.
    """
    unknown = sorted(set(formats) - set(FORMATS))
    if unknown:
        raise ForecastError(f"no export as {', '.join(unknown)}; there are {', '.join(FORMATS)}")
    if not formats:
        raise ForecastError(f"nothing to export; name at least one of {', '.join(FORMATS)}")
    folder, written = Path(folder), []
    for name, chart in page.charts.items():
        for kind in (kind for kind in ("png", "svg", "vl.json") if kind in formats):
            written.append(folder / f"{name}.{kind}")
            write_atomically(written[-1], _drawn(chart.to_dict(), kind))
    for name, rows in page.tables.items():
        for kind in (kind for kind in ("csv", "parquet") if kind in formats):
            written.append(folder / f"{name}.{kind}")
            _tabulate([dict(row) for row in rows], kind, written[-1])
    return written


def _drawn(spec: dict[str, Any], kind: str) -> bytes:
    if kind == "vl.json":
        return (json.dumps(spec, indent=1, ensure_ascii=False) + "\n").encode()
    import vl_convert

    paper = {**spec, "width": _POINTS, "autosize": {"type": "fit-x", "contains": "padding"}}
    paper["config"] = {**THEMES["light"], "background": "white"}
    if kind == "svg":
        return vl_convert.vegalite_to_svg(paper, "6.4").encode()
    return vl_convert.vegalite_to_png(paper, "6.4", ppi=DOTS_PER_INCH)


def _tabulate(rows: list[dict[str, Any]], kind: str, path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame(rows)
    if kind == "csv":
        write_atomically(path, frame.to_csv(index=False).encode())
        return
    import duckdb  # writes Parquet without pyarrow

    temporary = path.with_name(f".{path.name}.tmp")
    with duckdb.connect() as connection:
        connection.register("frame", frame)
        connection.execute(f"COPY frame TO '{str(temporary).replace(chr(39), chr(39) * 2)}' (FORMAT parquet)")
    temporary.replace(path)
