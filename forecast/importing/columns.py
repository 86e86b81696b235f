"""What each column of a foreign table means: said by the user, or guessed from its name and shown."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from forecast.errors import ForecastError
from forecast.importing.table import Cell, Hint, Table
from forecast.records import Counters

__all__ = ["Choices", "Column", "Role", "assign"]

Role = Literal["run_id", "seed", "study", "status", "setting", "metric", "counter", "ignored"]

_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "run_id": ("run_id", "runid", "run_uuid", "id", "run"),
    "seed": ("seed", "random_seed", "rng_seed", "seed_id"),
    "study": ("study", "project"),
    "status": ("status", "state"),
    "good_view_fraction": (
        "good_view_fraction", "g", "good_fraction", "good_view_share", "good_views", "frac_good", "p_good",
    ),
    "n_samples": ("n_samples", "samples", "n", "num_samples", "nsamples", "sample_count", "samples_seen", "n_train"),
}  # fmt: skip
_FIXED: Mapping[str, Role] = {"run_id": "run_id", "seed": "seed", "study": "study", "status": "status"}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SCORE_WORDS = _words(
    "knn recall accuracy acc auc auroc f1 bleu cider rouge loss nll perplexity ppl rmse mse mae error score "
    "alignment cka map ndcg mrr top1 top5 precision bits bpb r1 r5 r10 r@1 r@5 r@10 procrustes"
)
_NO_SCORE_WORDS = _words("weight weights coef coefficient rate lambda decay type name scale function fn kind")
_SETTING_FOLDERS = _words("config hparams params param optimizer optim model data args hyperparameters")
_BOOKKEEPING = _words(
    "name notes user tags created updated runtime sweep group description hostname host url git_commit commit "
    "start_time end_time duration created_at updated_at timestamp date time _runtime _timestamp _step _wandb "
    "github_url job_type finished_at started_at index"
)


@dataclass(frozen=True)
class Column:
    """One column's meaning. name: what it is called in a run; guessed: nobody said so."""

    column: str
    role: Role
    name: str
    guessed: bool


@dataclass(frozen=True)
class Choices:
    """What the user said of the columns.

    mapping: name in a run -> column. metrics: columns that are outcomes. ignore: columns left out.
    units: name -> percent, log10 or plain. chance, bounds, lower_is_better: per metric.
    table: of a database; tag: of TensorBoard logs.
    """

    mapping: Mapping[str, str] = field(default_factory=dict)
    metrics: Sequence[str] = ()
    ignore: Collection[str] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    chance: Mapping[str, float] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    lower_is_better: Collection[str] = ()
    study: str | None = None
    table: str | None = None
    tag: str | None = None


def assign(table: Table, sample: Sequence[Sequence[Cell]], choices: Choices) -> list[Column]:
    """Each column's meaning, in the table's order.

    sample: some rows, to tell numbers from text. Raises ForecastError for columns that are not there,
    and where no outcome or no setting is left.
    """
    source, columns = table.source, table.columns
    _refuse_absent(source, columns, choices)
    said: dict[str, tuple[Role, str]] = {column: ("ignored", column) for column in choices.ignore}
    said |= {column: ("metric", column) for column in choices.metrics}
    said |= {column: (_FIXED.get(name, _setting_or_counter(name)), name) for name, column in choices.mapping.items()}
    taken = set(choices.mapping)
    known = {column: name for name in _SYNONYMS if name not in taken for column in _first(name, columns, said)}
    found = []
    for index, column in enumerate(columns):
        if column in said:
            found.append(Column(column, *said[column], guessed=False))
            continue
        numeric = _numeric([row[index] for row in sample if index < len(row)])
        role, name = _guess(column, known.get(column), numeric, table.hints.get(column))
        if role == "metric" and choices.metrics:
            role = "ignored"
        found.append(Column(column, role, name, guessed=True))
    _refuse_incomplete(source, columns, found)
    return found


