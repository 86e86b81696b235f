"""A registration as an in-toto statement in a DSSE envelope, for tools that read those."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from forecast.errors import ForecastError
from forecast.files import write_atomically
from prereg.signature import public_key_of
from prereg.statement import find_registration

__all__ = ["PAYLOAD_TYPE", "PREDICATE_TYPE", "envelope", "export", "pre_authentication"]

PAYLOAD_TYPE = "application/vnd.in-toto+json"
PREDICATE_TYPE = "urn:platocast:registration:1"


def export(folder: Path, reference: str, *, key: Path, out: Path) -> None:
    """Write the envelope of a registration of the log in `folder` to `out`."""
    registration = find_registration(reference, log=folder)
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": registration.signed.path.name, "digest": {"sha256": registration.digest}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": dict(registration.signed.body),
    }
    payload = json.dumps(statement, ensure_ascii=False, allow_nan=False).encode("utf-8")
    write_atomically(out, (json.dumps(envelope(payload, key), indent=1) + "\n").encode())


def envelope(payload: bytes, key: Path) -> dict[str, object]:
    """The DSSE envelope of `payload`; the key id is the SSH key's fingerprint.

    The signature is over the DSSE encoding itself, not an SSHSIG, so it needs an Ed25519 key file without
    passphrase. Source: secure-systems-lab/dsse, protocol.md, v1.0.
    """
    signature = _raw_signature(pre_authentication(PAYLOAD_TYPE, payload), key)
    return {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"keyid": public_key_of(key).fingerprint, "sig": base64.b64encode(signature).decode()}],
    }


def pre_authentication(payload_type: str, payload: bytes) -> bytes:
    """The bytes that DSSE signs (PAE)."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def _raw_signature(data: bytes, key: Path) -> bytes:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    try:
        private = load_ssh_private_key(key.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ForecastError(f"export signs with a private key file without passphrase; {key}: {error}") from error
    if not isinstance(private, Ed25519PrivateKey):
        raise ForecastError(f"export signs with an Ed25519 key; {key} is of another type")
    return private.sign(data)
