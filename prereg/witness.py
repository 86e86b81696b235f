"""What time tokens show of a log's entries, and what they do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from forecast.errors import CheckFailed
from forecast.files import read_regular, sha256_hex
from prereg.finding import Finding
from prereg.log import signature_path
from prereg.stamping import TokenFile, authority_path, token_files
from prereg.time import Token, load_certificates, read_token

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

__all__ = ["Witness", "examine_tokens"]


@dataclass
class Witness:
    """The tokens of a log. tokens: per entry number, those that verify; trusted: by the verifier's own CA."""

    tokens: dict[int, list[Token]] = field(default_factory=dict)
    trusted: bool = False
    findings: list[Finding] = field(default_factory=list)

    def earliest(self, seq: int) -> Token | None:
        """The earliest token that shows entry `seq`: its own, or one of a later entry, which holds its hash."""
        found = [token for number, tokens in self.tokens.items() if number >= seq for token in tokens]
        return min(found, key=lambda token: token.time, default=None)

    def evidence(self, seq: int) -> Token | None:
        """As `earliest`, if the token is one to believe: a trusted CA, and no TEST."""
        token = self.earliest(seq)
        return token if token and self.trusted and not token.test else None


def examine_tokens(
    folder: Path, stamped: Mapping[str, tuple[str, str, int]], trusted: Sequence[Certificate] | None
) -> Witness:
    """Every token beside the entries against its signature, its CA and what `stamp` entries hold of it.

    stamped: per token file its sha256, its CA's sha256 and the number of the `stamp` entry.
    trusted: CAs from outside the log; None takes the log's own, which is no evidence.
    """
    witness = Witness(trusted=trusted is not None)
    present = token_files(folder)
    for name in sorted(set(stamped) - {token.path.name for token in present}):
        _fail(witness, f"MISSING token {name!r}, which entry {stamped[name][2]} holds the hash of", stamped[name][2])
    unchained = 0
    for token in present:
        unchained += token.path.name not in stamped
        problem = _examine(witness, folder, token, stamped.get(token.path.name), trusted)
        if problem:
            _fail(witness, f"{token.path.name}: TAMPERED: {problem}", token.entry.seq)
    if unchained:
        text = f"{unchained} time tokens are not yet chained by a `stamp` entry; run: platocast log stamp"
        witness.findings.append(Finding(level="warning", code="token", text=text))
    return witness


def time_finding(witness: Witness, seq: int, written: str) -> Finding:
    """By when entry `seq` existed; `written`, its own date, is only a claim."""
    token, claim = witness.earliest(seq), f"the file's own date {written} is a claim"
    if token is None:
        return Finding(level="not examined", code="time", seq=seq, text=f"entry {seq}: time owed; {claim}")
    said = f"{token.text}, says {token.subject}"
    if token.test:
        text = f"entry {seq}: TEST, no evidence: by {said}; {claim}"
        return Finding(level="not examined", code="time", seq=seq, text=text)
    if not witness.trusted:
        text = f"entry {seq}: by {said}, whose CA is the log's own: give the authority's with --authority-ca; {claim}"
        return Finding(level="not examined", code="time", seq=seq, text=text)
    text = f"entry {seq}: registered by {said}; {claim}"
    return Finding(level="verified", code="time", seq=seq, text=text)


def _examine(
    witness: Witness,
    folder: Path,
    token: TokenFile,
    stamped: tuple[str, str, int] | None,
    trusted: Sequence[Certificate] | None,
) -> str | None:
    """What is wrong with `token`; None, and the token noted, if nothing is."""
    try:
        response = read_regular(token.path)
        data = signature_path(folder / token.entry.text).read_bytes()
        pem = authority_path(folder, token.authority).read_bytes()
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    if stamped and sha256_hex(response) != stamped[0]:
        return f"entry {stamped[2]} holds another hash of it"
    if stamped and sha256_hex(pem) != stamped[1]:
        return f"entry {stamped[2]} holds another hash of the CA of {token.authority}"
    try:
        own = read_token(response, data, load_certificates(pem))
    except CheckFailed as error:
        return str(error)
    if trusted is None:
        witness.tokens.setdefault(token.entry.seq, []).append(own)
        return None
    try:
        witness.tokens.setdefault(token.entry.seq, []).append(read_token(response, data, trusted))
    except CheckFailed:
        text = f"{token.path.name}: by {own.subject}, which is no authority of yours; it is not counted"
        witness.findings.append(Finding(level="warning", code="token", seq=token.entry.seq, text=text))
    return None


def _fail(witness: Witness, text: str, seq: int) -> None:
    witness.findings.append(Finding(level="failed", code="token", seq=seq, text=text))
