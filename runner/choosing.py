"""Which of a study's runs are meant: by setting or id, in which order."""

from __future__ import annotations

import random
from collections.abc import Sequence

from forecast.errors import ForecastError
from runner.naming import nearest
from runner.spec import JobSpec

__all__ = ["choose"]


def choose(specs: Sequence[JobSpec], only: Sequence[str], shuffle: int | None) -> list[JobSpec]:
    """The runs that match every word of `only`, in an order drawn with the seed `shuffle` (None: as they are).

    A word is a setting ("n_samples=8000", "seed=3", "target=g050-n96000") or a run id.
    """
    chosen = [spec for spec in specs if all(_matches(spec, word, specs) for word in only)]
    if not chosen:
        raise ForecastError(f"no run matches {' and '.join(only)}; leave --only out to see all with --dry-run")
    if shuffle is not None:
        random.Random(shuffle).shuffle(chosen)
    return chosen


def _matches(spec: JobSpec, word: str, specs: Sequence[JobSpec]) -> bool:
    name, equals, wanted = word.partition("=")
    if not equals:
        return spec.run_id == word
    values = {**spec.design.settings, "seed": spec.seed, "target": spec.target, "replicate": spec.replicate}
    if name not in values:
        known = {key for one in specs for key in one.design.settings} | {"seed", "target", "replicate"}
        if name not in known:
            raise ForecastError(f"--only {word}: no run has a setting {name!r}; {nearest(name, known)}")
        return False
    value = values[name]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(wanted) == float(value)
        except ValueError as error:
            raise ForecastError(f"--only {word}: {name} is a number, got {wanted!r}") from error
    return wanted.lower() == str(value).lower()
