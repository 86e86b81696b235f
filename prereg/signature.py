"""SSH signatures: made by the researcher's own `ssh-keygen`, verified here on the bytes."""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from forecast.errors import CheckFailed, ForecastError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.ssh import SSHPublicKeyTypes

__all__ = ["NAMESPACE", "PublicKey", "allowed_principal", "public_key_of", "sign", "verify_signature"]

NAMESPACE = "platocast-registration-1"
_BEGIN, _END = b"-----BEGIN SSH SIGNATURE-----", b"-----END SSH SIGNATURE-----"
_DIGESTS = {b"sha512": hashlib.sha512, b"sha256": hashlib.sha256}


@dataclass(frozen=True)
class PublicKey:
    """A public key in its wire form (RFC 4253, section 6.6)."""

    blob: bytes

    @property
    def kind(self) -> str:
        """The key's type, e.g. "ssh-ed25519"."""
        return _Reader(self.blob).text().decode("ascii", "replace")

    @property
    def line(self) -> str:
        """Type and base64, as in an authorized_keys file."""
        return f"{self.kind} {base64.b64encode(self.blob).decode()}"

    @property
    def fingerprint(self) -> str:
        """As `ssh-keygen -l` prints it."""
        return "SHA256:" + base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")

    @classmethod
    def parse(cls, line: str) -> PublicKey:
        """The key in one line "TYPE BASE64 [COMMENT]"; CheckFailed if it is none."""
        words = line.split()
        try:
            key = cls(base64.b64decode(words[1], validate=True))
            matches = key.kind == words[0]
        except (IndexError, binascii.Error, CheckFailed) as error:
            raise CheckFailed(f"not an SSH public key: {line[:60]!r}") from error
        if not matches:
            raise CheckFailed(f"an SSH public key of type {key.kind} is labelled {words[0]}")
        return key


@dataclass(frozen=True)
class _Signature:
    key: PublicKey
    namespace: bytes
    reserved: bytes
    digest_name: bytes
    algorithm: bytes
    value: bytes


def sign(data: bytes, key: Path) -> bytes:
    """The armoured SSHSIG over `data` by `key`, a private key file or, with an agent, its .pub file."""
    _refuse_missing(key)
    beside = key if key.suffix == ".pub" else key.with_name(key.name + ".pub")
    if beside.is_file() and beside.read_bytes().startswith(b"sk-"):
        sys.stderr.write("touch your security key if it blinks\n")
    command = ["ssh-keygen", "-Y", "sign", "-n", NAMESPACE, "-f", str(key.absolute())]
    done = _ssh_keygen(command, data)
    if done.returncode != 0 or _BEGIN not in done.stdout:
        raise ForecastError(f"ssh-keygen could not sign with {key}: {_said(done)}")
    verify_signature(data, done.stdout)
    return done.stdout


def public_key_of(key: Path) -> PublicKey:
    """The public half of `key`: from KEY.pub where it lies, otherwise from `ssh-keygen -y`."""
    _refuse_missing(key)
    beside = key if key.suffix == ".pub" else key.with_name(key.name + ".pub")
    if beside.is_file():
        return PublicKey.parse(beside.read_text(encoding="utf-8", errors="replace"))
    done = _ssh_keygen(["ssh-keygen", "-y", "-f", str(key.absolute())], b"")
    if done.returncode != 0:
        raise ForecastError(f"{key} is no SSH key that ssh-keygen can read: {_said(done)}")
    return PublicKey.parse(done.stdout.decode("utf-8", "replace"))


def verify_signature(data: bytes, armoured: bytes) -> PublicKey:
    """The key whose signature over `data` is in `armoured`; CheckFailed if it is not one.

    Runs in this process for Ed25519, ECDSA and RSA, so that a log of thousands is quick to verify;
    for hardware keys and certificates it asks ssh-keygen. Says nothing on whose key it is.
    Source: OpenSSH, PROTOCOL.sshsig.
    """
    signature = _parse(armoured)
    if signature.namespace != NAMESPACE.encode():
        raise CheckFailed(f"signature is for {signature.namespace.decode('utf-8', 'replace')!r}, not {NAMESPACE!r}")
    if signature.digest_name not in _DIGESTS:
        raise CheckFailed(f"signature hashes by {signature.digest_name!r}; expected sha512 or sha256")
    message = b"SSHSIG" + b"".join(
        _text(part)
        for part in (
            signature.namespace,
            signature.reserved,
            signature.digest_name,
            _DIGESTS[signature.digest_name](data).digest(),
        )
    )
    if signature.key.kind in ("ssh-ed25519", "ssh-rsa") or signature.key.kind.startswith("ecdsa-sha2-"):
        _verify_here(signature, message)
    else:
        _verify_by_ssh_keygen(data, armoured)
    return signature.key


