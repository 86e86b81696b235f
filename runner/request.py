"""What `launch` was asked for: the runs, where they run, and the registration that governs them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic

from forecast.console import note
from forecast.errors import ForecastError
from runner.presets import ExecutorChoice, Preset
from runner.spec import ENTRY, JobSpec
from runner.study import load_study

if TYPE_CHECKING:
    from prereg.statement import SignedRegistration

__all__ = ["Request", "read_request"]


@dataclass(frozen=True)
class Request:
    """The runs of one study or one registration; log: the registration's folder."""

    specs: list[JobSpec]
    choice: ExecutorChoice
    preset: Preset
    registration: SignedRegistration | None = None
    log: Path | None = None

    def check(self, *, key: Path | None, other_code: bool) -> None:
        """Refuse before anything is submitted: a key that cannot sign, code that is not the registered one."""
        if self.registration is None or self.log is None:
            if key is not None:
                raise ForecastError("--key signs in a registration's log; a study has none, leave --key out")
            return
        from runner.registered import refuse_foreign, refuse_other_code, require_key
        from runner.snapshot import code_hash, own_root

        if key is None:
            note("no --key: the log will not say that these runs were launched")
        else:
            require_key(self.log, key)
        refuse_foreign(spec.design for spec in self.specs if spec.entry == ENTRY)
        if not other_code:
            refuse_other_code(self.registration, code_hash(own_root()))

    def sign(self, folder: Path, key: Path | None) -> list[Path]:
        """Write the log's `launch` entries; the new files."""
        if key is None or self.log is None:
            return []
        from runner.registered import sign_launches

        return sign_launches(folder, self.log, key)


def read_request(
    what: Path,
    *,
    executor: str | None = None,
    jobs: int | None = None,
    threads: int | None = None,
    runs_per_job: str = "auto",
    presets: Path | None = None,
) -> Request:
    """Read a study file or a registration (verified first); options override the study's [executor].

    presets: a study file whose [executor], [presets] and command or entry a registration's runs use.
    """
    given: dict[str, Any] = {"preset": executor, "jobs": jobs, "threads": threads}
    if runs_per_job != "auto":
        given["runs_per_job"] = runs_per_job
    given = {name: value for name, value in given.items() if value is not None}
    if what.suffix == ".toml":
        if presets is not None:
            raise ForecastError("--presets is for a registration; a study has its own [executor] and [presets]")
        study = load_study(what)
        choice = _choice(study.executor, given)
        return Request(study.job_specs(threads=choice.threads), choice, choice.resolve(study.presets))
    if what.suffix != ".json":
        raise ForecastError(f"{what} is neither a study (.toml) nor a registration (LOG/NNNN-register.json)")
    from runner.registered import registered_specs, verified_registration

    places = load_study(presets) if presets else None
    choice = _choice(places.executor if places else ExecutorChoice(), given)
    registration = verified_registration(what)
    entry, own = (places.job_entry, places.own_training()) if places else (ENTRY, None)
    specs = registered_specs(registration, threads=choice.threads, entry=entry, own=own)
    return Request(specs, choice, choice.resolve(places.presets if places else {}), registration, what.parent)


def _choice(base: ExecutorChoice, given: dict[str, Any]) -> ExecutorChoice:
    try:
        return ExecutorChoice.model_validate(base.model_dump() | given)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).replace("_", "-")
        raise ForecastError(f"--{name}: {first['msg']}, got {first['input']!r}") from error
