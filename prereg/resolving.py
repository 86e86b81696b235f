"""The entry that closes a registration: what was checked, against which bytes, with what result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from forecast.errors import ForecastError
from forecast.files import sha256_hex
from prereg.check import Check
from prereg.log import Log, SignedEntry

__all__ = ["resolve"]


def resolve(folder: Path, result: Check, *, ledger: Path, key: Path) -> SignedEntry:
    """Sign `result` into the log in `folder`, with the sha256 of the ledger file and of each outcome used."""
    log = Log(folder)
    for name in log.names():
        if name.kind == "resolve" and log.read(name).body.get("registration") == result.registration:
            raise ForecastError(f"{folder / name.text} has resolved this registration already")
    try:
        ledger_bytes = ledger.read_bytes()
    except OSError as error:
        raise ForecastError(f"{ledger}: cannot be read ({error.strerror})") from error
    check: dict[str, Any] = json.loads(result.model_dump_json())
    body = {
        "registration": result.registration,
        "headline": result.headline,
        "ledger_sha256": sha256_hex(ledger_bytes),
        "check": check,
    }
    return log.append("resolve", body, key=key)
