"""Second thoughts are entries of their own: nothing that was signed is ever rewritten."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from forecast.errors import ForecastError
from prereg.log import Log, SignedEntry
from prereg.statement import SignedRegistration, find_registration

__all__ = ["amend", "withdraw"]


def amend(folder: Path, reference: str, *, text: str, key: Path, deadline: str | None = None) -> SignedEntry:
    """Sign a note on a registration, and a later deadline where one is given. Forecasts stay as they are."""
    registration = _open_registration(folder, reference)
    body: dict[str, object] = {"registration": registration.digest, "text": _said(text)}
    if deadline is not None:
        try:
            date.fromisoformat(deadline)
        except ValueError as error:
            raise ForecastError(f"the deadline is a day as YYYY-MM-DD, got {deadline!r}") from error
        body["deadline"] = deadline
    return Log(folder).append("amend", body, key=key)


def withdraw(folder: Path, reference: str, *, reason: str, key: Path) -> SignedEntry:
    """Sign that a registration is given up; it stays listed, as withdrawn and unresolved."""
    registration = _open_registration(folder, reference)
    return Log(folder).append("withdraw", {"registration": registration.digest, "reason": _said(reason)}, key=key)


def _open_registration(folder: Path, reference: str) -> SignedRegistration:
    registration = find_registration(reference, log=folder)
    log = Log(folder)
    for name in log.names():
        if name.kind in ("withdraw", "resolve") and log.read(name).body.get("registration") == registration.digest:
            raise ForecastError(f"entry {name.text} has closed registration {registration.signed.seq} already")
    return registration


def _said(text: str) -> str:
    if not text.strip():
        raise ForecastError("say in words what changes and why; an empty text tells a reader nothing")
    return text
