"""One signed event: its file's bytes, read strictly and never written a second time."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import AfterValidator, Field, ValidationError

from forecast.errors import CheckFailed, ForecastError
from forecast.records import Frozen, Record, Sha256

__all__ = ["FORMAT", "KINDS", "Entry", "EntryName", "Kind", "encode", "parse_strictly", "read_entry", "utc_now"]

FORMAT = "platocast-log-1"
Kind = Literal["key", "register", "stamp", "amend", "withdraw", "launch", "resolve"]
KINDS: tuple[str, ...] = get_args(Kind)
LARGEST_INTEGER = 2**53
_NAME = re.compile(rf"([0-9]{{4,12}})-({'|'.join(KINDS)})\.json")


def _one_line(text: str) -> str:
    if not text.strip() or any(ord(letter) < 32 or ord(letter) == 127 for letter in text):
        raise ValueError("must be one line of text, not empty and without control characters")
    return text


OneLine = Annotated[str, Field(max_length=200), AfterValidator(_one_line)]


class Entry(Record):
    """One event of a log, as its file states it.

    seq: 1, 2, 3, ... without a gap.
    previous, previous_signature: sha256 of the entry before and of its .sig; null in the first.
    written: the writer's clock, UTC, ISO 8601; a claim, never evidence.
    """

    format: Literal["platocast-log-1"] = "platocast-log-1"
    seq: Annotated[int, Field(ge=1)]
    kind: Kind
    previous: Sha256 | None
    previous_signature: Sha256 | None
    written: Annotated[str, Field(max_length=40)]
    author: OneLine
    body: Annotated[Mapping[str, Any], *Frozen]


@dataclass(frozen=True)
class EntryName:
    """The number and kind that a file's name states."""

    seq: int
    kind: Kind

    @property
    def text(self) -> str:
        """The file's name: at least four digits, a hyphen, the kind."""
        return f"{self.seq:04d}-{self.kind}.json"

    @classmethod
    def parse(cls, name: str) -> EntryName | None:
        """What `name` states, or None if it is no entry's name (leading zeros beyond four digits are none)."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        parsed = cls(int(match[1]), cast("Kind", match[2]))
        return parsed if parsed.text == name else None


def utc_now() -> str:
    """The writer's clock in UTC to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def encode(entry: Entry) -> bytes:
    """The bytes of a new entry: JSON that a person can read. They are signed as they are."""
    try:
        text = json.dumps(entry.model_dump(), ensure_ascii=False, indent=1, allow_nan=False)
        data = (text + "\n").encode("utf-8")
    except (ValueError, TypeError) as error:
        raise ForecastError(f"this {entry.kind} entry cannot be written as JSON: {error}") from error
    try:
        read_entry(data)  # what we could not read back, we do not sign
    except CheckFailed as error:
        raise ForecastError(f"this {entry.kind} entry cannot be written: {error}") from error
    return data


def parse_strictly(data: bytes) -> dict[str, Any]:
    """The JSON object in `data`.

    Refuses (CheckFailed) what two readers could read differently: duplicate keys, NaN, infinities,
    numbers beyond a double, integers beyond 2^53, bytes that are not UTF-8.
    """
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_no_duplicates,
            parse_constant=_no_constants,
            parse_float=_finite,
            parse_int=_exact,
        )
    except RecursionError as error:
        raise CheckFailed("JSON is nested too deeply") from error
    except ValueError as error:
        raise CheckFailed(f"not the JSON that we accept: {error}") from error
    if not isinstance(value, dict):
        raise CheckFailed(f"expected a JSON object, got {type(value).__name__}")
    return value


def read_entry(data: bytes) -> Entry:
    """The entry in `data`, whose signature the caller has verified; CheckFailed says what is wrong."""
    value = parse_strictly(data)
    try:
        return Entry.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise CheckFailed(f"not an entry of {FORMAT}: {where}: {first['msg']}") from error


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {name!r} stands twice in one object")
        found[name] = value
    return found


def _no_constants(text: str) -> float:
    raise ValueError(f"{text} is not a number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is beyond a double")
    return value


def _exact(text: str) -> int:
    if len(text) > 17 or abs(int(text)) > LARGEST_INTEGER:
        raise ValueError(f"the integer {text[:24]} may pass 2^53; such integers are written as text")
    return int(text)
