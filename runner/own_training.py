"""A user's own training: a command line with places for settings, where it runs, and the files that it is made of."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, FiniteFloat, model_validator

from forecast.code import hash_of
from forecast.errors import ForecastError
from forecast.records import Metric, Record, Scalar, Sha256
from runner.naming import nearest

__all__ = ["PLACES", "MetricRule", "OwnTraining", "fill", "split_command", "training_hash"]

PLACES = ("run_dir", "run_id", "seed", "spec", "threads")
"""What a command may name beside the design's settings. spec: the path of the run's JSON job spec."""

_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_SHELL_WORDS = {"&&", "||", "|", ";", "&", ">", ">>", "<", "2>", "2>&1", "&>"}
_MOST_FILES = 2000


class MetricRule(Record):
    """What a study says of one of its training's metrics; fields as in forecast.records.Metric."""

    higher_is_better: bool = True
    chance: FiniteFloat | None = None
    lower: FiniteFloat | None = None
    upper: FiniteFloat | None = None

    @model_validator(mode="after")
    def _bounds_enclose(self) -> MetricRule:
        low, high = self.lower, self.upper
        if low is not None and high is not None and not low < high:
            raise ValueError(f"lower = {low:g} must lie below upper = {high:g}")
        if self.chance is not None and (
            (low is not None and self.chance < low) or (high is not None and self.chance > high)
        ):
            raise ValueError(f"chance = {self.chance:g} must lie between lower and upper")
        return self

    def metric(self, name: str) -> Metric:
        """The metric of that name."""
        return Metric(name=name, **self.model_dump())


class OwnTraining(Record):
    """What a job spec says of a user's own training.

    command: the words of the command, with {places}; null for a Python entry point. folder: where it runs.
    metrics: what the study declares of its outcomes; where there is one, the others are left out.
    time_limit_s: of one attempt. files_hash: of its files as they were at the launch, as far as they are known.
    """

    command: tuple[str, ...] | None = None
    folder: str
    metrics: tuple[Metric, ...] = ()
    time_limit_s: Annotated[float, Field(gt=0)] | None = None
    files_hash: Sha256 | None = None


def split_command(command: str) -> tuple[str, ...]:
    """The words of a command line as a shell would split them; nothing else of a shell is done.

    Raises ForecastError for an open quote, for what only a shell understands, and where the command does not
    take up the seed and the run's folder: without them runs would overwrite each other or all be the same.
    """
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise ForecastError(f"command = {command!r} cannot be split into words: {error}; close the quote") from error
    if not words:
        raise ForecastError("command is empty; give one such as 'python train.py --seed {seed} --out {run_dir}'")
    shell = sorted(_SHELL_WORDS & set(words)) or [word for word in words if word.endswith(";")]
    if shell:
        raise ForecastError(
            f"command holds {shell[0]!r}, but it runs without a shell; "
            "put these lines into a script and name it: command = 'bash train.sh {seed} {run_dir}'"
        )
    named = {name for word in words for name in _names(word)}
    missing = [name for name in ("seed", "run_dir") if name not in named]
    if missing and "spec" not in named:
        raise ForecastError(
            f"command does not name {{{missing[0]}}}; a run must get its seed and its own folder: "
            "add {seed} and {run_dir}, or {spec}, a JSON file that holds the settings and the seed"
        )
    return words


def fill(words: Sequence[str], values: Mapping[str, Scalar]) -> list[str]:
    """The command with each {place} replaced by its value: one word stays one word, whatever the value holds.

    {{ and }} stand for braces. Raises ForecastError for a place that has no value.
    """
    return [_PLACE.sub(lambda match: _filled(match, values), word) for word in words]


def _filled(match: re.Match[str], values: Mapping[str, Scalar]) -> str:
    if match[0] in ("{{", "}}"):
        return match[0][0]
    name = match[1]
    if name is None:
        raise ForecastError(f"command has a lone {match[0]!r}; write {match[0] * 2!r} for a brace itself")
    if name not in values:
        raise ForecastError(f"command names {{{name}}}, which no setting is called; {nearest(name, values)}")
    value = values[name]
    if value is None:
        raise ForecastError(f"command names {{{name}}}, which is null in this design; give it a value or leave it out")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _names(word: str) -> list[str]:
    return [match[1] for match in _PLACE.finditer(word) if match[1] is not None]


def training_hash(folder: Path, words: Sequence[str] = ()) -> str | None:
    """The hash of the training's files as far as they can be known, None where there is none.

    Known are the files that the command names and the Python files in `folder` and below (not in hidden folders,
    virtual environments or launch folders). Not known are installed packages, data, and what a script loads.
    """
    found = dict(_named_files(folder, words))
    for path in _python_files(folder):
        found.setdefault(path.relative_to(folder).as_posix(), path)
        if len(found) > _MOST_FILES:
            found = dict(_named_files(folder, words))
            found |= {path.name: path for path in sorted(folder.glob("*.py"))}
            break
    files = {}
    for name, path in found.items():
        try:
            files[name] = path.read_bytes()
        except OSError as error:
            raise ForecastError(f"{path} cannot be read ({error.strerror}), so it cannot be put on record") from error
    return hash_of(files) if files else None


def _named_files(folder: Path, words: Sequence[str]) -> Iterator[tuple[str, Path]]:
    for word in words:
        for part in {word, word.rpartition("=")[2]}:
            path = folder / part
            if part and "{" not in part and path.is_file() and not _program(path):
                yield (path.relative_to(folder).as_posix() if path.is_relative_to(folder) else part), path


def _program(path: Path) -> bool:
    """Whether this is a program of the machine, such as /usr/bin/python3, rather than a file of the training."""
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _python_files(folder: Path) -> Iterator[Path]:
    for at, subfolders, names in os.walk(folder):
        here = Path(at)
        subfolders[:] = sorted(name for name in subfolders if not _foreign(here / name))
        yield from (here / name for name in sorted(names) if name.endswith(".py"))


def _foreign(folder: Path) -> bool:
    return (
        folder.name.startswith(".")
        or folder.name in ("__pycache__", "node_modules", "site-packages")
        or (folder / "pyvenv.cfg").exists()
        or (folder / "folder.json").exists()
    )
