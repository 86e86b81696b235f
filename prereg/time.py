"""Time from somebody else: RFC 3161 tokens over an entry's signature."""

from __future__ import annotations

import re
import tomllib
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forecast.errors import CheckFailed, ForecastError

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

__all__ = ["Authority", "AuthorityAway", "Token", "read_authorities", "read_token", "request_token"]

TIMEOUT_S = 20
LARGEST_RESPONSE = 1 << 20


class AuthorityAway(ForecastError):
    """An authority could not be reached or gave no token: the time is owed."""


@dataclass(frozen=True)
class Authority:
    """A time-stamping authority. certificates: its CA as PEM; it is kept beside the tokens."""

    name: str
    url: str
    certificates: bytes


@dataclass(frozen=True)
class Token:
    """A verified token. time: UTC; subject: of the certificate that signed it; test: it says TEST of itself."""

    time: datetime
    subject: str
    serial: int
    test: bool

    @property
    def text(self) -> str:
        """The time, to the second, as ISO 8601 in UTC."""
        return self.time.strftime("%Y-%m-%dT%H:%M:%SZ")


def read_authorities(path: Path | str) -> list[Authority]:
    """The authorities in a TOML file: [[authority]] name, url, ca (a PEM file beside it)."""
    path = Path(path)
    try:
        rows = tomllib.loads(path.read_text(encoding="utf-8")).get("authority")
    except (OSError, ValueError) as error:
        raise ForecastError(f"{path}: no TOML with [[authority]] name, url, ca: {error}") from error
    if not isinstance(rows, list) or not rows:
        raise ForecastError(f"{path}: names no authority; add [[authority]] with name, url and ca")
    found: list[Authority] = []
    for row in rows:
        found.append(_authority(path, row))
    if len({authority.name for authority in found}) != len(found):
        raise ForecastError(f"{path}: two authorities have one name")
    return found


def request_token(data: bytes, authority: Authority) -> bytes:
    """The authority's full response over `data`, verified; AuthorityAway where there is none."""
    import rfc3161_client

    request = (
        rfc3161_client.TimestampRequestBuilder()
        .data(data)
        .hash_algorithm(rfc3161_client.HashAlgorithm.SHA512)
        .nonce(nonce=True)
        .cert_request(cert_request=True)
        .build()
    )
    headers = {"Content-Type": "application/timestamp-query", "Accept": "application/timestamp-reply"}
    call = urllib.request.Request(authority.url, data=request.as_bytes(), headers=headers, method="POST")
    try:
        with urllib.request.urlopen(call, timeout=TIMEOUT_S) as answer:
            response: bytes = answer.read(LARGEST_RESPONSE)
    except (OSError, ValueError) as error:
        raise AuthorityAway(f"authority {authority.name} ({authority.url}) is away: {error}") from error
    try:
        _verify(response, data, load_certificates(authority.certificates), nonce=request.nonce)
    except CheckFailed as error:
        raise AuthorityAway(f"authority {authority.name} gave no token that we accept: {error}") from error
    return response


def read_token(response: bytes, data: bytes, certificates: Sequence[Certificate]) -> Token:
    """The token in `response` over `data`, verified against `certificates`; CheckFailed if it is not good."""
    return _verify(response, data, certificates, nonce=None)


def load_certificates(pem: bytes) -> list[Certificate]:
    """The certificates in `pem`; CheckFailed if there is none."""
    from cryptography.x509 import load_pem_x509_certificates

    try:
        return load_pem_x509_certificates(pem)
    except ValueError as error:
        raise CheckFailed(f"not a PEM file of certificates: {error}") from error


def _verify(response: bytes, data: bytes, certificates: Sequence[Certificate], *, nonce: int | None) -> Token:
    import rfc3161_client

    try:
        decoded = rfc3161_client.decode_timestamp_response(response)
        roots = [c for c in certificates if c.issuer == c.subject]
        verifier = rfc3161_client.VerifierBuilder(
            roots=roots, intermediates=[c for c in certificates if c not in roots], nonce=nonce
        ).build()
        verifier.verify_message(decoded, data)
        subject = _signer(decoded).subject.rfc4514_string()
        info = decoded.tst_info
        found = Token(info.gen_time.astimezone(UTC), subject, info.serial_number, _says_test(subject, certificates))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the parser is no Exception; malformed input must not end us
        raise CheckFailed(f"token does not verify: {str(error) or type(error).__name__}") from error
    return found


def _signer(decoded: Any) -> Certificate:
    from cryptography.x509 import load_der_x509_certificate

    certificates = [load_der_x509_certificate(der) for der in decoded.signed_data.certificates]
    (info,) = decoded.signed_data.signer_infos
    return next(c for c in certificates if c.issuer == info.issuer and c.serial_number == info.serial_number)


def _says_test(subject: str, certificates: Sequence[Certificate]) -> bool:
    names = [subject, *(c.subject.rfc4514_string() for c in certificates)]
    return any(re.search(r"\btest\b", name, re.IGNORECASE) for name in names)


def _authority(path: Path, row: Any) -> Authority:
    try:
        name, url, ca = str(row["name"]), str(row["url"]), path.parent / str(row["ca"])
    except (TypeError, KeyError) as error:
        raise ForecastError(f"{path}: an authority needs name, url and ca, got {row!r}") from error
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", name):
        raise ForecastError(f"{path}: an authority's name is made of a-z, 0-9 and -, got {name!r}")
    if not url.startswith(("https://", "http://")):
        raise ForecastError(f"{path}: authority {name}: the url must be http or https, got {url!r}")
    try:
        pem = ca.read_bytes()
        load_certificates(pem)
    except (OSError, CheckFailed) as error:
        raise ForecastError(f"{path}: authority {name}: ca {ca}: {error}") from error
    return Authority(name, url, pem)
