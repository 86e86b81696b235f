"""A DuckDB index over ledgers: quick to ask, rebuilt at will, opened by one writing process at a time."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forecast.errors import BadRows, ForecastError, StoreBusy
from forecast.ledger import iterate_ledger, ledger_hash
from forecast.records import Run

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

__all__ = ["Store"]

_BATCH = 20_000


class Store:
    """Runs of several ledgers, to be asked in SQL.

    path: a DuckDB file, made where it is missing; None: in memory.
    read_only: several processes may read at once; none may while another writes.
    Raises StoreBusy where another process holds the file open.
    """

    def __init__(self, path: Path | str | None = None, *, read_only: bool = False) -> None:
        self.path = None if path is None else Path(path)
        self._read_only = read_only and self.path is not None
        if self._read_only and self.path is not None and not self.path.is_file():
            raise ForecastError(f"{self.path} does not exist; make it with `platocast import FILE --store {self.path}`")

    def __enter__(self) -> Store:
        self._connection = _connect(self.path, self._read_only)
        try:
            if not self._read_only:
                self._connection.execute((Path(__file__).parent / "schema.sql").read_text())
            self._check_schema()
        except BaseException:
            self._connection.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def index(self, ledger_path: Path | str) -> int:
        """Index the ledger anew where it changed; returns how many runs of it the store holds now.

        Raises BadRows for a corrupt ledger and for a run id that another ledger uses for another run;
        the store is then as it was.
        """
        path = Path(ledger_path)
        name, digest = self._name(path), ledger_hash(path)
        known = self._one("SELECT sha256 FROM ledgers WHERE ledger = ?", [name])
        if known is None or known[0] != digest:
            self._connection.execute("BEGIN")
            try:
                for table in ("ledgers", "runs", "evaluations"):
                    self._connection.execute(f"DELETE FROM {table} WHERE ledger = ?", [name])
                self._fill(path, name)
                self._connection.execute("INSERT INTO ledgers VALUES (?, ?)", [name, digest])
                self._refuse_conflicts(path)
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
        count = self._one("SELECT count(*) FROM runs WHERE ledger = ?", [name])
        return 0 if count is None else int(count[0])

    def ledgers(self) -> list[Path]:
        """The indexed ledgers."""
        rows = self._connection.execute("SELECT ledger FROM ledgers ORDER BY ledger").fetchall()
        base = Path.cwd() if self.path is None else self.path.resolve().parent
        return [Path(os.path.normpath(base / row[0])) for row in rows]

    def stale(self) -> list[Path]:
        """The indexed ledgers that have changed or gone since."""
        rows = self._connection.execute("SELECT sha256 FROM ledgers ORDER BY ledger").fetchall()
        pairs = zip(self.ledgers(), rows, strict=True)
        return [path for path, (digest,) in pairs if not path.is_file() or ledger_hash(path) != digest]

    def rebuild(self) -> int:
        """Drop the index and make it again from its ledgers; returns how many runs it holds."""
        paths = self.ledgers()
        gone = [str(path) for path in paths if not path.is_file()]
        if gone:
            raise ForecastError(f"{', '.join(gone)}: gone, the index cannot be made again; restore the ledger first")
        for table in ("ledgers", "runs", "evaluations"):
            self._connection.execute(f"DELETE FROM {table}")
        return sum(self.index(path) for path in paths)

    def runs(self, where: str | None = None) -> list[Run]:
        """The runs for which the SQL condition `where` over the columns of `runs` holds, in ledger order."""
        rows = self._select("run_id, any_value(record ORDER BY ledger)", "runs", where)
        return [Run.model_validate_json(record) for _, record in rows.fetchall()]

    def frame(self, where: str | None = None) -> pd.DataFrame:
        """One row per run and metric, settings as columns of their own."""
        from forecast.frames import frame_of

        return frame_of(self.runs(where))

    def _select(self, columns: str, table: str, where: str | None) -> duckdb.DuckDBPyConnection:
        import duckdb

        condition = "" if where is None else f"WHERE {where}"
        query = f"SELECT {columns} FROM {table} {condition} GROUP BY run_id ORDER BY min(ledger), min(line)"
        try:
            return self._connection.execute(query)
        except duckdb.Error as error:
            first = str(error).splitlines()[0]
            raise ForecastError(f"the condition {where!r} is no SQL over the runs' columns: {first}") from error

    def _fill(self, path: Path, name: str) -> None:
        problems: list[str] = []
        hashes: dict[str, str] = {}
        seen: set[str] = set()
        pairs = iter(iterate_ledger(path))
        while batch := list(islice(pairs, _BATCH)):
            problems += [found for _, found in batch if isinstance(found, str)]
            fresh = [(n, run) for n, run in batch if isinstance(run, Run) and run.run_id not in seen]
            fresh = list({run.run_id: (n, run) for n, run in reversed(fresh)}.values())[::-1]
            seen.update(run.run_id for _, run in fresh)
            if not problems and fresh:
                self._insert("runs", (_run_row(run, name, number, hashes) for number, run in fresh), _RUNS)
                rows = [(run.run_id, name, e.metric.name, e.value) for _, run in fresh for e in run.evaluations]
                self._insert("evaluations", rows, ("run_id", "ledger", "metric", "value"))
        if problems:
            raise BadRows(str(path), problems)

    def _insert(self, table: str, rows: Iterable[tuple[Any, ...]], columns: tuple[str, ...]) -> None:
        import pandas as pd

        batch = pd.DataFrame(list(rows), columns=list(columns), dtype=object)
        if batch.empty:
            return
        self._connection.register("batch", batch)
        self._connection.execute(f"INSERT INTO {table} SELECT {', '.join(columns)} FROM batch")
        self._connection.unregister("batch")

    def _refuse_conflicts(self, path: Path) -> None:
        rows = self._connection.execute(
            "SELECT run_id, list(DISTINCT ledger) FROM runs GROUP BY run_id "
            "HAVING count(*) > 1 AND count(DISTINCT record) > 1 ORDER BY run_id"
        ).fetchall()
        if rows:
            text = "run_id {!r} stands for different runs in {}; give one of them another id"
            raise BadRows(str(path), [text.format(run_id, " and ".join(sorted(names))) for run_id, names in rows])

    def _check_schema(self) -> None:
        rows = self._connection.execute("SELECT table_name FROM information_schema.tables").fetchall()
        missing = {"ledgers", "runs", "evaluations"} - {row[0] for row in rows}
        if missing:
            raise ForecastError(f"{self.path} is a DuckDB file, but no store of runs; import it as a table instead")

    def _name(self, path: Path) -> str:
        if self.path is None:
            return str(path.resolve())
        return os.path.relpath(path.resolve(), self.path.resolve().parent)

    def _one(self, query: str, values: list[Any]) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._connection.execute(query, values).fetchone()
        return row


_RUNS = (
    "run_id", "ledger", "line", "study", "registration", "target", "replicate", "design_hash",
    "good_view_fraction", "n_samples", "settings", "seed", "status", "record",
)  # fmt: skip


def _run_row(run: Run, ledger: str, line: int, hashes: dict[str, str]) -> tuple[Any, ...]:
    settings = json.dumps(dict(run.design.settings), ensure_ascii=False)
    if settings not in hashes:
        hashes[settings] = run.design.hash
    share, count = (run.design.settings.get(name) for name in ("good_view_fraction", "n_samples"))
    return (
        run.run_id, ledger, line, run.study, run.registration, run.target, run.replicate, hashes[settings],
        share, count, settings, run.seed, run.status, run.model_dump_json(exclude_none=True),
    )  # fmt: skip


def _connect(path: Path | None, read_only: bool) -> duckdb.DuckDBPyConnection:
    import duckdb

    if path is not None and path.is_file() and path.stat().st_size == 0:
        raise ForecastError(f"{path} is empty, not a DuckDB file; delete it")
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        if path is None:
            return duckdb.connect(":memory:", read_only=read_only)
        closed: dict[str, str | bool | int | float | list[str]] = {"enable_external_access": False}
        return duckdb.connect(str(path), read_only=read_only, config=closed)  # its views read no other file
    except duckdb.Error as error:
        text = str(error)
        if "lock" in text:
            raise StoreBusy(_busy(path, text)) from error
        raise ForecastError(f"{path} cannot be opened as a DuckDB file: {text.splitlines()[0]}") from error


def _busy(path: Path | None, text: str) -> str:
    """Which process holds the store, from DuckDB's message and the process table."""
    import psutil

    found = re.search(r"PID (\d+)", text)
    holder = "another process"
    if found:
        holder = f"process {found[1]}"
        with contextlib.suppress(psutil.Error):
            holder += f" ({' '.join(' '.join(psutil.Process(int(found[1])).cmdline()).split())[:200]})"
    return f"{path} is open in {holder}; a store is opened by one process at a time: end it or wait, then try again"
