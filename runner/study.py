"""A study file: designs as a grid or a list, times seeds, what trains them, and where they run."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

import pydantic
from pydantic import BaseModel, Field, PrivateAttr

from forecast.errors import ForecastError
from forecast.records import Design, Record, Scalar, Target
from runner.naming import nearest, target_ids
from runner.own_training import PLACES, MetricRule, OwnTraining, fill, split_command, training_hash
from runner.presets import ExecutorChoice, Preset
from runner.spec import COMMAND_ENTRY, ENTRY, JobSpec

__all__ = ["ReplicateRule", "Replicates", "SeedRule", "Seeds", "Study", "load_study", "refuse_unfilled"]


class Rule(Record):
    """What holds for the designs whose settings match `where` (each a value or a list of values)."""

    where: dict[str, Any]

    def matches(self, settings: Mapping[str, Scalar]) -> bool:
        """Whether a design with `settings` is meant."""
        return all(
            name in settings and settings[name] in (wanted if isinstance(wanted, list) else [wanted])
            for name, wanted in _flat(self.where).items()
        )


class SeedRule(Rule):
    """More seeds for some designs."""

    seeds: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]


class ReplicateRule(Rule):
    """Another number of new runs for some targets."""

    replicates: Annotated[int, Field(gt=0)]


class Seeds(Record):
    """Explicit seeds, for studies that no registration governs."""

    default: tuple[Annotated[int, Field(ge=0)], ...] = (0,)
    more: tuple[SeedRule, ...] = ()

    def of(self, settings: Mapping[str, Scalar]) -> list[int]:
        """The seeds of a design, ascending."""
        found = set(self.default)
        for rule in self.more:
            if rule.matches(settings):
                found.update(rule.seeds)
        return sorted(found)


class Replicates(Record):
    """How many new runs of each target are meant; their seeds come from the registration."""

    default: Annotated[int, Field(gt=0)] = 1
    more: tuple[ReplicateRule, ...] = ()

    def of(self, settings: Mapping[str, Scalar]) -> int:
        """The new runs of a target: the last rule that matches its design, else the default."""
        return next((rule.replicates for rule in reversed(self.more) if rule.matches(settings)), self.default)


class Study(Record):
    """A study file, validated. `designs` and `grid` are taken times `design`, the constants.

    command: the user's own training as a command line; entry: as a Python function; neither: our own training.
    metric: what is known of the outcomes of a user's own training. time_limit_min: of one attempt of a command.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=60)]
    design: Annotated[dict[str, Any], Field(default_factory=dict)]
    grid: Annotated[dict[str, Any], Field(default_factory=dict)]
    designs: tuple[dict[str, Any], ...] = ()
    seeds: Seeds = Seeds()
    replicates: Replicates = Replicates()
    executor: ExecutorChoice = ExecutorChoice()
    presets: Annotated[dict[str, Preset], Field(default_factory=dict)]
    entry: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")] | None = None
    command: str | None = None
    time_limit_min: Annotated[float, Field(gt=0)] | None = None
    metric: Annotated[dict[str, MetricRule], Field(default_factory=dict)]

    _folder: Path = PrivateAttr(default_factory=Path.cwd)

    @property
    def job_entry(self) -> str:
        """The entry point of the study's job specs."""
        return COMMAND_ENTRY if self.command is not None else self.entry or ENTRY

    def own_training(self) -> OwnTraining | None:
        """What job specs say of the user's own training, None for ours. Refuses a command that cannot be filled in."""
        if self.command is not None and self.entry is not None:
            raise ForecastError(f"study {self.name} has a command and an entry; give one")
        if self.job_entry == ENTRY:
            given = "metric" if self.metric else "time_limit_min" if self.time_limit_min else None
            if given:
                raise ForecastError(
                    f"study {self.name}: {given} belongs to a command or entry of one's own; leave it out"
                )
            return None
        if self.time_limit_min is not None and self.command is None:
            raise ForecastError(f"study {self.name}: time_limit_min ends a command, not a Python entry; leave it out")
        words = None if self.command is None else split_command(self.command)
        return OwnTraining(
            command=words,
            folder=str(self._folder),
            metrics=tuple(rule.metric(name) for name, rule in self.metric.items()),
            time_limit_s=None if self.time_limit_min is None else 60 * self.time_limit_min,
            files_hash=training_hash(self._folder, words or ()),
        )

    def all_designs(self) -> list[Design]:
        """The study's designs in file order: the grid, then the list. Refuses an empty or double one."""
        constants = _flat(self.design)
        rows = [constants | row for row in _product(_flat(self.grid))] if self.grid else []
        rows += [constants | _flat(row) for row in self.designs]
        if not rows and constants:
            rows = [constants]
        rows = [_plain(self.name, row) for row in rows]
        if self.job_entry == ENTRY:
            rows = [_complete(self.name, row) for row in rows]
        designs = [_design(self.name, row) for row in rows]
        if self.command is not None:
            refuse_unfilled(split_command(self.command), designs)
        if not designs:
            raise ForecastError(f"study {self.name} has no design; give [design], [grid] or [[designs]]")
        seen: dict[str, int] = {}
        for number, design in enumerate(designs, 1):
            if design.hash in seen:
                raise ForecastError(
                    f"study {self.name}: design {number} repeats design {seen[design.hash]} "
                    f"({dict(design.settings)}); state each design once and give it more seeds"
                )
            seen[design.hash] = number
        return designs

    def job_specs(self, *, threads: int = 1) -> list[JobSpec]:
        """One job spec a design and seed, in file order."""
        own = self.own_training()
        specs = [
            JobSpec(
                run_id=f"{self.name}-{design.hash[:12]}-s{seed}",
                study=self.name,
                design=design,
                seed=seed,
                threads=threads,
                entry=self.job_entry,
                own=own,
            )
            for design in self.all_designs()
            for seed in self.seeds.of(design.settings)
        ]
        if not specs:
            raise ForecastError(f"study {self.name} has no seed; give [seeds] default = [0]")
        return specs

    def targets(self) -> list[Target]:
        """The study's designs as targets of a forecast, with ids made of the settings that vary."""
        designs = self.all_designs()
        return [
            Target(target=name, design=design, replicates=self.replicates.of(design.settings))
            for name, design in zip(target_ids(designs), designs, strict=True)
        ]


