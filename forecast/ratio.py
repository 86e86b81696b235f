"""How many times more of something one arm needs to reach the same outcome as another: with a joint interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import FiniteFloat

from forecast.errors import ForecastError
from forecast.fitted import Fit
from forecast.fitting import fit
from forecast.prediction import look_ahead
from forecast.records import Design, Record, Run, Target

__all__ = ["RESOURCES", "Factor", "ratio", "split_arms"]

Array = npt.NDArray[np.float64]

STEPS = 121
DRAWS = 4000


class Factor(Record):
    """How many times more of `resource` arm b needs than arm a.

    kind: "factor"; "at least" where b does not reach the target inside its data, "at most" where it does so before
    its smallest run; then `value` is the bound and there is no interval.
    lower, upper: 95 % interval from joint draws; null where too many draws leave the data.
    a, b: the amounts at the target.
    """

    resource: str
    kind: Literal["factor", "at least", "at most"]
    value: FiniteFloat
    lower: FiniteFloat | None = None
    upper: FiniteFloat | None = None
    a: FiniteFloat | None = None
    b: FiniteFloat | None = None


@dataclass(frozen=True)
class _Crossing:
    """Where an arm meets the target, in log samples; inf: not by its largest run, -inf: before its smallest."""

    point: float
    draws: Array
    low: float
    high: float


def split_arms(runs: Sequence[Run], a: str, b: str) -> tuple[list[Run], list[Run]]:
    """The runs of two arms, each named by the value of one setting that has both ("good", or "objective=good").

    Raises ForecastError where no setting, or more than one, has both values.
    """
    setting_a, _, value_a = a.rpartition("=")
    setting_b, _, value_b = b.rpartition("=")
    values: dict[str, set[str]] = {}
    for run in runs:
        for name, value in run.design.settings.items():
            values.setdefault(name, set()).add(_text(value))
    asked = {name for name in (setting_a, setting_b) if name}
    found = [k for k, v in values.items() if {value_a, value_b} <= v and (not asked or {k} == asked)]
    if len(found) != 1:
        which = f"the settings {', '.join(sorted(found))} all have" if found else "no setting has"
        raise ForecastError(
            f"{which} both {value_a!r} and {value_b!r}; write --a SETTING={value_a} --b SETTING={value_b}"
        )
    arms = tuple([r for r in runs if _text(r.design.settings.get(found[0])) == v] for v in (value_a, value_b))
    return arms[0], arms[1]


def ratio(
    a: Sequence[Run], b: Sequence[Run], *, metric: str, target: float, rng: np.random.Generator, law: str = "auto"
) -> list[Factor]:
    """Per resource, how many times more arm b needs than arm a for an outcome of `target`.

    Each arm is fitted in samples alone; a curve is never read outside its own data. Raises ForecastError.
    """
    crossings = [_crossing(runs, metric, target, rng, law, name) for runs, name in ((a, "a"), (b, "b"))]
    for crossing, name in zip(crossings, "ab", strict=True):
        other = crossings[1 if name == "a" else 0]
        if not np.isfinite(crossing.point) and not np.isfinite(other.point):
            raise ForecastError(f"neither arm meets {target:g} inside its data; choose a target that one of them meets")
    out = []
    for resource, amount in RESOURCES.items():
        tables = [_table(runs, amount) for runs in (a, b)]
        if all(table is not None for table in tables):
            out.append(_factor(resource, crossings, [t for t in tables if t is not None]))
    return out


def _crossing(
    runs: Sequence[Run], metric: str, target: float, rng: np.random.Generator, law: str, name: str
) -> _Crossing:
    plain = [r.model_copy(update={"design": Design(settings=_size_only(r))}) for r in runs]
    fitted: Fit = fit(plain, metric=metric, law=law, rng=rng)
    seen = np.log(fitted.table()[0]["n"])
    grid = np.linspace(seen.min(), seen.max(), STEPS)
    places = [Target(target="t", design=Design(settings={fitted.columns["n"]: float(np.exp(x))})) for x in grid]
    ahead = look_ahead(fitted, places, rng)
    rises = fitted.metric.higher_is_better
    curves = np.vstack([ahead.point, ahead.joint(rng, DRAWS)])
    met = curves >= target if rises else curves <= target
    first = np.argmax(met, axis=1)
    at = np.where(met.any(axis=1), grid[first], np.inf)
    inner = (first > 0) & met.any(axis=1)
    rows = np.flatnonzero(inner)
    left, right = curves[rows, first[rows] - 1], curves[rows, first[rows]]
    share = np.clip((target - left) / np.where(right == left, 1.0, right - left), 0.0, 1.0)
    at[rows] = grid[first[rows] - 1] + share * (grid[first[rows]] - grid[first[rows] - 1])
    at[met[:, 0]] = -np.inf
    return _Crossing(float(at[0]), at[1:], float(grid[0]), float(grid[-1]))


def _size_only(run: Run) -> dict[str, float]:
    count = _number(run.design.settings.get("n_samples"))
    if count is None:
        raise ForecastError(f"run {run.run_id} has no n_samples; a ratio needs it in every run")
    return {"n_samples": count}


def _factor(resource: str, crossings: Sequence[_Crossing], tables: Sequence[tuple[Array, Array]]) -> Factor:
    amounts = [_amount(table, np.array([c.point]))[0] for table, c in zip(tables, crossings, strict=True)]
    a, b = crossings
    if not np.isfinite(a.point) or not np.isfinite(b.point):
        known = [
            _amount(t, np.array([np.clip(c.point, c.low, c.high)]))[0] for t, c in zip(tables, crossings, strict=True)
        ]
        least = b.point == np.inf or a.point == -np.inf
        return Factor(
            resource=resource,
            kind="at least" if least else "at most",
            value=float(np.exp(known[1] - known[0])),
            a=float(np.exp(amounts[0])) if np.isfinite(amounts[0]) else None,
            b=float(np.exp(amounts[1])) if np.isfinite(amounts[1]) else None,
        )
    drawn = [_amount(table, c.draws) for table, c in zip(tables, crossings, strict=True)]
    with np.errstate(invalid="ignore"):
        difference = drawn[1] - drawn[0]
    low, high = (np.nan_to_num(difference, nan=n, posinf=np.inf, neginf=-np.inf) for n in (-np.inf, np.inf))
    lower, upper = np.quantile(low, 0.025, method="lower"), np.quantile(high, 0.975, method="higher")
    return Factor(
        resource=resource,
        kind="factor",
        value=float(np.exp(amounts[1] - amounts[0])),
        lower=float(np.exp(lower)) if np.isfinite(lower) else None,
        upper=float(np.exp(upper)) if np.isfinite(upper) else None,
        a=float(np.exp(amounts[0])),
        b=float(np.exp(amounts[1])),
    )


def _table(runs: Sequence[Run], amount: Callable[[Run], float | None]) -> tuple[Array, Array] | None:
    """Log amount against log samples, increasing in samples; None where fewer than two sizes know it."""
    found: dict[float, list[float]] = {}
    for run in runs:
        size, value = _number(run.design.settings.get("n_samples")), amount(run)
        if size and value:
            found.setdefault(float(np.log(size)), []).append(float(np.log(value)))
    if len(found) < 2:
        return None
    sizes = sorted(found)
    return np.array(sizes), np.array([float(np.mean(found[s])) for s in sizes])


def _amount(table: tuple[Array, Array], log_samples: Array) -> Array:
    """Log amount at log samples, inside the table linear; infinities stay."""
    inside = np.interp(log_samples, table[0], table[1])
    return np.where(np.isfinite(log_samples), inside, log_samples)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _counter(run: Run, name: str) -> float | None:
    return None if run.counters is None else _number(getattr(run.counters, name))


def _hours(run: Run) -> float | None:
    seconds = _counter(run, "gpu_s")
    return None if seconds is None else seconds / 3600


def _text(value: object) -> str:
    return "null" if value is None else str(value)


# resource -> its amount in one run, None where the run does not know it
RESOURCES: Mapping[str, Callable[[Run], float | None]] = {
    "samples": lambda run: _number(run.design.settings.get("n_samples")),
    "unique tokens": lambda run: _counter(run, "tokens_unique"),
    "processed tokens": lambda run: _counter(run, "tokens_processed"),
    "FLOPs": lambda run: _counter(run, "flops"),
    "GPU-hours": _hours,
}
