"""Predictions in the hubverse's model-output layout, which forecast hubs score and combine.

Source: https://docs.hubverse.io/en/latest/user-guide/model-output.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from forecast.errors import ForecastError
from forecast.files import write_atomically
from forecast.records import Design

__all__ = ["Claim", "hub_rows", "write_hub"]

_MODEL = re.compile(r"[A-Za-z0-9_]{1,16}-[A-Za-z0-9_]{1,16}")
_ROUND = re.compile(r"\d{4}-\d{2}-\d{2}|[A-Za-z0-9_]+")


class Claim(Protocol):
    """What a prediction and a registered target have in common."""

    @property
    def target(self) -> str:
        """Its id."""

    @property
    def design(self) -> Design:
        """What is forecast."""

    @property
    def quantiles(self) -> Mapping[str, Any]:
        """Level to value, both as they are written."""


def hub_rows(claims: Sequence[Claim], metric: str) -> list[dict[str, Any]]:
    """One row per quantile, and one for the median: task-id columns, output_type, output_type_id, value."""
    if not claims:
        raise ForecastError("there is no prediction to export; predict at least one target")
    names = sorted({name for claim in claims for name in claim.design.settings})
    taken = {"target", "metric", "output_type", "output_type_id", "value"} & set(names)
    if taken:
        raise ForecastError(f"a setting is called {min(taken)!r}, as a hub's own column is; rename the setting")
    rows = []
    for claim in claims:
        task = {"target": claim.target, "metric": metric} | {n: claim.design.settings.get(n) for n in names}
        rows += [
            {**task, "output_type": "quantile", "output_type_id": level, "value": float(value)}
            for level, value in claim.quantiles.items()
        ]
        if "0.5" in claim.quantiles:
            median = float(claim.quantiles["0.5"])
            rows.append({**task, "output_type": "median", "output_type_id": "NA", "value": median})
    return rows


def write_hub(rows: Sequence[Mapping[str, Any]], hub: Path | str, *, model: str, round_id: str) -> Path:
    """Write `rows` to HUB/model-output/MODEL/ROUND-MODEL.csv; returns the path.

    model: team and model, "team-model", letters, digits and _. round_id: a date or one word.
    """
    import pandas as pd

    if not _MODEL.fullmatch(model):
        raise ForecastError(f"--model must be TEAM-MODEL, each of 1 to 16 letters, digits or _, got {model!r}")
    if not _ROUND.fullmatch(round_id):
        raise ForecastError(f"--round must be a date (YYYY-MM-DD) or a word of letters, digits and _, got {round_id!r}")
    path = Path(hub) / "model-output" / model / f"{round_id}-{model}.csv"
    write_atomically(path, pd.DataFrame(list(rows)).to_csv(index=False, na_rep="NA").encode())
    return path