def _guess(column: str, known: str | None, numeric: bool, hint: Hint | None) -> tuple[Role, str]:
    if known is not None and hint != "metric":
        return _FIXED.get(known, "setting"), known
    if hint is not None:
        return ("ignored" if hint == "metric" and not numeric else hint), column
    plain = _plain(column)
    if not plain or plain in _BOOKKEEPING or plain.startswith("unnamed:"):
        return "ignored", column
    if plain in Counters.model_fields and numeric:
        return "counter", plain
    words = set(re.split(r"[^a-z0-9@]+", plain))
    folder = plain.partition("/")[0] if "/" in plain else ""
    scored = bool(words & _SCORE_WORDS) or (bool(folder) and folder not in _SETTING_FOLDERS)
    if numeric and scored and not words & _NO_SCORE_WORDS and folder not in _SETTING_FOLDERS:
        return "metric", column
    return "setting", column


def _first(name: str, columns: Sequence[str], said: Mapping[str, object]) -> list[str]:
    """The one column that `name` is guessed from: the first synonym that is there.

    N beside D are parameters and tokens, as scaling laws write them, not samples.
    """
    if {"N", "D"} <= set(columns):
        columns = [column for column in columns if column != "N"]
    plain = {_plain(column): column for column in reversed(columns) if column not in said}
    tails = {key.rpartition(".")[2].rpartition("/")[2]: column for key, column in plain.items()}
    for where in (plain, tails if name in ("seed", "good_view_fraction", "n_samples") else {}):
        for synonym in _SYNONYMS[name]:
            if synonym in where:
                return [where[synonym]]
    return []


def _plain(column: str) -> str:
    return re.sub(r"[\s-]+", "_", column.strip().lower())


def _setting_or_counter(name: str) -> Role:
    return "counter" if name in Counters.model_fields else "setting"


def _numeric(cells: Sequence[Cell]) -> bool:
    """Whether most filled cells are numbers or are meant as such ("0,1", "4 %", "21M": refused later, with a fix)."""
    filled = [cell for cell in cells if cell is not None and cell != ""]
    return bool(filled) and sum(_like_number(cell) for cell in filled) >= len(filled) / 2


def _like_number(cell: Cell) -> bool:
    if not isinstance(cell, str):
        return not isinstance(cell, bool)
    return re.match(r"\s*[+-]?(\.?\d|nan\b|inf\b)", cell, re.IGNORECASE) is not None


def _refuse_absent(source: str, columns: Sequence[str], choices: Choices) -> None:
    asked = {column: f"--map {name}={column}" for name, column in choices.mapping.items()}
    asked |= {column: f"--metric {column}" for column in choices.metrics}
    asked |= {column: f"--ignore {column}" for column in choices.ignore}
    for column, option in asked.items():
        if column not in columns:
            near = difflib.get_close_matches(column, columns, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ForecastError(f"{source} has no column {column!r} ({option}); {hint}it has {_listed(columns)}")
    twice = set(choices.mapping.values()) & set(choices.metrics)
    if twice:
        raise ForecastError(f"{source}: column {min(twice)!r} is given as a setting and as a metric; give it once")


def _refuse_incomplete(source: str, columns: Sequence[str], found: Sequence[Column]) -> None:
    roles = {column.role for column in found}
    if "metric" not in roles:
        raise ForecastError(
            f"{source}: no column looks like an outcome; name it with --metric COLUMN; it has {_listed(columns)}"
        )
    if "setting" not in roles:
        raise ForecastError(
            f"{source}: missing column: nothing says what each run was (n_samples, good_view_fraction, ...); "
            f"add such a column or name it with --map n_samples=COLUMN; it has {_listed(columns)}"
        )
    names = [column.name for column in found if column.role == "setting"]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ForecastError(f"{source}: two columns are both {twice[0]!r}; leave one out with --ignore COLUMN")


def _listed(columns: Sequence[str]) -> str:
    shown = ", ".join(columns[:30])
    return shown + (f" and {len(columns) - 30} more" if len(columns) > 30 else "")
