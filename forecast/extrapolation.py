"""How far a target lies from the data, and what was measured that far: held-out errors and simulated coverage."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import FiniteFloat

from forecast.content import content_path
from forecast.dataset import Dataset
from forecast.fitted import Fit, HeldOut
from forecast.laws.law import Columns
from forecast.records import Record
from forecast.selection import Backtest, Fold

__all__ = ["Distance", "beyond", "distances", "held_out_of", "off_hull", "trends"]

Array = npt.NDArray[np.float64]

REACH = 2.0  # held-out designs within this factor of a target's distance speak for it
EDGE = 1e-6  # of the data's range: nearer to the hull than this is inside
SEEN = 3  # held-out designs without which a trend is not named


class Distance(Record):
    """How far one target lies from the data, and what was measured at that distance.

    factor: the largest ratio by which a positive predictor leaves its range, 1 inside. hull: distance from the convex
    hull of the designs, each predictor (positive ones in logarithms) scaled to its range; 0 inside.
    outside: the predictors that leave their own range.
    held_out: designs that were held out about as far beyond what trained; rmse: of the law there; covered: the share
    of them inside the 95 % interval that was made without them. On the link's scale; null where none was that far.
    simulated: how often the curve's 95 % interval held the truth in simulated studies at that distance (the middle
    world; lowest: the worst); null inside the data and where nothing was simulated.
    """

    factor: FiniteFloat
    hull: FiniteFloat
    outside: tuple[str, ...]
    held_out: int
    rmse: FiniteFloat | None = None
    covered: FiniteFloat | None = None
    simulated: FiniteFloat | None = None
    lowest: FiniteFloat | None = None


def beyond(seen: Columns, wanted: Columns) -> Array:
    """The largest ratio by which a positive predictor leaves its range; 1 inside."""
    factor = np.ones(len(next(iter(wanted.values()))))
    for name, values in wanted.items():
        if name == "g" or seen[name].min() <= 0:
            continue
        factor = np.maximum(factor, np.maximum(values / seen[name].max(), seen[name].min() / values))
    return factor


def off_hull(seen: Columns, wanted: Columns) -> Array:
    """Distance of each target from the convex hull of the designs, in units of each predictor's range; 0 inside."""
    from scipy.optimize import nnls

    inside, asked = [], []
    for name, values in wanted.items():
        column = seen[name]
        if name != "g" and column.min() > 0 and values.min() > 0:
            column, values = np.log(column), np.log(values)
        span = float(np.ptp(column)) or 1.0
        inside.append((column - column.min()) / span)
        asked.append((values - column.min()) / span)
    corners = np.unique(np.stack(inside, axis=1), axis=0)
    heavy = 1e4  # makes the shares of the corners add up to 1
    matrix = np.vstack([corners.T, np.full(len(corners), heavy)])
    out = np.array([nnls(matrix, np.append(target, heavy))[1] for target in np.stack(asked, axis=1)])
    return np.where(out < EDGE, 0.0, out)


def held_out_of(test: Backtest, folds: Sequence[Fold], data: Dataset) -> tuple[HeldOut, ...]:
    """One record per held-out design of each part, in the order of the backtest."""
    rows: list[HeldOut] = []
    for fold in folds:
        train = {k: v[fold.train] for k, v in data.columns.items()}
        held = {k: v[fold.test] for k, v in data.columns.items()}
        factors = beyond(train, held)
        ordered = "<=" in fold.name
        for i, factor in enumerate(factors):
            at = len(rows)
            rows.append(
                HeldOut(
                    fold=fold.name,
                    columns={k: float(v[i]) for k, v in held.items()},
                    error=float(test.error[at]),
                    inside=bool(test.inside[at]),
                    factor=float(factor),
                    ordered=ordered,
                )
            )
    return tuple(rows)


