"""How charts look on light and on dark paper: Vega configurations, colour-blind safe.

Ordered groups run through viridis, cut so that every step stands out from its paper; unordered ones take
Okabe and Ito's colours (https://jfly.uni-koeln.de/color/).
"""

from __future__ import annotations

from typing import Any

__all__ = ["THEMES"]

_SANS = 'system-ui, -apple-system, "Segoe UI", "Noto Sans", Roboto, "Helvetica Neue", Arial, sans-serif'
_VIRIDIS_ON_LIGHT = ["#440154", "#414487", "#2a788e", "#1f9d83", "#5ab42f"]
_VIRIDIS_ON_DARK = ["#9a7fd1", "#6f9fe0", "#35b7b0", "#6ece58", "#f6e54a"]
_MAP_ON_LIGHT = ["#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725"]
_OKABE_ITO_LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"]
_OKABE_ITO_DARK = ["#56b4e9", "#e69f00", "#2fc79b", "#e6a3c8", "#f0e442", "#d98a5a"]


def _theme(ink: str, soft: str, line: str, ordered: list[str], unordered: list[str]) -> dict[str, Any]:
    text = {"labelColor": soft, "titleColor": ink, "labelFont": _SANS, "titleFont": _SANS}
    return {
        "background": "transparent",
        "font": _SANS,
        "range": {"category": unordered, "ordinal": ordered, "ramp": _MAP_ON_LIGHT, "heatmap": _MAP_ON_LIGHT},
        "view": {"stroke": None},
        "axis": {
            **text, "domainColor": soft, "tickColor": soft, "gridColor": line, "gridOpacity": 0.75,
            "labelFontSize": 11.5, "titleFontSize": 12, "titleFontWeight": 500, "titlePadding": 8, "labelPadding": 5,
        },
        "legend": {
            **text, "labelFontSize": 11.5, "titleFontSize": 12, "titleFontWeight": 500, "symbolSize": 70,
            "symbolStrokeWidth": 0, "columns": 6, "columnPadding": 14, "titlePadding": 5, "offset": 10,
        },
        "text": {"color": ink, "font": _SANS},
        "mark": {"color": unordered[0]},
        "point": {"color": unordered[0]},
        "bar": {"color": unordered[0]},
        "rect": {"color": unordered[0]},
        "line": {"color": unordered[0]},
        "area": {"color": unordered[0]},
        "rule": {"color": soft},
    }  # fmt: skip


THEMES = {
    "light": _theme("#1d1c1a", "#5f5b54", "#e2ddd3", _VIRIDIS_ON_LIGHT, _OKABE_ITO_LIGHT),
    "dark": _theme("#ebe8e2", "#b1aca3", "#363941", _VIRIDIS_ON_DARK, _OKABE_ITO_DARK),
}
