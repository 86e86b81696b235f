"""The rows behind the charts of a fit: curves on a grid, runs, residuals; plain numbers, no drawing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from forecast.dataset import build
from forecast.fitted import Fit
from forecast.prediction import curve_quantiles, predict
from forecast.records import Design, Run, Target

__all__ = [
    "Axis",
    "Curves",
    "Observations",
    "axes_of",
    "axis_over",
    "curve_data",
    "observations",
    "observed_rows",
    "surface_data",
]

Array = npt.NDArray[np.float64]
Row = dict[str, Any]
_STEPS = 30
_MOST_LEVELS = 8


@dataclass(frozen=True)
class Axis:
    """One variable: its name in the law, its setting, how it is drawn and from where to where."""

    name: str
    setting: str
    log: bool
    domain: tuple[float, float]
    data: tuple[float, float]

    @property
    def title(self) -> str:
        """The setting in words."""
        words = {"n_samples": "samples n", "good_view_fraction": "good-view fraction g"}
        return words.get(self.setting, self.setting.replace("_", " ")) + (" (log scale)" if self.log else "")

    @property
    def ticks(self) -> list[float]:
        """Round numbers for a logarithmic axis: 1, 2, 5 times powers of ten; powers alone over many decades."""
        low, high = (math.log10(v) for v in self.domain)
        steps = (1, 2, 5) if high - low < 3.5 else (1,)
        powers = range(math.floor(low), math.ceil(high) + 1)
        return [s * 10.0**p for p in powers for s in steps if self.domain[0] <= s * 10.0**p <= self.domain[1]]

    def within_data(self) -> Axis:
        """The same axis, cut at the data."""
        return replace(self, domain=self.data)

    def grid(self, steps: int, *, over: tuple[float, float] | None = None) -> Array:
        """`steps` values across the domain, evenly spaced as drawn."""
        low, high = over or self.domain
        return np.geomspace(low, high, steps) if self.log else np.linspace(low, high, steps)


@dataclass(frozen=True)
class Curves:
    """Curves of a law and the runs (or design means).

    lines: x, y, lower, upper, group, part (below, inside or above the data; an end of the data is in two parts),
    whole (once per x).
    """

    x: Axis
    group: str
    levels: list[str]
    lines: list[Row]
    points: list[Row]
    chance: float | None


@dataclass(frozen=True)
class Observations:
    """What was observed: per run (or per design where the runs are not given) its columns, value and fitted point."""

    columns: dict[str, Array]
    values: Array
    names: list[str]
    weights: Array
    points: Array
    lower: Array
    upper: Array


def axes_of(fit: Fit) -> list[Axis]:
    """The law's variables that vary in the data: first those drawn along, last good-view fraction."""
    columns, _, _ = fit.table()
    order = sorted(columns, key=lambda name: (name == "g", name != "n", name))
    axes = [axis_over(name, fit.columns.get(name, name), columns[name].tolist(), beyond=True) for name in order]
    return [axis for axis in axes if axis is not None]


def axis_over(name: str, setting: str, values: Sequence[float], *, beyond: bool = False) -> Axis | None:
    """The axis of a variable with these values, logarithmic where they span a factor of 3; None if they are one.

    A fraction is drawn evenly, whatever it spans.

    beyond: reach past the data, to show what a law says there (a fraction stays within its bounds).
    """
    low, high = float(min(values)), float(max(values))
    if low == high:
        return None
    fraction = setting.endswith("fraction")
    log = low > 0 and high / low >= 3 and not fraction
    domain = low, high
    if beyond and log:
        domain = low / 1.15, high * 3
    elif beyond and not fraction:
        domain = low, high + (high - low) * 0.3
    return Axis(name, setting, log, domain, (low, high))


def observations(fit: Fit, runs: Sequence[Run] | None, rng: np.random.Generator) -> Observations:
    """The fitted runs (those of `runs` that the fit used; design means where `runs` is None) with their predictions."""
    columns, means, counts = fit.table()
    names = [f"mean of {design.runs}" if design.runs > 1 else "one run" for design in fit.designs]
    values, weights = means, counts
    if runs is not None:
        used = set(fit.run_ids)
        data = build([run for run in runs if run.run_id in used], fit.metric.name, fit.columns, weights=fit.weights)
        columns = {name: column[data.owner] for name, column in data.columns.items()}
        values, names, weights = data.values, list(data.run_ids), np.ones(len(data.values))
    keys = [tuple(column[i] for column in columns.values()) for i in range(len(values))]
    distinct = list(dict.fromkeys(keys))
    targets = [_target(fit, dict(zip(columns, key, strict=True)), i) for i, key in enumerate(distinct)]
    predictions = dict(zip(distinct, predict(fit, targets, rng=rng), strict=True))
    mine = [predictions[key] for key in keys]
    return Observations(
        columns=columns,
        values=values,
        names=names,
        weights=weights,
        points=np.array([p.point for p in mine]),
        lower=np.array([p.quantiles["0.025"] for p in mine]),
        upper=np.array([p.quantiles["0.975"] for p in mine]),
    )


