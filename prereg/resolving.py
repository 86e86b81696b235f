"""The entry that closes a registration: what was checked, against which bytes, with what result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from forecast.errors import ForecastError
from forecast.files import sha256_hex
from prereg.check import Check
from prereg.entry import EntryName
from prereg.finding import Finding
from prereg.log import Log, SignedEntry
from prereg.verify import Verification

__all__ = ["resolve", "signed_in"]


def signed_in(found: Verification, folder: Path, check: Check) -> Finding:
    """Whether the log in `folder` signed exactly this check."""
    standing = found.standings.all.get(check.registration)
    if standing is None or standing.resolved is None:
        text = "this check is signed nowhere: its figures are its file's word; make it again with `platocast check`"
        return Finding(level="not examined", code="check", text=text)
    entry = Log(folder).read(EntryName(seq=standing.resolved, kind="resolve"))
    if entry.body.get("check") == json.loads(check.model_dump_json()):
        return Finding(
            level="verified", code="check", seq=entry.seq, text=f"entry {entry.seq} signed exactly this check"
        )
    text = f"this is not the check that entry {entry.seq} signed"
    return Finding(level="failed", code="check", seq=entry.seq, text=text)


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
