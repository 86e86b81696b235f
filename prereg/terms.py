"""What a person decides about a registration, beside what the fit says."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, FiniteFloat, ValidationError

from forecast.errors import ForecastError
from forecast.records import Record, Sha256
from prereg.statement import Access, Day, ExclusionRule, Text

__all__ = ["Terms", "read_terms"]


class Terms(Record):
    """Claim, rules and hashes; what is null takes the registration's own wording. deadline: UTC."""

    claim: Text
    deadline: Day
    refuted_by: Text = "the primary test says WORSE THAN SEED NOISE, or a registered baseline passes it as well"
    access: Access = Access(level="none")
    exclusions: tuple[ExclusionRule, ...] = ()
    exploratory: tuple[Text, ...] = ()
    delta: Annotated[FiniteFloat, Field(gt=0)] = 1.0
    alpha: Annotated[FiniteFloat, Field(gt=0, lt=0.5)] = 0.05
    looks: Annotated[int, Field(ge=1)] = 1
    requeue: Text | None = None
    divergence: Text | None = None
    missing_runs: Text | None = None
    multiplicity: Text | None = None
    secondary: tuple[Text, ...] | None = None
    checkpoint: Text | None = None
    checkpoint_rule: Text | None = None
    preprocessing: Text | None = None
    evaluation_code_hash: Sha256 | None = None
    code_hash: Sha256 | None = None
    lock_hash: Sha256 | None = None
    job_name: str = "pc-{digest16}-{target}-{replicate}"

    def given(self, *names: str) -> dict[str, Any]:
        """Those of the fields `names` that are not null."""
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


def read_terms(path: Path | None, options: Mapping[str, Any], defaults: Mapping[str, Any]) -> Terms:
    """The terms in a TOML file, if one is given; `options` that are not null come before it, `defaults` after."""
    stated = dict(defaults)
    if path is not None:
        try:
            stated |= tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ForecastError(f"{path}: cannot be read as TOML: {error}") from error
    stated |= {name: value for name, value in options.items() if value is not None}
    try:
        return Terms.model_validate(stated)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        hint = "; a TOML date is written as text" if where == "deadline" else ""
        raise ForecastError(f"these terms cannot be registered: {where}: {first['msg']}{hint}") from error