def load_study(path: Path) -> Study:
    """Read and validate a study file. Raises ForecastError with the key, the rule and the fix."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise ForecastError(f"study file {path} does not exist") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ForecastError(f"{path} is not a TOML file: {error}") from error
    try:
        study = Study.model_validate(content)
    except pydantic.ValidationError as error:
        problems = "\n".join(f"  {_sentence(problem)}" for problem in error.errors())
        raise ForecastError(f"{path}: {error.error_count()} problem(s)\n{problems}") from error
    study.executor.resolve(study.presets)
    study._folder = path.resolve().parent
    return study


def refuse_unfilled(words: Sequence[str], designs: Sequence[Design]) -> None:
    """Refuse a command that names what a design does not set, before anything is launched."""
    for design in designs:
        taken = sorted(set(PLACES) & design.settings.keys())
        if taken:
            raise ForecastError(
                f"a design sets {taken[0]!r}, which a command gets from us; call that setting otherwise"
            )
        fill(words, {**dict.fromkeys(PLACES, ""), **design.settings})


def _sentence(problem: Any) -> str:
    where = ".".join(str(part) for part in problem["loc"])
    if problem["type"] != "extra_forbidden":
        return f"{where}: {problem['msg']}, got {problem['input']!r}"
    return f"{where}: unknown key; {nearest(str(problem['loc'][-1]), _known_keys(problem['loc'][:-1]))}"


def _known_keys(location: Sequence[int | str]) -> list[str]:
    """The keys that are valid at `location` of a study file."""
    model: Any = Study
    for part in location:
        if isinstance(model, type) and issubclass(model, BaseModel):
            model = model.model_fields[str(part)].annotation
        else:
            model = [inner for inner in get_args(model) if inner is not Ellipsis][-1]
    return sorted(model.model_fields)


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested table with its names joined by dots; values (lists too) as they are."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        inner = _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
        if twice := flat.keys() & inner.keys():
            raise ForecastError(f"setting {min(twice)} is given twice, flat and as a table; give it once")
        flat |= inner
    return flat


def _product(grid: Mapping[str, Any]) -> list[dict[str, Any]]:
    for name, values in grid.items():
        if not isinstance(values, list) or not values:
            raise ForecastError(f"grid.{name} must be a list of at least one value, got {values!r}")
    return [dict(zip(grid, row, strict=True)) for row in itertools.product(*grid.values())]


def _complete(study: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of our own training with every default filled in: a design's hash is of all of them."""
    from runner.settings import complete_settings

    try:
        return complete_settings(settings)
    except ForecastError as error:
        raise ForecastError(f"study {study}: {error}") from error


def _plain(study: str, settings: dict[str, Any]) -> dict[str, Any]:
    """`settings` if each is one finite value, with a whole n_samples as an integer (1e5 is one)."""
    for name, value in settings.items():
        if not isinstance(value, (bool, int, float, str)) or value in (float("inf"), float("-inf")) or value != value:
            raise ForecastError(
                f"study {study}: design.{name} must be one value (a finite number, text, true or false), "
                f"got {value!r}; give a list of values in [grid]"
            )
    samples = settings.get("n_samples")
    whole = isinstance(samples, float) and samples.is_integer()
    return settings | {"n_samples": int(samples)} if whole else settings  # type: ignore[arg-type]


def _design(study: str, settings: dict[str, Any]) -> Design:
    try:
        return Design(settings=settings)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:2])
        raise ForecastError(f"study {study}: design {settings}: {where} {first['msg']}".replace("  ", " ")) from error
