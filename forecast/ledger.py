"""Ledgers: JSONL files of runs, one a line. They are the truth; a store is only an index over them."""

from __future__ import annotations

import fcntl
import os
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import from_json

from forecast.errors import BadRows, ForecastError
from forecast.files import sha256_hex
from forecast.records import Run

__all__ = ["Conflict", "LedgerAppend", "append_runs", "iterate_ledger", "ledger_hash", "read_ledger", "run_line"]


class Conflict(ForecastError):
    """A run id that stands for two different runs.

    index: which of the ledger's runs, from 0, has the id already.
    """

    def __init__(self, run_id: str, index: int, difference: str) -> None:
        self.run_id, self.index, self.difference = run_id, index, difference
        super().__init__(
            f"run_id {run_id!r} stands for another run already: {difference}; "
            "a run is never rewritten: give the new run an id of its own, or correct the source"
        )


def run_line(run: Run) -> bytes:
    """The line that stands for `run` in a ledger, with its line feed; fields without a value are left out."""
    return run.model_dump_json(exclude_none=True).encode() + b"\n"


def read_ledger(path: Path | str) -> list[Run]:
    """The runs of the ledger at `path`, in order; equal lines are one run.

    Raises BadRows (with line numbers) for lines that are no run and for one id with two contents,
    ForecastError where there is no such file or no run in it.
    """
    runs: dict[str, tuple[int, Run]] = {}
    problems: list[str] = []
    for number, found in iterate_ledger(path):
        if isinstance(found, str):
            problems.append(found)
            continue
        first, known = runs.setdefault(found.run_id, (number, found))
        if known is not found and not same_run(known, found):
            problems.append(
                f"line {number}: run_id {found.run_id!r} stands in line {first} for another run "
                f"({difference(known, found)}); keep the line that is right and delete the other"
            )
    if problems:
        raise BadRows(str(path), problems)
    if not runs:
        raise ForecastError(f"{path} holds no run; import or collect runs into it first")
    return [run for _, run in runs.values()]


def iterate_ledger(path: Path | str) -> Iterator[tuple[int, Run | str]]:
    """Each line's number with its run, or with a sentence that says what is wrong with it."""
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, _parse(number, line)
    except OSError as error:
        raise ForecastError(f"{path}: cannot be read ({error.strerror}); give the path of a ledger (.jsonl)") from error


def ledger_hash(path: Path | str) -> str:
    """Lower-case hex sha256 of the ledger's bytes."""
    try:
        return sha256_hex(Path(path).read_bytes())
    except OSError as error:
        raise ForecastError(f"{path}: cannot be read ({error.strerror}); give the path of a ledger (.jsonl)") from error


def append_runs(path: Path | str, runs: Iterable[Run]) -> int:
    """Append to the ledger at `path` the runs that it does not hold, all or none; returns how many were new.

    Equal runs are added once. Raises Conflict for an id that stands for another run already.
    """
    with LedgerAppend(path) as ledger:
        return sum(ledger.add(run) for run in runs)


