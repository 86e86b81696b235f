"""From a foreign table to a ledger: all rows or none, unless bad ones may be left out."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from forecast.errors import BadRows, ForecastError
from forecast.importing.columns import Choices, Column, assign
from forecast.importing.opening import open_table
from forecast.importing.own import own_runs
from forecast.importing.rows import BadRow, RowMaker
from forecast.importing.table import Table
from forecast.importing.units import Question, questions
from forecast.ledger import Conflict, LedgerAppend
from forecast.records import Run

__all__ = ["Imported", "columns_of", "import_file", "open_questions", "runs_from", "runs_in"]

_SAMPLE = 1000
_MOST_PROBLEMS = 1000

Progress = Callable[[int], None]


@dataclass
class Imported:
    """What an import did.

    rows: read; added: new runs; known: rows that the ledger (or the file) had already; left_out: rows that were
    not imported; left: one sentence for each rule that they break.
    """

    columns: list[Column]
    rows: int = 0
    added: int = 0
    known: int = 0
    left_out: int = 0
    left: list[str] = field(default_factory=list)


def columns_of(table: Table, choices: Choices) -> list[Column]:
    """The meaning of each column of `table`, by `choices` and by guessing."""
    sample = [cells for _, cells in islice(table.rows(), _SAMPLE)]
    if not sample:
        raise ForecastError(f"{table.source} has a header and no row; give a file with at least one run")
    return assign(table, sample, choices)


def open_questions(table: Table, columns: Sequence[Column], choices: Choices) -> list[Question]:
    """The units that the table leaves open."""
    return questions(columns, [cells for _, cells in islice(table.rows(), _SAMPLE)], choices)


def _refuse_open(table: Table, columns: Sequence[Column], choices: Choices) -> None:
    """A sample count that may be a logarithm breaks no rule, so it must be asked; the rest the rules refuse."""
    for question in open_questions(table, columns, choices):
        if question.unit == "log10":
            name = question.name
            raise ForecastError(f"{table.source}: {question.text} say --unit {name}=log10 or --unit {name}=plain")


def import_file(
    path: Path | str,
    ledger: Path | str,
    choices: Choices | None = None,
    *,
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> Imported:
    """Append the runs in the file at `path` to `ledger`; what is there already is not added again.

    Raises BadRows with row, column, rule and fix where a row breaks one; nothing is added then.
    skip_bad: leave such rows out and list them instead.
    """
    choices = choices or Choices()
    own = own_runs(Path(path))
    if own is not None:
        return _merge(own, str(path), ledger, skip_bad)
    table = open_table(Path(path), choices)
    columns = columns_of(table, choices)
    _refuse_open(table, columns, choices)
    with LedgerAppend(ledger) as book:
        result = _import(table, columns, choices, book, skip_bad, progress)
        if result.left and not skip_bad:
            raise BadRows(table.source, result.left)
        if not result.added and not result.known:
            raise ForecastError(f"{table.source}: none of its {result.rows} row(s) can be imported; see the rules")
    return result


def runs_from(path: Path | str, choices: Choices | None = None) -> list[Run]:
    """The runs in the foreign file at `path`, without a ledger. Raises BadRows."""
    choices = choices or Choices()
    own = own_runs(Path(path))
    if own is not None:
        return _own(own, str(path))
    return runs_in(open_table(Path(path), choices), choices)


def runs_in(table: Table, choices: Choices) -> list[Run]:
    """The runs in a table. Raises BadRows."""
    columns = columns_of(table, choices)
    _refuse_open(table, columns, choices)
    maker = RowMaker(columns, choices, table.source)
    runs: dict[str, Run] = {}
    problems: list[str] = []
    for number, cells in table.rows():
        try:
            run = Run.model_validate_json(maker.line(number, cells)[1])
        except BadRow as error:
            problems += error.problems
            continue
        known = runs.setdefault(run.run_id, run)
        if known is not run and known != run:
            problems.append(f"row {number}, column {maker.id_column}: {run.run_id!r} stands twice with two outcomes")
    if problems:
        raise BadRows(table.source, problems)
    return list(runs.values())


def _own(runs: Iterable[tuple[str, Run | str]], source: str) -> list[Run]:
    found = [run for _, run in runs]
    problems = [run for run in found if isinstance(run, str)]
    if problems:
        raise BadRows(source, problems)
    return [run for run in found if isinstance(run, Run)]


def _merge(runs: Iterable[tuple[str, Run | str]], source: str, ledger: Path | str, skip_bad: bool) -> Imported:
    """Append runs that are ours already, as they are."""
    result = Imported([])
    with LedgerAppend(ledger) as book:
        for place, run in runs:
            result.rows += 1
            try:
                if isinstance(run, str):
                    result.left.append(run)
                elif book.add(run):
                    result.added += 1
                else:
                    result.known += 1
            except Conflict as error:
                result.left.append(f"{place}: {error}")
        result.left_out = len(result.left)
        if result.left and not skip_bad:
            raise BadRows(source, result.left)
    return result


def _import(
    table: Table, columns: list[Column], choices: Choices, book: LedgerAppend, skip_bad: bool, progress: Progress | None
) -> Imported:
    result = Imported(columns)
    maker = RowMaker(columns, choices, table.source)
    origin = array("Q")
    for number, cells in table.rows():
        result.rows += 1
        try:
            run_id, line = maker.line(number, cells)
            if book.add_line(run_id, line):
                result.added += 1
                origin.append(number)
            else:
                result.known += 1
        except BadRow as error:
            result.left_out += 1
            result.left += error.problems
        except Conflict as error:
            result.left_out += 1
            own = error.index - book.known_before
            where = f"in row {origin[own]}" if own >= 0 else f"in {book.path}"
            result.left.append(
                f"row {number}, column {maker.id_column}: {run_id!r} stands {where} for another run "
                f"({error.difference}); one id is one run: correct the row or give it an id of its own"
            )
        if len(result.left) >= _MOST_PROBLEMS and not skip_bad:
            break
        if progress is not None and result.rows % 2000 == 0:
            progress(result.rows)
    return result
