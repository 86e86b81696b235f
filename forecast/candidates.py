"""Which laws are tried on which runs, and which setting is which of a law's variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from forecast.dataset import ALIASES, Dataset
from forecast.errors import ForecastError
from forecast.laws.alignment import ALIGNMENT, NULLS, SIZE_ONLY
from forecast.laws.custom import custom_law
from forecast.laws.effective import EFFECTIVE_LAWS
from forecast.laws.expression import names_in
from forecast.laws.function import function_columns, function_law, is_address
from forecast.laws.law import Law
from forecast.laws.registry import BUILDERS, VARIABLES, build_law, variables_of
from forecast.records import Run

__all__ = ["candidates_of", "is_formula", "laws_of", "mapping_of", "nulls_of"]

FALLING = ("power", "saturating-power", "shifted-power", "m4", "broken-power")


def is_formula(law: str) -> bool:
    """Whether `law` is a formula rather than a name: it has an operator other than the hyphen of names."""
    return law not in BUILDERS and any(sign in law for sign in "*+/()^")


def mapping_of(runs: Sequence[Run], law: str, columns: Mapping[str, str]) -> dict[str, str]:
    """A law's variables to the runs' settings: as given, else by alias, else by the same name."""
    present = {name for run in runs for name, value in run.design.settings.items() if value is not None}
    if is_address(law):
        wanted = list(function_columns(law))
    elif is_formula(law):
        wanted = [name for name in names_in(law) if name in columns or name in present or ALIASES.get(name) in present]
    elif law != "auto":
        wanted = list(variables_of(law))
    else:
        wanted = [v for v in VARIABLES if v in columns or v in present or ALIASES.get(v) in present]
        wanted = [v for v in wanted if v in ("n", "g", "U")] if "n" in wanted else wanted
    mapping = {}
    for name in wanted:
        alias = ALIASES.get(name)
        mapping[name] = columns.get(name) or (alias if alias in present or name not in present else name) or name
    if law in ("auto",) and not mapping:
        mapping = {"n": columns.get("n", ALIASES["n"])}
    return mapping


def candidates_of(data: Dataset) -> list[str]:
    """The laws that `auto` tries: of alignment where g varies, of size alone, or of model size and tokens."""
    if "n" not in data.columns:
        if {"N", "D"} <= set(data.columns):
            return ["chinchilla", "data-constrained"] if "U" in data.columns else ["chinchilla"]
        raise ForecastError("auto needs n_samples, or N and D, in the runs; name a law, or give a formula")
    if "g" in data.columns and len(np.unique(data.columns["g"])) > 1:
        if not data.metric.higher_is_better:
            raise ForecastError(
                f"the laws of alignment rise, and of {data.metric.name} less is better; "
                "name a law of loss, or give a formula over n and g"
            )
        return [name for name in (*ALIGNMENT, *EFFECTIVE_LAWS) if name != "repeated-samples" or "U" in data.columns]
    return list(SIZE_ONLY) if data.metric.higher_is_better else list(FALLING)


def nulls_of(data: Dataset, tried: Sequence[str]) -> list[str]:
    """The null laws for these columns."""
    names = [name for name in NULLS if "n" in data.columns and name not in tried]
    return [n for n in names if n != "no-g" or (data.metric.higher_is_better and "g" in data.columns)]


def laws_of(
    names: Sequence[str],
    data: Dataset,
    bounds: Mapping[str, tuple[float, float]],
    fixed: Mapping[str, float],
    priors: Mapping[str, tuple[float, float]] | None = None,
) -> list[Law]:
    """The laws by name, formula or module:function, scaled to the data, on the data's link, with their priors."""
    out = []
    for name in names:
        if is_formula(name):
            law = custom_law(name, data.scale, columns=tuple(data.columns), bounds=bounds)
        elif is_address(name):
            law = function_law(name, data.scale, columns=tuple(data.columns), bounds=bounds)
        elif bounds:
            raise ForecastError(f"bounds are for a formula or a function; {name} has its own")
        else:
            law = build_law(name, data.scale)
        law = replace(law, link=data.link)
        law = law.fixed(fixed) if fixed else law
        out.append(law.with_priors(priors) if priors else law)
    return out
