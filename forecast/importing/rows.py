"""One row of a foreign table as one ledger line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from forecast.errors import ForecastError
from forecast.importing.columns import Choices, Column
from forecast.importing.rules import Broken, Rule, rule_for
from forecast.importing.table import Cell
from forecast.records import Metric

__all__ = ["BadRow", "RowMaker"]

_LOWER_IS_BETTER = ("loss", "nll", "perplexity", "ppl", "rmse", "mse", "mae", "error", "bits", "bpb")


class BadRow(Exception):
    """A row that breaks rules; problems: one sentence each."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


class RowMaker:
    """Turns the rows of one table into ledger lines."""

    def __init__(self, columns: Sequence[Column], choices: Choices, source: str) -> None:
        self._width = len(columns)
        self._names = [column.column for column in columns]
        by_role: dict[str, list[tuple[int, Column, Rule]]] = {}
        for index, column in enumerate(columns):
            if column.role != "ignored":
                by_role.setdefault(column.role, []).append((index, column, rule_for(column, choices)))
        self._settings = [(i, c.name, rule) for i, c, rule in by_role.get("setting", [])]
        self._counters = [(i, c.name, rule) for i, c, rule in by_role.get("counter", [])]
        self._metrics = [(i, _metric_record(c.column, choices), rule) for i, c, rule in by_role["metric"]]
        once = ("run_id", "seed", "study", "status")
        self._one = {role: by_role[role][0] for role in once if role in by_role}
        self._study = choices.study
        self._provenance = {"source": Path(source).name}
        given = self._one.get("run_id")
        self.id_column = given[1].column if given else "run_id (made from design and seed)"

    def line(self, number: int, cells: Sequence[Cell]) -> tuple[str, bytes]:
        """The run id and the ledger line of one row. Raises BadRow."""
        if len(cells) != self._width:
            raise BadRow([f"row {number}: it has {len(cells)} cells, the header {self._width}; correct the row"])
        problems: list[str] = []

        def read(index: int, rule: Rule) -> Any:
            try:
                return rule(cells[index])
            except Broken as error:
                problems.append(
                    f"row {number}, column {self._names[index]}: {cells[index]!r} {error.rule}; {error.fix}"
                )
            return None

        settings = {name: read(index, rule) for index, name, rule in self._settings}
        one = {role: read(index, rule) for role, (index, _, rule) in self._one.items()}
        values = [(metric, read(index, rule)) for index, metric, rule in self._metrics]
        counters = {name: read(index, rule) for index, name, rule in self._counters}
        status = one.get("status") or "finished"
        evaluations = [{"metric": metric, "value": value} for metric, value in values if value is not None]
        if status == "finished" and not evaluations and not problems:
            problems.append(self._nothing_measured(number))
        if problems:
            raise BadRow(problems)
        run_id = one.get("run_id") or _made_id(settings, one.get("seed"), evaluations)
        record: dict[str, Any] = {"format": "platocast-run-1", "run_id": run_id}
        study = one.get("study") or self._study
        if study is not None:
            record["study"] = study
        record["design"] = {"settings": settings}
        if one.get("seed") is not None:
            record["seed"] = one["seed"]
        if status == "finished":
            record |= {"status": status, "evaluations": evaluations}
        else:
            record |= {"status": "failed", "failure": f"{status}, as the imported table says", "evaluations": []}
        filled = {name: value for name, value in counters.items() if value is not None}
        if filled:
            record["counters"] = filled
        record["provenance"] = self._provenance
        return run_id, json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"

    def _nothing_measured(self, number: int) -> str:
        names = ", ".join(self._names[index] for index, _, _ in self._metrics)
        return (
            f"row {number}, column {names}: empty (NaN) must be a finite number; fill it, delete the row, "
            "or say status failed; --skip-bad leaves such rows out"
        )


def _made_id(settings: dict[str, Any], seed: int | None, evaluations: list[dict[str, Any]]) -> str:
    """An id from the design and the seed; without a seed from the outcomes too, for replicates have only those."""
    outcome = None if seed is not None else [[e["metric"]["name"], e["value"]] for e in evaluations]
    text = json.dumps([settings, seed, outcome], sort_keys=True, separators=(",", ":"))
    return "row-" + hashlib.sha256(text.encode()).hexdigest()[:20]


def _metric_record(column: str, choices: Choices) -> dict[str, Any]:
    low, high = choices.bounds.get(column, (None, None))
    words = column.lower().replace("/", "_").replace("-", "_").split("_")
    worse = column in choices.lower_is_better or any(word in words for word in _LOWER_IS_BETTER)
    try:
        metric = Metric(
            name=column, higher_is_better=not worse, chance=choices.chance.get(column), lower=low, upper=high
        )
    except ValidationError as error:
        raise ForecastError(f"metric {column!r}: {error.errors()[0]['msg']}") from error
    return metric.model_dump(mode="json", exclude_none=True)