def curve_data(fit: Fit, seen: Observations, axes: Sequence[Axis], rng: np.random.Generator) -> Curves:
    """The law along the first of `axes`, one curve per value of the last (if there are two)."""
    x, group = axes[0], axes[-1] if len(axes) > 1 else None
    levels = _levels(seen.columns[group.name]) if group else [math.nan]
    fixed = _fixed(fit, [axis.name for axis in axes if axis in (x, group)])
    grid = np.unique(np.concatenate([x.grid(_STEPS), x.data]))
    lines: list[Row] = []
    for level in levels:
        settings = {**fixed, **({group.name: level} if group else {})}
        targets = [_target(fit, {**settings, x.name: float(v)}, i) for i, v in enumerate(grid)]
        curve = curve_quantiles(fit, targets, rng)
        for i, v in enumerate(grid):
            low, middle, high = (curve[level_name][i] for level_name in ("0.025", "0.5", "0.975"))
            row = {"x": float(v), "y": middle, "lower": low, "upper": high, "group": _text(level)}
            parts = _parts(float(v), x.data)
            lines += [{**row, "part": part, "whole": k == 0} for k, part in enumerate(parts)]
    return Curves(
        x=x,
        group=group.title if group else "",
        levels=[_text(level) for level in levels],
        lines=lines,
        points=_points(seen, x, group, levels, fit),
        chance=fit.metric.chance,
    )


def surface_data(fit: Fit, seen: Observations, x: Axis, y: Axis) -> tuple[list[Row], list[Row]]:
    """Tiles (x, x2, y, y2, value) of the law's point over two variables, and the design means as dots."""
    across, up = x.grid(49), y.grid(33)
    fixed = _fixed(fit, [x.name, y.name])
    middles_x = np.sqrt(across[1:] * across[:-1]) if x.log else (across[1:] + across[:-1]) / 2
    middles_y = (up[1:] + up[:-1]) / 2
    pairs = [(i, j) for i in range(len(middles_x)) for j in range(len(middles_y))]
    columns = {name: np.full(len(pairs), value) for name, value in fixed.items()}
    columns[x.name] = np.array([middles_x[i] for i, _ in pairs])
    columns[y.name] = np.array([middles_y[j] for _, j in pairs])
    values = _point(fit, columns)
    tiles = [
        {
            "x": float(across[i]),
            "x2": float(across[i + 1]),
            "y": float(up[j]),
            "y2": float(up[j + 1]),
            x.setting: float(columns[x.name][k]),
            y.setting: float(columns[y.name][k]),
            "value": float(values[k]),
        }
        for k, (i, j) in enumerate(pairs)
    ]
    table, means, counts = fit.table()
    dots = [
        {"x": float(a), "y": float(b), x.setting: float(a), y.setting: float(b), "value": float(m), "runs": int(c)}
        for a, b, m, c in zip(table[x.name], table[y.name], means, counts, strict=True)
    ]
    return tiles, dots


def observed_rows(fit: Fit, seen: Observations, group: Axis | None) -> list[Row]:
    """Rows for charts of predictions against outcomes and of residuals, with the law's variables as columns."""
    rows = []
    for i, name in enumerate(seen.names):
        row: Row = {"run": name} | {fit.columns.get(k, k): float(v[i]) for k, v in seen.columns.items()}
        row |= {"point": float(seen.points[i]), "lower": float(seen.lower[i]), "upper": float(seen.upper[i])}
        row |= {"value": float(seen.values[i]), "error": float(seen.values[i] - seen.points[i])}
        row |= {"group": _text(float(seen.columns[group.name][i])) if group else "runs"}
        rows.append(row | {"group_title": group.title if group else ""})
    return rows


def _parts(value: float, data: tuple[float, float]) -> list[str]:
    parts = ["inside"] if data[0] <= value <= data[1] else []
    return parts + ["below"] * (value <= data[0]) + ["above"] * (value >= data[1])


def _points(seen: Observations, x: Axis, group: Axis | None, levels: Sequence[float], fit: Fit) -> list[Row]:
    rows = []
    for i, name in enumerate(seen.names):
        level = float(seen.columns[group.name][i]) if group else math.nan
        nearest = min(levels, key=lambda v: abs(v - level)) if group else math.nan
        row: Row = {"x": float(seen.columns[x.name][i]), "y": float(seen.values[i]), "group": _text(nearest)}
        row |= {"run": name, x.setting: row["x"]}
        if group:
            row[group.setting] = level
        rows.append(row | {fit.metric.name: row["y"]})
    return rows


def _point(fit: Fit, columns: dict[str, Array]) -> Array:
    total = np.zeros(len(next(iter(columns.values()))))
    for component in fit.components:
        total += component.weight * component.rebuilt().value(columns, component.inner)[0]
    return total


def _levels(values: Array) -> list[float]:
    distinct = np.unique(values)
    if len(distinct) > _MOST_LEVELS:
        distinct = np.unique(np.quantile(distinct, np.linspace(0, 1, 6), method="nearest"))
    return [float(v) for v in distinct]


def _fixed(fit: Fit, free: Sequence[str]) -> dict[str, float]:
    """The middle of the data for the variables that a chart does not move."""
    columns, _, _ = fit.table()
    return {name: float(np.median(column)) for name, column in columns.items() if name not in free}


def _target(fit: Fit, columns: dict[str, float], index: int) -> Target:
    settings = {fit.columns.get(name, name): float(value) for name, value in columns.items()}
    return Target(target=f"t{index}", design=Design(settings=settings))


def _text(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4g}"
