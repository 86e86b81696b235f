"""Signatures, with ssh-keygen as the oracle."""

import base64
import hashlib
import os
import re
import signal
import struct
import subprocess

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from registration_cases import make_key

from forecast.errors import CheckFailed, ForecastError
from prereg.signature import NAMESPACE, allowed_principal, public_key_of, sign, verify_signature

DATA = b"what is signed\n"


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_what_ssh_keygen_signs_verifies_and_other_bytes_do_not(tmp_path, kind):
    key = make_key(tmp_path / "key", kind=kind)
    armoured = sign(DATA, key)

    assert public_key_of(key) == verify_signature(DATA, armoured)
    with pytest.raises(CheckFailed, match="does not match"):
        verify_signature(DATA + b" ", armoured)


def test_the_fingerprint_is_that_of_ssh_keygen(tmp_path):
    key = make_key(tmp_path / "key")
    printed = subprocess.run(["ssh-keygen", "-l", "-f", key], capture_output=True, text=True, check=True).stdout

    assert printed.split()[1] == public_key_of(key).fingerprint


def test_a_public_key_is_derived_where_none_lies_beside(tmp_path):
    key = make_key(tmp_path / "key")
    expected = public_key_of(key)
    key.with_name("key.pub").unlink()

    assert expected == public_key_of(key)


def test_another_namespace_is_refused(tmp_path):
    key = make_key(tmp_path / "key")
    command = ["ssh-keygen", "-Y", "sign", "-n", "git", "-f", str(key)]
    armoured = subprocess.run(command, input=DATA, capture_output=True, check=True).stdout

    with pytest.raises(CheckFailed, match=f"'git', not '{NAMESPACE}'"):
        verify_signature(DATA, armoured)


def test_every_changed_byte_of_a_signature_is_caught_unless_it_only_breaks_lines(tmp_path):
    armoured = sign(DATA, make_key(tmp_path / "key"))
    passed = []
    for i in range(len(armoured)):
        for other in {0, 10, 13, 32, 65, 255, armoured[i] ^ 1, armoured[i] ^ 128} - {armoured[i]}:
            changed = armoured[:i] + bytes([other]) + armoured[i + 1 :]
            try:
                verify_signature(DATA, changed)
                passed.append((i, other))
            except CheckFailed:
                pass

    assert passed == []


@pytest.mark.parametrize(
    "armoured",
    [
        b"",
        b"\n",
        b"-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----\n",
        b"-----BEGIN SSH SIGNATURE-----\n!!!!\n-----END SSH SIGNATURE-----\n",
        b"-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n",
        b"-----BEGIN SSH SIGNATURE-----\nU1NIU0lHAAAAAf////8=\n-----END SSH SIGNATURE-----\n",
    ],
)
def test_what_is_no_signature_is_a_verification_error(armoured):
    with pytest.raises(CheckFailed):
        verify_signature(DATA, armoured)


def test_a_missing_key_says_how_to_make_one(tmp_path):
    with pytest.raises(ForecastError, match="ssh-keygen -t ed25519"):
        sign(DATA, tmp_path / "none")


def test_a_passphrase_without_an_agent_is_an_error_not_a_hang(tmp_path, monkeypatch):
    key = make_key(tmp_path / "key", passphrase="secret")
    monkeypatch.setenv("SSH_ASKPASS", "/bin/false")
    monkeypatch.setenv("SSH_ASKPASS_REQUIRE", "force")

    with pytest.raises(ForecastError, match="could not sign"):
        sign(DATA, key)


def test_an_agent_signs_with_the_public_file_alone(tmp_path, monkeypatch):
    key = make_key(tmp_path / "key")
    socket = tmp_path / "agent"
    printed = subprocess.run(["ssh-agent", "-s", "-a", str(socket)], capture_output=True, text=True, check=True).stdout
    agent = int(re.search(r"SSH_AGENT_PID=(\d+)", printed)[1])
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        subprocess.run(["ssh-add", "-q", str(key)], check=True, capture_output=True)
        key.unlink()

        assert verify_signature(DATA, sign(DATA, tmp_path / "key.pub")).kind == "ssh-ed25519"
    finally:
        os.kill(agent, signal.SIGTERM)


def test_allowed_signers_names_the_key_the_principal_and_the_time(tmp_path):
    key = make_key(tmp_path / "key")
    armoured, line = sign(DATA, key), public_key_of(key).line
    allowed = tmp_path / "allowed signers"
    allowed.write_text(f'"Zoë 🦊" valid-before="20270101" {line}\n', encoding="utf-8")

    def said(principal, at=None):
        return allowed_principal(DATA, armoured, principal=principal, allowed_signers=allowed, at=at)

    assert said("Zoë 🦊", "20261231000000") is None
    assert said("Zoë", "20261231000000") is not None
    assert "expired" in said("Zoë 🦊", "20270102000000")


def security_key_signature(data, *, flags=1):
    """What a hardware key would give, made in software: PROTOCOL.u2f over PROTOCOL.sshsig."""
    private = Ed25519PrivateKey.generate()
    kind, application = b"sk-ssh-ed25519@openssh.com", b"ssh:"

    def text(value):
        return struct.pack(">I", len(value)) + value

    blob = text(kind) + text(private.public_key().public_bytes_raw()) + text(application)
    head = text(NAMESPACE.encode()) + text(b"") + text(b"sha512")
    message = b"SSHSIG" + head + text(hashlib.sha512(data).digest())
    touch = struct.pack(">BI", flags, 7)
    signed = private.sign(hashlib.sha256(application).digest() + touch + hashlib.sha256(message).digest())
    wire = b"SSHSIG" + struct.pack(">I", 1) + text(blob) + head + text(text(kind) + text(signed) + touch)
    lines = base64.b64encode(wire).decode()
    body = "\n".join(lines[i : i + 70] for i in range(0, len(lines), 70))
    return f"-----BEGIN SSH SIGNATURE-----\n{body}\n-----END SSH SIGNATURE-----\n".encode()


def test_a_hardware_keys_signature_is_verified_by_ssh_keygen():
    armoured = security_key_signature(DATA)

    assert verify_signature(DATA, armoured).kind == "sk-ssh-ed25519@openssh.com"
    with pytest.raises(CheckFailed, match="does not match"):
        verify_signature(DATA + b" ", armoured)
