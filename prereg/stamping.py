"""Pay the time that a log owes: fetch tokens, keep them and their CA beside the entries, chain them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forecast.errors import ForecastError
from forecast.files import sha256_hex
from prereg.entry import EntryName
from prereg.log import Log, SignedEntry, signature_path
from prereg.publish import lock, publish
from prereg.time import Authority, AuthorityAway, load_certificates, read_token, request_token

__all__ = ["TokenFile", "authority_path", "owed", "stamp", "token_files"]

_TOKEN = re.compile(r"(?P<entry>[0-9]{4,12}-[a-z]+\.json)\.(?P<authority>[a-z0-9][a-z0-9-]{0,39})\.tsr")


@dataclass(frozen=True)
class TokenFile:
    """A token beside an entry: NNNN-KIND.json.AUTHORITY.tsr."""

    path: Path
    entry: EntryName
    authority: str


def token_files(folder: Path) -> list[TokenFile]:
    """The token files in `folder`, by entry and authority."""
    found = []
    for name in os.listdir(folder):
        match = _TOKEN.fullmatch(name)
        entry = EntryName.parse(match["entry"]) if match else None
        if match and entry:
            found.append(TokenFile(folder / name, entry, match["authority"]))
    return sorted(found, key=lambda token: (token.entry.seq, token.authority))


def authority_path(folder: Path, authority: str) -> Path:
    """Where the CA of `authority` is kept."""
    return folder / "authorities" / f"{authority}.pem"


def owed(folder: Path) -> list[EntryName]:
    """The entries that no authority has stamped; `stamp` entries owe nothing."""
    stamped = {token.entry.seq for token in token_files(folder)}
    return [name for name in Log(folder).names() if name.kind != "stamp" and name.seq not in stamped]


def stamp(
    folder: Path, authorities: Sequence[Authority], *, key: Path
) -> tuple[SignedEntry | None, list[AuthorityAway]]:
    """Fetch a token of each authority for each entry that owes one, then chain all tokens not yet chained.

    Returns the new `stamp` entry, None if nothing was to be chained, and who was away: what they owe stays owed.
    """
    if not authorities:
        raise ForecastError("no authority was given; time cannot be paid")
    away: list[AuthorityAway] = []
    with lock(folder):
        for authority in authorities:
            _keep_certificates(folder, authority)
            try:
                _fetch(folder, authority)
            except AuthorityAway as error:
                away.append(error)
    tokens = [_described(folder, token) for token in _unchained(folder)]
    if not tokens:
        return None, away
    return Log(folder).append("stamp", {"tokens": tokens}, key=key), away


def chained(signed: SignedEntry) -> Iterator[tuple[str, str, str, str]]:
    """What a `stamp` entry holds: file name and sha256 of each token, authority and sha256 of its CA."""
    rows = signed.body.get("tokens")
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict):
            yield tuple(str(row.get(name)) for name in ("file", "sha256", "authority", "ca_sha256"))  # type: ignore[misc]


def _keep_certificates(folder: Path, authority: Authority) -> None:
    path = authority_path(folder, authority.name)
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        publish(path, authority.certificates)
    elif path.read_bytes() != authority.certificates:
        raise ForecastError(f"{path} holds another CA than the one given for {authority.name}; give it another name")


def _fetch(folder: Path, authority: Authority) -> None:
    have = {token.entry.seq for token in token_files(folder) if token.authority == authority.name}
    for name in Log(folder).names():
        if name.kind == "stamp" or name.seq in have:
            continue
        path = folder / name.text
        Log(folder).read(name)  # a signature that does not verify is not worth a token
        response = request_token(signature_path(path).read_bytes(), authority)
        publish(path.with_name(f"{path.name}.{authority.name}.tsr"), response)


def _unchained(folder: Path) -> list[TokenFile]:
    log = Log(folder)
    known = {row[0] for name in log.names() if name.kind == "stamp" for row in chained(log.read(name))}
    return [token for token in token_files(folder) if token.path.name not in known]


def _described(folder: Path, token: TokenFile) -> dict[str, Any]:
    pem = authority_path(folder, token.authority).read_bytes()
    data, response = signature_path(folder / token.entry.text).read_bytes(), token.path.read_bytes()
    read_token(response, data, load_certificates(pem))
    return {
        "file": token.path.name,
        "entry": token.entry.seq,
        "sha256": sha256_hex(response),
        "authority": token.authority,
        "ca_sha256": sha256_hex(pem),
    }