def allowed_principal(
    data: bytes, armoured: bytes, *, principal: str, allowed_signers: Path, at: str | None = None
) -> str | None:
    """None if `allowed_signers` lets `principal` sign this at time `at`, otherwise what ssh-keygen says.

    at: UTC as YYYYMMDDHHMMSS, compared with the file's valid-after and valid-before; None means now.
    """
    if not allowed_signers.is_file():
        raise ForecastError(f"no allowed_signers file at {allowed_signers}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "entry.sig"
        path.write_bytes(armoured)
        command = ["ssh-keygen", "-Y", "verify", "-n", NAMESPACE, "-I", principal, "-s", str(path)]
        command += ["-f", str(allowed_signers.absolute())] + ([f"-Overify-time={at}Z"] if at else [])
        done = _ssh_keygen(command, data)
    return None if done.returncode == 0 else _said(done)


def _parse(armoured: bytes) -> _Signature:
    lines = armoured.rstrip(b"\n").split(b"\n")
    if len(lines) < 3 or lines[0] != _BEGIN or lines[-1] != _END:
        raise CheckFailed("not an armoured SSH signature")
    text = b"".join(lines[1:-1])
    try:
        blob = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise CheckFailed(f"signature is not base64: {error}") from error
    if base64.b64encode(blob) != text:
        raise CheckFailed("signature's base64 has stray bits")
    reader = _Reader(blob)
    if reader.take(6) != b"SSHSIG" or reader.number() != 1:
        raise CheckFailed("not an SSH signature of version 1")
    key, namespace, reserved, digest_name = (reader.text() for _ in range(4))
    inner = _Reader(reader.text())
    reader.end()
    algorithm, value = inner.text(), inner.text()
    if not PublicKey(key).kind.startswith("sk-"):
        inner.end()
    return _Signature(PublicKey(key), namespace, reserved, digest_name, algorithm, value)


def _verify_here(signature: _Signature, message: bytes) -> None:
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

    kind, algorithm = signature.key.kind, signature.algorithm.decode("ascii", "replace")
    try:
        key = _loaded(signature.key.line)
        if isinstance(key, ed25519.Ed25519PublicKey) and algorithm == kind:
            key.verify(signature.value, message)
        elif isinstance(key, ec.EllipticCurvePublicKey) and algorithm == kind:
            numbers = _Reader(signature.value)
            pair = utils.encode_dss_signature(numbers.integer(), numbers.integer())
            numbers.end()
            sizes = {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}
            key.verify(pair, message, ec.ECDSA(sizes[key.curve.key_size]))
        elif isinstance(key, rsa.RSAPublicKey) and algorithm in ("rsa-sha2-256", "rsa-sha2-512"):
            digest = hashes.SHA512() if algorithm == "rsa-sha2-512" else hashes.SHA256()
            key.verify(signature.value, message, padding.PKCS1v15(), digest)
        else:
            raise CheckFailed(f"signature algorithm {algorithm} does not go with a key of type {kind}")
    except InvalidSignature as error:
        raise CheckFailed("signature does not match the bytes") from error
    except (ValueError, KeyError, UnsupportedAlgorithm) as error:
        raise CheckFailed(f"signature's key cannot be read: {error}") from error


@lru_cache(maxsize=64)
def _loaded(line: str) -> SSHPublicKeyTypes:
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    return load_ssh_public_key(line.encode())


def _verify_by_ssh_keygen(data: bytes, armoured: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "entry.sig"
        path.write_bytes(armoured)
        done = _ssh_keygen(["ssh-keygen", "-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(path)], data)
    if done.returncode != 0:
        raise CheckFailed(f"signature does not match the bytes: {_said(done)}")


class _Reader:
    """Reads the wire form of RFC 4251, section 5; a short or long buffer is a CheckFailed."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        part = self._data[self._at : self._at + count]
        if len(part) != count:
            raise CheckFailed("signature is cut short")
        self._at += count
        return part

    def number(self) -> int:
        return int(struct.unpack(">I", self.take(4))[0])

    def text(self) -> bytes:
        return self.take(self.number())

    def integer(self) -> int:
        data = self.text()
        value = int.from_bytes(data, "big", signed=True)
        if value <= 0 or len(data) != value.bit_length() // 8 + 1:
            raise CheckFailed("signature holds a number in no canonical form")
        return value

    def end(self) -> None:
        if self._at != len(self._data):
            raise CheckFailed("signature has trailing bytes")


def _text(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _refuse_missing(key: Path) -> None:
    if not key.is_file():
        raise ForecastError(f"no SSH key at {key}; make one with: ssh-keygen -t ed25519 -f {key}")


def _ssh_keygen(command: list[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(command, input=data, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise ForecastError("ssh-keygen is not installed; install OpenSSH 8.9 or later") from error


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    text = done.stderr.decode("utf-8", "replace").strip() or done.stdout.decode("utf-8", "replace").strip()
    return text.splitlines()[-1] if text else f"exit code {done.returncode}"
