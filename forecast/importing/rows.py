"""One row of a foreign table as one ledger line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from forecast.directions import less_is_better
from forecast.errors import ForecastError
from forecast.importing.columns import Choices, Column
from forecast.importing.rules import Broken, Rule, rule_for
from forecast.importing.table import Cell
from forecast.records import Metric, Scalar

__all__ = ["BadRow", "RowMaker"]

_text = json.encoder.encode_basestring
_REMEMBERED = 50_000


class BadRow(Exception):
    """A row that breaks rules; problems: one sentence each."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


class RowMaker:
    """Turns the rows of one table into ledger lines.

    A line is put together from texts of JSON, one per cell, and texts of settings are remembered, for they repeat:
    a million rows take seconds. That each line is a valid run is tested by property.
    """

    def __init__(self, columns: Sequence[Column], choices: Choices, source: str) -> None:
        self._names = [column.column for column in columns]
        self._rules = [(i, rule_for(c, choices)) for i, c in enumerate(columns) if c.role != "ignored"]
        by_role: dict[str, list[tuple[int, Column, Rule]]] = {}
        for index, rule in self._rules:
            by_role.setdefault(columns[index].role, []).append((index, columns[index], rule))
        self._settings = [(i, _Texts(c.name, rule)) for i, c, rule in by_role.get("setting", [])]
        self._counters = [(i, _Texts(c.name, rule)) for i, c, rule in by_role.get("counter", [])]
        self._metrics = [(i, _metric_text(c.column, choices), rule) for i, c, rule in by_role["metric"]]
        once = ("run_id", "seed", "study", "status")
        self._one = {role: (by_role[role][0][0], by_role[role][0][2]) for role in once if role in by_role}
        self._order = sorted(range(len(self._settings)), key=lambda k: self._settings[k][1].name)
        self._study = None if choices.study is None else _text(choices.study)
        self._end = f',"provenance":{{"source":{_text(Path(source).name)}}}}}\n'
        given = self._one.get("run_id")
        self.id_column = self._names[given[0]] if given else "run_id (made from design and seed)"

    def line(self, number: int, cells: Sequence[Cell]) -> tuple[str, bytes]:
        """The run id and the ledger line of one row. Raises BadRow."""
        if len(cells) != len(self._names):
            width = len(self._names)
            raise BadRow([f"row {number}: it has {len(cells)} cells, the header {width}; correct the row"])
        try:
            return self._line(number, cells)
        except Broken:
            raise BadRow(self._problems(number, cells)) from None

    def _line(self, number: int, cells: Sequence[Cell]) -> tuple[str, bytes]:
        settings = [texts.of(cells[index]) for index, texts in self._settings]
        one = {role: rule(cells[index]) for role, (index, rule) in self._one.items()}
        outcomes = []
        for index, before, rule in self._metrics:
            value = rule(cells[index])
            if value is not None:
                outcomes.append(f"{before}{value!r}}}")
        counters = [text for index, texts in self._counters if not (text := texts.of(cells[index])).endswith(":null")]
        status, seed = one.get("status") or "finished", one.get("seed")
        if status != "finished":
            outcomes = []
        elif not outcomes:
            raise BadRow([self._nothing_measured(number)])
        run_id = one.get("run_id")
        if run_id is None:
            run_id = _made_id([settings[k] for k in self._order], seed, outcomes)
        study = self._study if one.get("study") is None else _text(str(one["study"]))
        parts = [
            f'{{"format":"platocast-run-1","run_id":{_text(str(run_id))}',
            "" if study is None else f',"study":{study}',
            f',"design":{{"settings":{{{",".join(settings)}}}}}',
            "" if seed is None else f',"seed":{seed}',
            f',"status":"{"finished" if status == "finished" else "failed"}"',
            "" if status == "finished" else f',"failure":{_text(f"{status}, as the imported table says")}',
            f',"evaluations":[{",".join(outcomes)}]' if outcomes else "",
            f',"counters":{{{",".join(counters)}}}' if counters else "",
            self._end,
        ]
        return str(run_id), "".join(parts).encode()

    def _problems(self, number: int, cells: Sequence[Cell]) -> list[str]:
        """What is wrong with a row: one sentence per cell that breaks its rule."""
        problems = []
        for index, rule in self._rules:
            try:
                rule(cells[index])
            except Broken as error:
                name, cell = self._names[index], cells[index]
                problems.append(f"row {number}, column {name}: {cell!r} {error.rule}; {error.fix}")
        return problems

    def _nothing_measured(self, number: int) -> str:
        names = ", ".join(self._names[index] for index, *_ in self._metrics)
        return (
            f"row {number}, column {names}: empty (NaN) must be a finite number; fill it, delete the row, "
            "or say status failed; --skip-bad leaves such rows out"
        )


class _Texts:
    """Cells of one column as `"name":value`, remembered."""

    def __init__(self, name: str, rule: Rule) -> None:
        self.name, self._rule, self._before = name, rule, f"{_text(name)}:"
        self._known: dict[str, str] = {}

    def of(self, cell: Cell) -> str:
        """The text of one cell. Raises Broken."""
        if type(cell) is str and cell in self._known:
            return self._known[cell]
        text = self._before + json.dumps(self._rule(cell), ensure_ascii=False, allow_nan=False)
        if type(cell) is str and len(self._known) < _REMEMBERED:
            self._known[cell] = text
        return text


def _made_id(settings: list[str], seed: Scalar, outcomes: list[str]) -> str:
    """An id from the design and the seed; without a seed from the outcomes too, for replicates have only those."""
    outcome = "" if seed is not None else ",".join(outcomes)
    return "row-" + hashlib.sha256(f"{','.join(settings)}|{seed}|{outcome}".encode()).hexdigest()[:20]


def _metric_text(column: str, choices: Choices) -> str:
    """An evaluation's text up to its value."""
    record = json.dumps(_metric_record(column, choices), ensure_ascii=False, separators=(",", ":"))
    return f'{{"metric":{record},"value":'


def _metric_record(column: str, choices: Choices) -> dict[str, Any]:
    low, high = choices.bounds.get(column, (None, None))
    worse = column in choices.lower_is_better or less_is_better(column)
    try:
        metric = Metric(
            name=column, higher_is_better=not worse, chance=choices.chance.get(column), lower=low, upper=high
        )
    except ValidationError as error:
        raise ForecastError(f"metric {column!r}: {error.errors()[0]['msg']}") from error
    return metric.model_dump(mode="json", exclude_none=True)
