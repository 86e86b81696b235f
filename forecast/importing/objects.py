"""Tables of nested objects (one a run): names joined by dots, and what is known of their meaning."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from forecast.errors import ForecastError
from forecast.importing.table import Cell, Hint, Table

__all__ = ["Found", "flatten", "table_of"]

_SETTINGS = ("settings", "config", "params", "hparams", "design")
_METRICS = ("metrics", "summary", "results", "scores")


@dataclass(frozen=True)
class Found:
    """One run of a foreign folder: its settings, its outcomes and its other facts (run_id, seed, status, ...)."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Found:
        """A run from a JSON object; parts named `settings`, `config`, `metrics` and the like are taken as such."""
        settings: dict[str, Any] = {}
        metrics: dict[str, Any] = {}
        facts: dict[str, Any] = {}
        for name, part in value.items():
            if name in _SETTINGS and isinstance(part, Mapping):
                inner = part.get("settings")
                settings |= flatten(inner if name == "design" and isinstance(inner, Mapping) else part)
            elif name in _METRICS and isinstance(part, Mapping):
                metrics |= flatten(part)
            else:
                facts |= flatten({name: part})
        return cls(settings, metrics, facts)


def flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, Cell]:
    """Nested names joined by dots; lists become their JSON text."""
    flat: dict[str, Cell] = {}
    for name, part in value.items():
        key = f"{prefix}{name}"
        if isinstance(part, Mapping):
            flat |= flatten(part, f"{key}.")
        elif part is None or isinstance(part, (str, int, float, bool)):
            flat[key] = part
        else:
            flat[key] = json.dumps(part, default=str, ensure_ascii=False)
    return flat


def table_of(source: str, runs: Iterable[Found]) -> Table:
    """A table with one row per run, rows counted from 1; settings and metrics keep their meaning as hints."""
    rows = list(runs)
    if not rows:
        raise ForecastError(f"{source} holds no run; give a folder or file with at least one finished run")
    hints: dict[str, Hint] = {}
    columns: dict[str, None] = {}
    for row in rows:
        columns |= dict.fromkeys((*row.facts, *row.settings, *row.metrics))
        hints |= dict.fromkeys(row.settings, "setting")
    for row in rows:
        hints |= dict.fromkeys(row.metrics, "metric")
    names = tuple(columns)

    def data() -> Iterator[tuple[int, Sequence[Cell]]]:
        for number, row in enumerate(rows, 1):
            cells = {**row.facts, **row.settings, **row.metrics}
            yield number, [cells.get(name) for name in names]

    return Table(source, names, data, hints)