def distances(fit: Fit, wanted: Columns) -> list[Distance]:
    """One record per target; wanted: its columns, as `forecast.dataset.columns_of` gives them."""
    seen = {name: values for name, values in fit.table()[0].items() if name in wanted}
    factors, hull = beyond(seen, wanted), off_hull(seen, wanted)
    out = []
    for i, factor in enumerate(factors):
        near = _near(fit.held_out, float(factor))
        errors = np.array([row.error for row in near])
        simulated = _simulated(fit, {k: float(v[i]) for k, v in wanted.items()}, float(factor))
        out.append(
            Distance(
                factor=float(factor),
                hull=float(hull[i]),
                outside=tuple(k for k, v in wanted.items() if not seen[k].min() <= v[i] <= seen[k].max()),
                held_out=len(near),
                rmse=float(np.sqrt(np.mean(errors**2))) if len(near) else None,
                covered=float(np.mean([row.inside for row in near])) if near else None,
                simulated=None if simulated is None else simulated[0],
                lowest=None if simulated is None else simulated[1],
            )
        )
    return out


def trends(rows: Sequence[HeldOut], name: str, sigma: float | None) -> list[str]:
    """Sentences where a law errs to one side beyond what trained it, at one end of g or everywhere.

    Only cuts in n count. A trend is named where every cut errs to the same side on average, and the mean over designs
    exceeds three of its standard errors and the seed noise of a design.
    """
    cuts = [row for row in rows if row.factor > 1 and row.ordered]
    levels = sorted({row.columns["g"] for row in cuts if "g" in row.columns})
    groups: list[tuple[str, list[HeldOut]]] = [("", cuts)]
    if len(levels) > 1:
        groups += [
            (
                f"g = {level:g}" + (" (pure good views)" if level == 1 else ""),
                [r for r in cuts if r.columns["g"] == level],
            )
            for level in (levels[0], levels[-1])
        ]
    found = [(label, group, error) for label, group in groups if (error := _one_sided(group, sigma)) is not None]
    named = [entry for entry in found if entry[0]] or found
    out = []
    for label, group, error in named:
        far = [row.factor for row in group]
        word = "underestimates" if error > 0 else "overestimates"
        where = f"{label} at" if label else "designs at"
        out.append(
            f"trained on smaller runs, {name} {word} {where} {min(far):.3g} to {max(far):.3g} times the data "
            f"by {abs(error):.3g} on average: expect the same of a forecast beyond the data"
        )
    return out


def _one_sided(rows: Sequence[HeldOut], sigma: float | None) -> float | None:
    """Mean error (outcome minus forecast) of a group whose cuts all err to one side; None where they do not."""
    parts = sorted({row.fold for row in rows})
    per_cut = [float(np.mean([row.error for row in rows if row.fold == part])) for part in parts]
    per_design: dict[tuple[float, ...], list[float]] = {}
    for row in rows:
        per_design.setdefault(tuple(row.columns.values()), []).append(row.error)
    means = np.array([np.mean(errors) for errors in per_design.values()])
    if len(parts) < 2 or len(means) < SEEN or len({x > 0 for x in per_cut}) > 1:
        return None
    error = float(means.mean())
    unsure = float(means.std(ddof=1)) / np.sqrt(len(means))
    return error if abs(error) > 3 * unsure and abs(error) > (sigma or 0.0) else None


def _near(rows: Sequence[HeldOut], factor: float) -> list[HeldOut]:
    """The held-out designs about as far from what trained as the target is from the data."""
    if factor <= 1:
        return [row for row in rows if row.factor <= 1]
    return [row for row in rows if row.factor > 1 and factor / REACH <= row.factor <= factor * REACH]


def _simulated(fit: Fit, wanted: dict[str, float], factor: float) -> tuple[float, float] | None:
    """Coverage at this distance: of this fit's own simulation where there is one, else of the shipped table."""
    if factor <= 1 or factor > 10:
        return None
    far = 4 if factor <= 4 else 10
    own = [row for row in fit.calibration if row.nominal == 0.95 and row.target.startswith(f"{far}x")]
    if own:
        shares = [row.coverage for row in own]
        return float(np.median(shares)), min(shares)
    fits = [row for row in _table() if row["factor"] == far and row["lack_of_fit"] == (fit.chosen.tau > 0)]
    by_method = {row["method"]: (float(row["middle"]), float(row["lowest"])) for row in fits}
    averaged = len(fit.components) > 1 and fit.interval_method == "profile"
    return by_method.get("auto" if averaged and "auto" in by_method else fit.interval_method)


@lru_cache(maxsize=1)
def _table() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(content_path("coverage.json").read_bytes())["rows"]
    return rows
