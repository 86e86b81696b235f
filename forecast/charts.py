"""Charts of a fit and of a check, as Altair objects without colours of their own: the page brings those.

Every chart takes its colours from `config.range`, so that light, dark and print differ in the theme alone
(see forecast.chart_themes), and says by shape, dash or label what it also says by colour.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import altair as alt

if TYPE_CHECKING:
    from forecast.chart_data import Axis, Curves

__all__ = ["comparison", "coverage", "curves", "observed", "pit", "power", "residuals", "surface"]

Layered: TypeAlias = "alt.LayerChart | alt.FacetChart"
Rows = Sequence[Mapping[str, Any]]
HEIGHT = 340
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke", "wedge"]


def curves(data: Curves, metric: str) -> Layered:
    """The law over its first variable, one curve per value of the second, with its 95 % band and the runs."""
    x, y = _x(data.x), _y(metric)
    colour = _groups(data.group, data.levels)
    lines = alt.Chart(_values(data.lines))
    area = lines.mark_area(opacity=0.16, interpolate="monotone").transform_filter("datum.whole")
    band = area.encode(x=x, y=alt.Y("lower:Q", title=metric), y2="upper:Q", color=colour)
    solid = lines.mark_line(strokeWidth=2, interpolate="monotone").transform_filter("datum.part == 'inside'")
    dotted = lines.mark_line(strokeWidth=1.5, strokeDash=[2, 4], interpolate="monotone")
    far = dotted.transform_filter("datum.part != 'inside'").encode(x=x, y=y, color=colour, detail="part:N")
    points = (
        alt.Chart(_values(data.points))
        .mark_point(filled=True, opacity=0.85, size=38)
        .encode(x=x, y=y, color=colour, shape=_shapes(data.group, data.levels), tooltip=_tooltip(data.points))
    )
    layers: list[Any] = [band, solid.encode(x=x, y=y, color=colour), far, points]
    if data.chance is not None:
        layers = [*_chance(data.chance), *layers]
    return alt.layer(*layers).properties(width="container", height=HEIGHT + 40)


def surface(cells: Rows, points: Rows, x: Axis, y: Axis, metric: str) -> Layered:
    """The law as a map over two variables; a dot where there were runs, filled with what they scored."""
    fill = alt.Fill("value:Q", title=metric, legend=alt.Legend(orient="top", gradientLength=220))
    across = alt.X("x:Q", title=x.title, scale=_scale(x), axis=_axis(x))
    up = alt.Y("y:Q", title=y.title, scale=_scale(y, pad=0.03), axis=_axis(y, grid=False))
    tiles = alt.Chart(_values(cells)).mark_rect(strokeWidth=0)
    tip = _tooltip(cells, skip=("x", "x2", "y", "y2"))
    dots = alt.Chart(_values(points)).mark_circle(size=80, opacity=1, strokeWidth=1.6, stroke="white")
    return alt.layer(
        tiles.encode(x=across, x2="x2:Q", y=up, y2="y2:Q", fill=fill, tooltip=tip),
        dots.encode(x=across, y=up, fill=fill, tooltip=_tooltip(points)),
    ).properties(width="container", height=HEIGHT)


def observed(rows: Rows, metric: str, sigma: float | None) -> Layered:
    """Outcomes against predictions, with 95 % intervals; the band is one seed noise on each side of agreement.

    rows: point, lower, upper, value, group and what the tooltip shows.
    """
    every = [float(row[k]) for row in rows for k in ("point", "value", "lower", "upper")]
    pad = 0.04 * (max(every) - min(every) or abs(max(every)) or 1)
    low, high = min(every) - pad, max(every) + pad
    square = alt.Scale(domain=[low, high], nice=False, zero=False)
    across, up = f"predicted {metric}", f"observed {metric}"
    axis = alt.Axis(tickCount=7, labelOverlap="greedy")

    def x(field: str) -> alt.X:
        return alt.X(field, title=across, scale=square, axis=axis)

    def y(field: str) -> alt.Y:
        return alt.Y(field, title=up, scale=square, axis=axis)

    ends = [{"x": v, "y": v, "low": v - (sigma or 0), "high": v + (sigma or 0)} for v in (low, high)]
    diagonal = alt.Chart(_values(ends))
    layers: list[Any] = []
    if sigma:
        noise = diagonal.mark_area(opacity=0.2, clip=True, color="gray")
        layers.append(noise.encode(x=x("x:Q"), y=y("low:Q"), y2="high:Q"))
    line = diagonal.mark_line(strokeDash=[5, 4], strokeWidth=1, color="gray", clip=True)
    layers.append(line.encode(x=x("x:Q"), y=y("y:Q")))
    colour, shape = _by_group(rows)
    base = alt.Chart(_values(rows))
    bars = base.mark_rule(opacity=0.45, clip=True).encode(x=x("lower:Q"), x2="upper:Q", y=y("value:Q"), color=colour)
    dots = base.mark_point(filled=True, size=44, opacity=0.9)
    tip = _tooltip(rows, skip=("group_title",))
    layers += [bars, dots.encode(x=x("point:Q"), y=y("value:Q"), color=colour, shape=shape, tooltip=tip)]
    return alt.layer(*layers).properties(width="container", height=HEIGHT + 60)


def residuals(rows: Rows, x: Axis, metric: str, sigma: float | None) -> Layered:
    """Observed minus predicted along one variable; bands at one and two seed noises."""
    reach = max([abs(float(row["error"])) for row in rows] + [2.2 * (sigma or 0)]) * 1.1 or 1.0

    def y(field: str) -> alt.Y:
        domain = alt.Scale(domain=[-reach, reach], nice=False)
        return alt.Y(field, scale=domain, title=f"observed − predicted {metric}", axis=alt.Axis(tickCount=5))

    layers: list[Any] = []
    if sigma:
        bands = alt.Chart(_values([{"low": -k * sigma, "high": k * sigma} for k in (2, 1)]))
        layers.append(bands.mark_rect(opacity=0.13, color="gray").encode(y=y("low:Q"), y2="high:Q"))
    zero = alt.Chart(_values([{"zero": 0}])).mark_rule(strokeDash=[5, 4], color="gray")
    layers.append(zero.encode(y=y("zero:Q")))
    colour, shape = _by_group(rows)
    dots = alt.Chart(_values(rows)).mark_point(filled=True, size=40, opacity=0.85)
    tip = _tooltip(rows, skip=("x", "group_title"))
    layers.append(dots.encode(x=_x(x, pad=0.04), y=y("error:Q"), color=colour, shape=shape, tooltip=tip))
    return alt.layer(*layers).properties(width="container", height=210)


def comparison(rows: Rows, floor: float | None, unit: str) -> Layered:
    """CRPS on held-out designs, laws and baselines in order; the rule is what seed noise alone would leave."""
    y = alt.Y("law:N", sort=[row["law"] for row in rows], title=None, axis=alt.Axis(labelLimit=200, ticks=False))
    x = alt.X("crps:Q", title=f"CRPS on held-out designs ({unit})", axis=alt.Axis(tickCount=6))
    kinds = ["law", "baseline"]
    legend = alt.Legend(orient="top", title=None, offset=24, symbolOpacity=1)
    colour = alt.Color("kind:N", scale=alt.Scale(domain=kinds), legend=legend)
    shape = alt.Shape("kind:N", scale=alt.Scale(domain=kinds, range=["circle", "square"]), legend=legend)
    base = alt.Chart(_values(rows))
    stems = base.mark_rule(strokeWidth=2, opacity=0.5).encode(y=y, x="zero:Q", x2="crps:Q", color=colour)
    dots = base.mark_point(filled=True, size=90, opacity=1)
    layers: list[Any] = [stems, dots.encode(y=y, x=x, color=colour, shape=shape, tooltip=_tooltip(rows, ("zero",)))]
    if floor:
        mark = alt.Chart(_values([{"floor": floor, "label": "seed noise alone"}]))
        layers.append(mark.mark_rule(strokeDash=[5, 4], color="gray").encode(x="floor:Q"))
        text = mark.mark_text(align="left", dx=4, color="gray", fontSize=11)
        layers.append(text.encode(x="floor:Q", y=alt.value(-7), text="label:N"))
    return alt.layer(*layers).properties(width="container", height=24 * len(rows))


def coverage(rows: Rows) -> Layered:
    """Share of outcomes inside each central interval, with the band where it lies if the forecast is right.

    rows: level, observed, lower, upper.
    """
    unit = alt.Scale(domain=[0, 1], nice=False)
    x = alt.X(
        "level:Q",
        title="nominal share",
        scale=unit,
        axis=alt.Axis(format="%", values=[0, 0.5, 0.8, 0.95], labelOverlap=False),
    )
    y = alt.Y("observed:Q", title="observed share", scale=unit, axis=alt.Axis(format="%"))
    diagonal = alt.Chart(_values([{"level": 0, "observed": 0}, {"level": 1, "observed": 1}]))
    base = alt.Chart(_values(rows))
    bars = base.mark_bar(opacity=0.3, size=12, color="gray").encode(x=x, y=alt.Y("lower:Q", scale=unit), y2="upper:Q")
    dots = base.mark_point(filled=True, size=80, opacity=1).encode(x=x, y=y, tooltip=_tooltip(rows))
    line = diagonal.mark_line(strokeDash=[5, 4], strokeWidth=1, color="gray").encode(x=x, y=y)
    return alt.layer(line, bars, dots).properties(width="container", height=240)


def pit(rows: Rows) -> Layered:
    """Histogram of outcomes' probabilities under their forecasts (flat if right), with its 95 % band.

    rows: start, end, observed, lower, upper.
    """
    ticks = alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1], format=".1f")
    x = alt.X("start:Q", title="probability under the forecast", scale=alt.Scale(domain=[0, 1]), axis=ticks)
    y = alt.Y("observed:Q", title="share of outcomes", axis=alt.Axis(format="%"))
    base = alt.Chart(_values([{**row, "zero": 0} for row in rows]))
    bars = base.mark_rect(opacity=0.75, stroke="white", strokeOpacity=0.5)
    bars = bars.encode(x=x, x2="end:Q", y=y, y2="zero:Q", tooltip=_tooltip(rows))
    band = base.mark_rect(opacity=0.28, color="gray").encode(x=x, x2="end:Q", y=alt.Y("lower:Q"), y2="upper:Q")
    return alt.layer(bars, band).properties(width="container", height=240)


def power(rows: Rows) -> Any:
    """Chance of the verdict "as good as seed noise" against the law's error in units of seed noise.

    rows: curve_error, probability.
    """
    x = alt.X("curve_error:Q", title="true error of the law, in seed noises", axis=alt.Axis(tickCount=6))
    y = alt.Y("probability:Q", title="chance of AS GOOD", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
    line = alt.Chart(_values(rows)).mark_line(point=alt.OverlayMarkDef(size=50))
    return line.encode(x=x, y=y, tooltip=_tooltip(rows)).properties(width="container", height=200)


def _values(rows: Rows) -> alt.InlineData:
    return alt.InlineData(values=[dict(row) for row in rows])


def _x(axis: Axis, pad: float = 0.0) -> alt.X:
    return alt.X("x:Q", title=axis.title, scale=_scale(axis, pad), axis=_axis(axis))


def _y(metric: str) -> alt.Y:
    return alt.Y("y:Q", title=metric, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=7))


def _scale(axis: Axis, pad: float = 0.0) -> alt.Scale:
    low, high = axis.domain
    if axis.log:
        reach = (high / low) ** pad
        return alt.Scale(type="log", domain=[low / reach, high * reach], nice=False)
    return alt.Scale(domain=[low - pad * (high - low), high + pad * (high - low)], nice=False, zero=False)


def _axis(axis: Axis, grid: bool = True) -> alt.Axis:
    if axis.log:
        return alt.Axis(format="~s", values=list(axis.ticks), labelOverlap="greedy", grid=grid)
    return alt.Axis(tickCount=6, labelOverlap="greedy", grid=grid)


def _by_group(rows: Rows) -> tuple[alt.Color, alt.Shape]:
    """Colour and shape for the rows' groups, in order."""
    levels, title = sorted({str(row["group"]) for row in rows}, key=_level_key), str(rows[0].get("group_title", ""))
    return _groups(title, levels), _shapes(title, levels)


