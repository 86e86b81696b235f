"""Runs as rows to be shown: one per design with mean and SD over seeds, or one per run."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from forecast.errors import ForecastError
from forecast.records import Design, Run, Scalar

__all__ = ["design_rows", "run_rows", "split_settings"]

Rows = tuple[list[dict[str, Any]], dict[str, Scalar]]


def design_rows(runs: Sequence[Run], metrics: Sequence[str] = ()) -> Rows:
    """One row per design: settings that vary, runs, failed, and mean and SD (ddof 1) of each metric.

    Also returns the settings that are the same in all designs. A mean of no run and an SD of one are None.
    """
    names = _metrics(runs, metrics)
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.design.hash, []).append(run)
    varying, constant = split_settings([group[0].design for group in groups.values()])
    rows = []
    for digest, group in groups.items():
        row: dict[str, Any] = {name: group[0].design.settings.get(name) for name in varying}
        row |= {"design": digest[:8], "runs": len(group), "failed": sum(run.status == "failed" for run in group)}
        for name in names:
            found = [e.value for run in group if (e := run.evaluation(name)) is not None]
            row[f"{name} mean"] = statistics.fmean(found) if found else None
            row[f"{name} SD"] = statistics.stdev(found) if len(found) > 1 else None
        rows.append(row)
    return _in_order(rows, varying), constant


def short_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of `design_rows` for a narrow terminal: mean and SD in one column, no hash, `failed` only if any did."""
    failures = any(row["failed"] for row in rows)
    out = []
    for row in rows:
        short: dict[str, Any] = {}
        for name, value in row.items():
            if name.endswith(" mean"):
                spread = row[f"{name.removesuffix(' mean')} SD"]
                number = "-" if value is None else f"{value:.4g}"
                short[name.removesuffix(" mean")] = number if spread is None else f"{number}±{spread:.2g}"
            elif not name.endswith(" SD") and name != "design" and (name != "failed" or failures):
                short[name] = value
        out.append(short)
    return out


def run_rows(runs: Sequence[Run], metrics: Sequence[str] = ()) -> Rows:
    """One row per run: id, settings that vary, seed, status and each metric; and the settings that do not vary."""
    names = _metrics(runs, metrics)
    varying, constant = split_settings([run.design for run in runs])
    rows = []
    for run in runs:
        row: dict[str, Any] = {"run_id": run.run_id, **{name: run.design.settings.get(name) for name in varying}}
        row |= {"seed": None if run.seed is None else str(run.seed), "status": run.status}
        rows.append(row | {name: e.value if (e := run.evaluation(name)) else None for name in names})
    return _in_order(rows, varying), constant


def _metrics(runs: Sequence[Run], wanted: Sequence[str]) -> list[str]:
    there = list(dict.fromkeys(e.metric.name for run in runs for e in run.evaluations))
    for name in wanted:
        if name not in there:
            raise ForecastError(f"no run has the metric {name!r}; there are {', '.join(there) or 'none'}")
    return list(wanted) or there


def split_settings(designs: Sequence[Design]) -> tuple[list[str], dict[str, Scalar]]:
    """Names of the settings that vary or are absent somewhere, and those that are the same in all designs."""
    seen: dict[str, set[str]] = {}
    for design in designs:
        for name, value in design.settings.items():
            seen.setdefault(name, set()).add(repr(value))
    absent = {name for name in seen for design in designs if name not in design.settings}
    varying = [name for name, values in seen.items() if len(values) > 1 or name in absent]
    first = designs[0].settings
    return varying, {name: first[name] for name in seen if name not in varying}


def _in_order(rows: list[dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Sorted by the settings: nothing first, then numbers, then text."""

    def key(row: Mapping[str, Any]) -> list[tuple[int, float, str]]:
        values = [row[name] for name in names]
        return [(0, 0.0, "") if v is None else (2, 0.0, v) if isinstance(v, str) else (1, float(v), "") for v in values]

    return sorted(rows, key=key)