class LedgerAppend:
    """One append to a ledger, under a lock: all of it is there after a normal exit, nothing after an exception.

    The ledger is copied to a temporary name, grown there, synced and renamed, so a reader never sees half of it.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.lines: dict[str, int] = {}
        self.known_before = 0
        self._offsets = array("Q")
        self._end = self._flushed = 0

    def __enter__(self) -> LedgerAppend:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(self.path)
        self._lock.__enter__()
        try:
            handle, name = tempfile.mkstemp(prefix=f".{self.path.name}.", suffix=".tmp", dir=self.path.parent)
            self._temporary, self._file = Path(name), os.fdopen(handle, "w+b")
            try:
                self._copy()
            except BaseException:
                self._discard()
                raise
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise
        self.known_before = len(self._offsets)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None and len(self._offsets) > self.known_before:
                self._file.flush()
                os.fsync(self._file.fileno())
                self._file.close()
                os.chmod(self._temporary, 0o644)
                os.replace(self._temporary, self.path)
            else:
                self._discard()
        finally:
            self._lock.__exit__(None, None, None)

    def add(self, run: Run) -> bool:
        """Take `run` up; False if the ledger holds it already. Raises Conflict."""
        return self.add_line(run.run_id, run_line(run))

    def add_line(self, run_id: str, line: bytes) -> bool:
        """The same for the line (with its line feed) of a run that is known to be valid."""
        at = self.lines.setdefault(run_id, len(self._offsets))
        if at == len(self._offsets):
            self._offsets.append(self._end)
            self._file.write(line)
            self._end += len(line)
            return True
        known = self._line(at)
        if known != line:
            before, run = Run.model_validate_json(known), Run.model_validate_json(line)
            if not same_run(before, run):
                raise Conflict(run_id, at, difference(before, run))
        return False

    def _copy(self) -> None:
        problems: list[str] = []
        if self.path.exists():
            with open(self.path, "rb") as file:
                for number, line in enumerate(file, 1):
                    if line.strip():
                        self._take(number, line if line.endswith(b"\n") else line + b"\n", problems)
        if problems:
            raise BadRows(str(self.path), problems)

    def _take(self, number: int, line: bytes, problems: list[str]) -> None:
        try:
            run_id = from_json(line)["run_id"]
        except (ValueError, KeyError, TypeError):
            problems.append(str(_parse(number, line)))
            return
        if run_id in self.lines and self._line(self.lines[run_id]) != line:
            problems.append(f"line {number}: run_id {run_id!r} stands twice; keep the line that is right")
        self.lines.setdefault(run_id, len(self._offsets))
        self._offsets.append(self._end)
        self._file.write(line)
        self._end += len(line)

    def _line(self, index: int) -> bytes:
        start = self._offsets[index]
        end = self._offsets[index + 1] if index + 1 < len(self._offsets) else self._end
        if end > self._flushed:
            self._file.flush()
            self._flushed = self._end
        return os.pread(self._file.fileno(), end - start, start)

    def _discard(self) -> None:
        self._file.close()
        self._temporary.unlink(missing_ok=True)


def same_run(one: Run, other: Run) -> bool:
    """Whether two records are of one run; the file that it was imported from does not count."""
    return _without_source(one) == _without_source(other)


def difference(one: Run, other: Run) -> str:
    """In words, where two runs first differ."""
    values = {e.metric.name: e.value for e in one.evaluations}
    for evaluation in other.evaluations:
        name = evaluation.metric.name
        if values.get(name) != evaluation.value:
            return f"{name} is {values.get(name, 'absent')} there and {evaluation.value} here"
    for name in sorted(one.design.settings.keys() | other.design.settings.keys()):
        there, here = one.design.settings.get(name), other.design.settings.get(name)
        if there != here:
            return f"{name} is {there!r} there and {here!r} here"
    for name in type(one).model_fields:
        if getattr(one, name) != getattr(other, name):
            return f"{name} differs"
    return "they differ"


def _without_source(run: Run) -> Run:
    provenance = run.provenance
    if provenance is None:
        return run
    bare = provenance.model_copy(update={"source": None})
    return run.model_copy(update={"provenance": None if bare == type(bare)() else bare})


def _parse(number: int, line: bytes) -> Run | str:
    try:
        return Run.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            shown = line[:60].decode(errors="replace").strip()
            return (
                f"line {number}: not one JSON object ({first['ctx']['error']}): {shown!r}; restore or delete the line"
            )
        field = ".".join(str(part) for part in first["loc"]) or "the line"
        value = repr(first["input"])[:80]
        return f"line {number}, field {field}: {first['msg']}, got {value}; correct the field or delete the line"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the exclusive lock of `path` (a hidden file beside it, removed afterwards)."""
    name = path.with_name(f".{path.name}.lock")
    while True:
        handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            held = os.fstat(handle).st_ino == os.stat(name).st_ino
        except FileNotFoundError:
            held = False
        if held:  # otherwise its last holder removed it while we waited
            break
        os.close(handle)
    try:
        yield
    finally:
        name.unlink(missing_ok=True)
        os.close(handle)
