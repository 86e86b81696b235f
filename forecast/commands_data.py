"""The commands that take runs in and show them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forecast.console import JsonFlag, note, show_record, show_table
from forecast.errors import ForecastError

if TYPE_CHECKING:
    from forecast.importing.columns import Column
    from forecast.importing.importer import Imported

__all__ = ["add_to"]


_FILE_HELP = (
    "CSV, TSV, JSONL, Parquet, DuckDB, SQLite, a ledger; a folder of MLflow, wandb, Hydra or TensorBoard; "
    "or a quoted pattern of JSON files."
)


def add_to(app: typer.Typer) -> None:
    """Register `import` and `runs` on `app`."""
    app.command("import")(import_command)
    app.command("runs")(runs_command)


def import_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=_FILE_HELP)],
    ledger: Annotated[Path, typer.Option("--ledger", help="The ledger to append to; made where missing.")],
    mapping: Annotated[
        list[str] | None,
        typer.Option("--map", help="NAME=COLUMN: run_id, seed, study, status or any setting; repeat for several."),
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option("--metric", help="A column that is an outcome; repeat for several.")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", help="A column that does not define a run; repeat for several.")
    ] = None,
    unit: Annotated[
        list[str] | None, typer.Option("--unit", help="NAME=percent, NAME=log10 or NAME=plain; repeat for several.")
    ] = None,
    chance: Annotated[
        list[str] | None, typer.Option("--chance", help="METRIC=NUMBER: its value for a code that knows nothing.")
    ] = None,
    bounds: Annotated[
        list[str] | None, typer.Option("--bounds", help="METRIC=LOW:HIGH: the values that it can take at all.")
    ] = None,
    lower_is_better: Annotated[
        list[str] | None, typer.Option("--lower-is-better", help="A metric of which less is better, e.g. a loss.")
    ] = None,
    table: Annotated[str | None, typer.Option("--table", help="Which table of a database.")] = None,
    tag: Annotated[str | None, typer.Option("--tag", help="Which scalar of TensorBoard logs.")] = None,
    study: Annotated[str | None, typer.Option("--study", help="The study that all rows belong to.")] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out and list rows that break a rule; otherwise all or nothing.")
    ] = False,
    store: Annotated[Path | None, typer.Option("--store", help="A DuckDB file to index the ledger in.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether the guessed columns are right.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Append the runs of a table to a ledger; a second import of a grown table adds what is new."""
    from dataclasses import replace

    from forecast.importing.columns import Choices
    from forecast.importing.importer import columns_of, import_file, open_questions
    from forecast.importing.opening import open_table
    from forecast.importing.own import own_runs
    from forecast.progress import progress

    choices = Choices(
        mapping=_pairs(mapping, "--map NAME=COLUMN"),
        metrics=tuple(metric or ()),
        ignore=frozenset(ignore or ()),
        units=_units(unit),
        chance={name: _number(text, "--chance") for name, text in _pairs(chance, "--chance METRIC=NUMBER").items()},
        bounds=_bounds(bounds),
        lower_is_better=frozenset(lower_is_better or ()),
        study=study,
        table=table,
        tag=tag,
    )
    columns: list[Column] = []
    if own_runs(file) is None:
        table_of_runs = open_table(file, choices)
        columns = columns_of(table_of_runs, choices)
        if not as_json:
            _show_columns(columns, file)
        if sys.stdin.isatty() and not yes and not as_json:
            if any(column.guessed for column in columns):
                typer.confirm("Import with these columns?", default=True, abort=True)
            for question in open_questions(table_of_runs, columns, choices):
                said = question.unit if typer.confirm(question.text, default=True) else "plain"
                choices = replace(choices, units={**choices.units, question.name: said})
    with progress(f"importing {file.name}") as advance:
        result = import_file(file, ledger, choices, skip_bad=skip_bad, progress=advance)
    stored = _index(store, ledger)
    _report(result, columns, ledger, stored, as_json)


