"""What a user's own training leaves behind: metrics.json, or a whole run.json, or what its function returns."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pydantic

from forecast.directions import less_is_better
from forecast.errors import ForecastError
from forecast.records import Counters, Evaluation, LossCurve, Metric, Provenance, Run
from runner.naming import nearest
from runner.spec import JobSpec

__all__ = ["METRICS", "RUN", "OwnOutcome", "outcome_from", "read_outcome"]

METRICS, RUN = "metrics.json", "run.json"
_TOLD = ("data_hash", "hardware", "precision", "seeds", "text_authors", "world_size")
"""What a training may say of where its number comes from, under `provenance`."""
_RESERVED = {"counters", "provenance", "loss_curve"}


@dataclass(frozen=True)
class OwnOutcome:
    """What a run of a user's own training leaves; `told`: fields of Provenance that only it knows."""

    evaluations: tuple[Evaluation, ...]
    counters: Counters = field(default_factory=Counters)
    loss_curve: LossCurve | None = None
    told: Mapping[str, Any] = field(default_factory=dict)


def read_outcome(folder: Path, spec: JobSpec) -> OwnOutcome:
    """The outcome in a run's folder. ForecastError with the file, the name and the rule where it is none."""
    written = [folder / name for name in (METRICS, RUN) if (folder / name).exists()]
    if not written:
        raise ForecastError(f"the command ended well but wrote no {METRICS} (nor {RUN}) into {{run_dir}}")
    if len(written) > 1:
        raise ForecastError(f"the command wrote both {METRICS} and {RUN}; write one")
    content = _parsed(written[0])
    if written[0].name == RUN:
        return _from_run(content, spec)
    return outcome_from(content, spec.own.metrics if spec.own else (), METRICS)


def outcome_from(content: Any, declared: Sequence[Metric], source: str) -> OwnOutcome:
    """The outcome in the content of a metrics.json; `source` is what errors call it.

    Each key is a metric: a number, or {"value": ..., "hits": [...], "trials": n, "chance": ..., ...}. Keys of
    another kind are no metrics. `counters`, `provenance` and `loss_curve` are not metrics but what they say.
    """
    if not isinstance(content, Mapping):
        raise ForecastError(f'{source} must hold an object such as {{"alignment": 0.12}}, got {content!r:.80}')
    found = {name: value for name, value in content.items() if name not in _RESERVED}
    if declared:
        absent = [metric.name for metric in declared if metric.name not in found]
        if absent:
            raise ForecastError(f"{source} has no {absent[0]!r}, which the study declares; it has {_listed(found)}")
        rules = {metric.name: metric for metric in declared}
    else:
        rules = {
            name: Metric(name=name, higher_is_better=not less_is_better(name))
            for name, value in found.items()
            if isinstance(value, Mapping) or _is_number(value)
        }
    if not rules:
        raise ForecastError(f"{source} holds no number; write one per metric; it has {_listed(found)}")
    return OwnOutcome(
        tuple(_evaluation(rules[name], found[name], source, name in {m.name for m in declared}) for name in rules),
        _counters(content.get("counters"), source),
        _loss_curve(content.get("loss_curve"), source),
        _told(content.get("provenance"), source),
    )


def _evaluation(rule: Metric, value: Any, source: str, declared: bool) -> Evaluation:
    more = dict(value) if isinstance(value, Mapping) else {"value": value}
    number = more.pop("value", None)
    if not _is_number(number) or not math.isfinite(number):
        raise ForecastError(f"{source}: {rule.name} must be a finite number, got {number!r}")
    said = {name: more.pop(name) for name in tuple(more) if name in Metric.model_fields and name != "name"}
    try:
        metric = rule if declared else Metric.model_validate(rule.model_dump() | said)
        return Evaluation.model_validate({"metric": metric.model_dump(), "value": number, **more})
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ForecastError(f"{source}: {rule.name}: {where} {first['msg']}".replace("  ", " ")) from error


def _counters(given: Any, source: str) -> Counters:
    """The counters that can be read. A misspelt one costs its name on standard error, not the run."""
    kept = {}
    for name, value in (given if isinstance(given, Mapping) else {}).items():
        if name not in Counters.model_fields:
            _say(f"{source}: counters.{name} is not known and is left out; {nearest(name, Counters.model_fields)}")
        elif not _is_number(value) or not math.isfinite(value) or value < 0:
            _say(f"{source}: counters.{name} must be a number >= 0, got {value!r}; it is left out")
        else:
            kept[name] = value if name.endswith("_s") else round(value)
    return Counters.model_validate(kept)


def _loss_curve(given: Any, source: str) -> LossCurve | None:
    if given is None:
        return None
    try:
        return LossCurve.model_validate(given)
    except pydantic.ValidationError as error:
        _say(f'{source}: loss_curve must be {{"steps": [...], "loss": [...]}}: {error.errors()[0]["msg"]}; left out')
        return None


def _told(given: Any, source: str) -> dict[str, Any]:
    kept = {}
    for name, value in (given if isinstance(given, Mapping) else {}).items():
        try:
            if name not in _TOLD:
                raise ForecastError(f"is not known; {nearest(name, _TOLD)}")
            kept[name] = getattr(Provenance.model_validate({name: value}), name)
        except (ForecastError, pydantic.ValidationError) as error:
            _say(f"{source}: provenance.{name} is left out: {str(error).splitlines()[-1].strip()}")
    return kept


def _from_run(content: Any, spec: JobSpec) -> OwnOutcome:
    try:
        run = Run.model_validate(content)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        raise ForecastError(f"{RUN} is not a run: {'.'.join(map(str, first['loc']))} {first['msg']}") from error
    if run.design.hash != spec.design.hash:
        raise ForecastError(f"{RUN} is of another design ({dict(run.design.settings)}) than the job was told")
    if run.seed is not None and run.seed != spec.seed:
        raise ForecastError(f"{RUN} is of seed {run.seed}, the job was told {spec.seed}")
    if run.status == "failed":
        raise ForecastError(f"{RUN} says that the run failed: {run.failure}")
    told = {} if run.provenance is None else run.provenance.model_dump(include=set(_TOLD), exclude_none=True)
    return OwnOutcome(run.evaluations, run.counters or Counters(), run.loss_curve, told)


def _parsed(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes(), object_pairs_hook=_each_key_once)
    except (ValueError, RecursionError) as error:
        raise ForecastError(
            f"{path.name} is not JSON: {error}; write it whole, under another name, then rename"
        ) from error


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} stands twice")
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _listed(found: Mapping[str, Any]) -> str:
    return ", ".join(list(found)[:20]) or "nothing"


def _say(text: str) -> None:
    sys.stderr.write(f"platocast: {text}\n")