def _groups(title: str, levels: Sequence[str]) -> alt.Color:
    """Colours from the theme's ordered range, spread over the levels."""
    legend = alt.Legend(orient="top", title=title or None, symbolOpacity=1) if len(levels) > 1 else None
    scale = alt.Scale(domain=list(levels), range="ordinal") if len(levels) > 1 else alt.Scale(domain=list(levels))
    return alt.Color("group:N", sort=list(levels), scale=scale, legend=legend)


def _shapes(title: str, levels: Sequence[str]) -> alt.Shape:
    shapes = [SHAPES[i % len(SHAPES)] for i in range(len(levels))]
    legend = alt.Legend(orient="top", title=title or None) if len(levels) > 1 else None
    return alt.Shape("group:N", sort=list(levels), scale=alt.Scale(domain=list(levels), range=shapes), legend=legend)


def _chance(value: float) -> list[Any]:
    rule = alt.Chart(_values([{"chance": value, "label": "chance"}]))
    text = rule.mark_text(align="left", baseline="top", dx=4, dy=3, color="gray", fontSize=11)
    line = rule.mark_rule(strokeDash=[5, 4], color="gray").encode(y="chance:Q")
    return [line, text.encode(x=alt.value(0), y="chance:Q", text="label:N")]


def _tooltip(rows: Rows, skip: Sequence[str] = ("x", "y")) -> list[alt.Tooltip]:
    hidden = {*skip, "group", "kind"}
    out = []
    for name in (name for name in (rows[0] if rows else {}) if name not in hidden):
        field, title = re.sub(r"([\\.\[\]:])", r"\\\1", name), name.replace("_", " ")
        if all(isinstance(row.get(name), (int, float, type(None))) for row in rows):
            out.append(alt.Tooltip(field, type="quantitative", format=".4~g", title=title))
        else:
            out.append(alt.Tooltip(field, type="nominal", title=title))
    return out


def _level_key(text: str) -> tuple[int, float, str]:
    try:
        return (0, float(text), "")
    except ValueError:
        return (1, 0.0, text)
