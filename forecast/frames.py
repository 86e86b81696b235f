"""Runs as DataFrames, and DataFrames as runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from forecast.records import Run

if TYPE_CHECKING:
    import pandas as pd

    from forecast.importing.columns import Choices
    from forecast.importing.table import Cell

__all__ = ["frame_of", "runs_of"]

_OWN = ("run_id", "study", "design_hash", "seed", "status", "metric", "value")


def frame_of(runs: Sequence[Run]) -> pd.DataFrame:
    """One row per run and metric (one without metric for a failed run), settings as columns of their own.

    A setting that is called like one of the other columns becomes `setting.NAME`.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for run in runs:
        row: dict[str, Any] = {"run_id": run.run_id, "study": run.study, "design_hash": run.design.hash}
        row |= {"seed": run.seed, "status": run.status}
        row |= {f"setting.{k}" if k in _OWN else k: v for k, v in run.design.settings.items()}
        pairs: list[tuple[str | None, float | None]] = [(e.metric.name, e.value) for e in run.evaluations]
        pairs = pairs or [(None, None)]
        rows += [{**row, "metric": metric, "value": value} for metric, value in pairs]
    return pd.DataFrame(rows)


def runs_of(frame: pd.DataFrame, choices: Choices | None = None) -> list[Run]:
    """The runs in a DataFrame with one row per run, by the rules of the import; rows count from 1.

    choices: what columns mean where their names do not say so. Raises BadRows.
    """
    from forecast.importing.columns import Choices
    from forecast.importing.importer import runs_in
    from forecast.importing.table import Table

    columns = tuple(str(name) for name in frame.columns)

    def rows() -> Iterator[tuple[int, Sequence[Cell]]]:
        for number, row in enumerate(frame.itertuples(index=False, name=None), 1):
            yield number, [_plain(cell) for cell in row]

    return runs_in(Table("the DataFrame", columns, rows), choices or Choices())


def _plain(cell: Any) -> Cell:
    """NumPy's scalars as Python's; what pandas calls missing as None."""
    if hasattr(cell, "item"):
        cell = cell.item()
    if cell is None or cell != cell or repr(cell) in ("<NA>", "NaT"):
        return None
    return cell if isinstance(cell, (str, int, float, bool)) else str(cell)