def runs_command(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A ledger, a store (.duckdb) or a table of runs.")],
    metric: Annotated[
        list[str] | None, typer.Option("--metric", help="Only this metric; repeat for several; default all.")
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="One line per run instead of one per design.")] = False,
    refresh: Annotated[bool, typer.Option("--refresh", help="Index the ledgers of a store anew first.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show runs: one line per design with mean and SD over its seeds, or one per run."""
    from forecast.reading import read_runs
    from forecast.summaries import design_rows, run_rows, short_rows

    if refresh:
        from forecast.store import Store

        with Store(path) as store:
            store.rebuild()
    runs = read_runs(path)
    rows, constant = (run_rows if each else design_rows)(runs, metric or [])
    finished = sum(run.status == "finished" for run in runs)
    designs = len({run.design.hash for run in runs})
    title = f"{designs} design(s), {finished} finished run(s), {len(runs) - finished} failed"
    if as_json:
        rows = [{**row, **{k: v for k, v in constant.items() if k not in row}} for row in rows]
    elif not each:
        rows = short_rows(rows)
    if constant and not as_json:
        note("the same in all: " + ", ".join(f"{name}={value}" for name, value in constant.items()))
    show_table(rows, title=title, as_json=as_json)


def _show_columns(columns: list[Column], file: Path) -> None:
    rows = [
        {
            "column": column.column,
            "is": column.role,
            "as": "" if column.role == "ignored" else column.name,
            "": "guessed" if column.guessed else "given",
        }
        for column in columns
    ]
    show_table(rows, title=f"Columns of {file.name}", as_json=False)
    note("wrong? give --map NAME=COLUMN, --metric COLUMN or --ignore COLUMN")


def _report(result: Imported, columns: list[Column], ledger: Path, stored: int | None, as_json: bool) -> None:
    record: dict[str, Any] = {
        "rows": result.rows,
        "added": result.added,
        "already_there": result.known,
        "left_out": result.left_out,
        "ledger": str(ledger),
    }
    if stored is not None:
        record["in_store"] = stored
    if as_json:
        record |= {"problems": result.left, "columns": {c.column: [c.role, c.name] for c in columns}}
    show_record(record, as_json=as_json)
    if result.left and not as_json:
        note(f"left out {result.left_out} row(s):")
        for sentence in result.left:
            note(f"  {sentence}")


def _index(store: Path | None, ledger: Path) -> int | None:
    if store is None:
        return None
    from forecast.store import Store

    with Store(store) as opened:
        return opened.index(ledger)


def _pairs(words: list[str] | None, option: str) -> dict[str, str]:
    out: dict[str, str] = {}
    for word in words or []:
        name, equals, value = word.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise ForecastError(f"{option.split()[0]} needs {option.split()[1]}, got {word!r}")
        if name.strip() in out:
            raise ForecastError(f"{option.split()[0]} is given twice for {name.strip()!r}; give it once")
        out[name.strip()] = value.strip()
    return out


def _units(words: list[str] | None) -> dict[str, str]:
    units = _pairs(words, "--unit NAME=UNIT")
    for name, unit in units.items():
        if unit not in ("percent", "log10", "plain"):
            raise ForecastError(f"--unit {name}={unit}: a unit is percent, log10 or plain")
    return units


def _bounds(words: list[str] | None) -> dict[str, tuple[float, float]]:
    out = {}
    for name, text in _pairs(words, "--bounds METRIC=LOW:HIGH").items():
        low, _, high = text.partition(":")
        out[name] = (_number(low, "--bounds"), _number(high, "--bounds"))
        if not out[name][0] < out[name][1]:
            raise ForecastError(f"--bounds {name}={text}: the lower bound must lie below the upper one")
    return out


def _number(text: str, option: str) -> float:
    import math

    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ForecastError(f"{option} needs a finite number, got {text!r}")
    return value
