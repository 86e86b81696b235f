"""NAME=VALUE words of the command line, read."""

from __future__ import annotations

from collections.abc import Sequence

from forecast.errors import ForecastError

__all__ = ["numbers_of", "pairs_of"]


def pairs_of(words: Sequence[str], option: str) -> dict[str, str]:
    """{"n": "samples"} from ["n=samples"]. Raises ForecastError with the option's name."""
    out: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise ForecastError(f"{option} needs NAME=VALUE, got {word!r}")
        out[name.strip()] = value.strip()
    return out


def numbers_of(words: Sequence[str], option: str) -> dict[str, float]:
    """{"A": 0.5} from ["A=0.5"]. Raises ForecastError with the option's name."""
    try:
        return {name: float(value) for name, value in pairs_of(words, option).items()}
    except ValueError as error:
        raise ForecastError(f"{option} needs NAME=NUMBER, got {words!r}") from error
