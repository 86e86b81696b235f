"""Changed bytes, killed writers, many entries, odd folders."""

import base64
import hashlib
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
import tracemalloc
from datetime import date

import numpy as np
import pytest
from local_authority import make_authority, serving
from registration_cases import make_key, new_log, outcomes, registered, statement_body

from forecast.errors import CheckFailed, ForecastError
from forecast.files import sha256_hex
from forecast.ledger import append_runs
from prereg.check import check
from prereg.entry import Entry, EntryName, encode
from prereg.log import Log, leftovers, signature_path
from prereg.resolving import resolve
from prereg.signature import NAMESPACE, public_key_of, verify_signature
from prereg.stamping import stamp
from prereg.statement import find_registration
from prereg.time import Authority
from prereg.verify import verify_log

TODAY = date(2026, 12, 2)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    folder = make_authority(tmp_path_factory.mktemp("tsa") / "local")
    with serving(folder) as url:
        yield Authority("local", url, (folder / "ca.pem").read_bytes())


def caught(log, path, changed):
    good = path.read_bytes()
    path.write_bytes(changed)
    try:
        return not verify_log(log, today=TODAY).ok
    finally:
        path.write_bytes(good)


@pytest.mark.parametrize(
    ("flip", "step"), [(0x01, 7), *(pytest.param(flip, 1, marks=pytest.mark.slow) for flip in (0x01, 0x20, 0x80))]
)
def test_every_single_byte_change_of_a_small_log_is_caught(authority, tmp_path, flip, step):
    log, key = new_log(tmp_path)
    stamp(log, [authority], key=key)
    paths = sorted(p for p in log.iterdir() if ".json" in p.name)
    passed, count = [], 0
    for path in paths:
        data = path.read_bytes()
        for i in range(0, len(data), step):
            count += 1
            if not caught(log, path, data[:i] + bytes([data[i] ^ flip]) + data[i + 1 :]):
                passed.append((path.name, i))

    names = ["0001-key.json", "0001-key.json.local.tsr", "0001-key.json.sig", "0002-stamp.json", "0002-stamp.json.sig"]
    assert names == [path.name for path in paths]
    assert count * step > 2000
    assert passed == []
    assert verify_log(log, today=TODAY).ok


def test_removed_and_inserted_bytes_of_an_entry_are_caught(tmp_path):
    log, _ = new_log(tmp_path)
    path = log / "0001-key.json"
    data = path.read_bytes()

    for i in range(0, len(data), 3):
        assert caught(log, path, data[:i] + data[i + 1 :])
        assert caught(log, path, data[:i] + b" " + data[i:])


def kill_self_at(event_number):
    """From now on, kill this process with -9 at its audited event of that number (open, link, fork, flock ...)."""
    seen = 0

    def count(event, arguments):
        nonlocal seen
        if event.startswith(("import", "compile", "exec", "object", "sys.", "marshal")):
            return
        seen += 1
        if seen == event_number:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def in_child(work):
    """Run `work` in a forked child; its exit status, negative for a signal."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def register_launch_resolve(case):
    """The three commands' writes, one after the other, from what is there already."""
    body, log, key, ledger, prepared = case
    signed = Log(log).append("register", body, key=key)
    jobs = [{"target": "t000", "replicate": 0, "seed": 1}]
    Log(log).append("launch", {"registration": signed.digest, "jobs": jobs, "code_hash": "23" * 32}, key=key)
    resolve(log, prepared.model_copy(update={"registration": signed.digest}), ledger=ledger, key=key)


@pytest.fixture
def case(tmp_path):
    registration, log, key = registered(tmp_path, statement_body(targets=3, replicates=2))
    runs = outcomes(registration, np.random.default_rng(0))
    append_runs(tmp_path / "runs.jsonl", runs)
    prepared = check(registration, runs, rng=np.random.default_rng(0), as_of=TODAY, final=True)
    return dict(registration.signed.body), log, key, tmp_path / "runs.jsonl", prepared


def assert_sound(log, key, digest):
    """The log verifies, there is at most one leftover, and the next command removes and names it."""
    left = [path.name for path in leftovers(log)]
    temporary = [name for name in left if name.endswith(".tmp")]
    broken = [f.text for f in verify_log(log, today=TODAY).findings if f.level == "failed" and f.code != "launch"]
    following = Log(log)
    following.append("amend", {"registration": digest, "text": "next"}, key=key)

    assert broken == []
    assert len(temporary) <= 1
    assert len(left) <= 1 or not hasattr(os, "O_TMPFILE")
    assert left == following.removed
    assert leftovers(log) == []


@pytest.mark.parametrize(("step", "unnamed"), [(12, True), (7, False), pytest.param(1, True, marks=pytest.mark.slow)])
def test_a_kill_at_any_event_leaves_a_log_that_verifies(case, step, unnamed, monkeypatch):
    """unnamed: the file system has files without a name (NFS has none)."""
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE")
    body, template, key, ledger, prepared = case
    number, killed, left_something, status = 1, 0, 0, -signal.SIGKILL
    while status:
        log = template.with_name(f"log-{number}")  # a fresh one each time: a growing log would take ever longer
        shutil.copytree(template, log)

        def work(number=number, log=log):
            kill_self_at(number)
            register_launch_resolve((body, log, key, ledger, prepared))

        status = in_child(work)
        left_something += bool(leftovers(log))
        assert_sound(log, key, prepared.registration)
        assert status in (0, -signal.SIGKILL)
        number, killed = number + step, killed + (status != 0)

    assert killed * step > 60
    assert step > 1 or left_something


@pytest.mark.slow
def test_a_kill_at_200_random_moments_leaves_a_log_that_verifies(case):
    rng = random.Random(5)
    _, log, key, _, prepared = case
    digest, killed = prepared.registration, 0
    for _ in range(200):
        pid = os.fork()
        if pid == 0:
            try:
                while True:
                    register_launch_resolve(case)
            finally:
                os._exit(1)
        time.sleep(rng.uniform(0.0, 0.15))
        os.kill(pid, signal.SIGKILL)
        killed += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        assert len(leftovers(log)) <= 1
    assert_sound(log, key, digest)

    assert killed == 200
    assert len(Log(log).names()) > 100


def quick_signer(key):
    """An SSHSIG maker in this process; ssh-keygen would take minutes for thousands."""
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    private, blob = load_ssh_private_key(key.read_bytes(), None), public_key_of(key).blob

    def text(data):
        return struct.pack(">I", len(data)) + data

    def signature(data):
        head = text(NAMESPACE.encode()) + text(b"") + text(b"sha512")
        value = private.sign(b"SSHSIG" + head + text(hashlib.sha512(data).digest()))
        inner = text(text(b"ssh-ed25519") + text(value))
        wire = b"SSHSIG" + struct.pack(">I", 1) + text(blob) + head + inner
        lines = base64.encodebytes(wire).decode().replace("\n", "")
        armour = "\n".join(lines[i : i + 70] for i in range(0, len(lines), 70))
        return f"-----BEGIN SSH SIGNATURE-----\n{armour}\n-----END SSH SIGNATURE-----\n".encode()

    return signature


def long_log(base, count):
    """A log of `count` entries, its writing cost kept low."""
    registration, log, key = registered(base, statement_body(targets=2, replicates=2))
    signature, head = quick_signer(key), Log(log).head()
    digest, signed = head.digest, head.signature_digest
    for seq in range(3, count + 1):
        entry = Entry(
            seq=seq,
            kind="amend",
            previous=digest,
            previous_signature=signed,
            written="2026-12-01T00:00:00Z",
            author=head.entry.author,
            body={"registration": registration.digest, "text": "x" * 200},
        )
        data = encode(entry)
        path = log / EntryName(seq=seq, kind="amend").text
        path.write_bytes(data)
        armoured = signature(data)
        signature_path(path).write_bytes(armoured)
        digest, signed = sha256_hex(data), sha256_hex(armoured)
    return log


def peak_of(log):
    tracemalloc.start()
    try:
        assert verify_log(log, today=TODAY).ok
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_test_signer_makes_what_ssh_keygen_makes(tmp_path):
    key = make_key(tmp_path / "key")

    assert public_key_of(key) == verify_signature(b"data", quick_signer(key)(b"data"))


@pytest.mark.parametrize("count", [700, pytest.param(10_000, marks=pytest.mark.slow)])
def test_memory_stays_flat_over_many_entries(tmp_path, count):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    short, long = peak_of(long_log(tmp_path / "a", 200)), peak_of(long_log(tmp_path / "b", count))
    per_entry = (long - short) / (count - 200)

    assert per_entry < 1500  # name, number and digest; an entry and its signature take more than 2,000 on disk


READER = """
import sys
from prereg.log import Log
from prereg.verify import verify_log
print(verify_log(sys.argv[1]).ok)
Log(sys.argv[1]).append('launch', {}, key=sys.argv[2])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs mount")
def test_a_log_on_a_read_only_mount_is_verified_and_not_written(tmp_path):
    log, key = new_log(tmp_path)
    target = tmp_path / "mounted"
    target.mkdir()
    script = (
        f"mount --bind '{log}' '{target}' && mount -o remount,bind,ro '{target}' && "
        f"exec '{sys.executable}' -c \"{READER}\" '{target}' '{key}'"
    )
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    if "permitted" in done.stderr or "denied" in done.stderr:
        pytest.skip("mounting is not permitted here")

    assert done.stdout == "True\n"
    assert "cannot write in the log" in done.stderr
    assert "Read-only file system" in done.stderr


@pytest.mark.parametrize("claim", ["ünï 🦊 \u202e\u2028", "'; rm -rf / #", 'say "yes"\n\tand more', "\u0000\u001b[31m"])
def test_claims_hold_any_unicode(tmp_path, claim):
    registration, log, _ = registered(tmp_path, statement_body() | {"claim": claim})

    assert claim == find_registration(registration.signed.path).statement.claim
    assert verify_log(log, today=TODAY).ok


def test_a_principal_holds_any_unicode_in_one_line(tmp_path):
    author = 'Zoë O\'Néill "the fox" 🦊 <z@exämple.org>'
    log, _ = new_log(tmp_path, author=author)

    assert author == Log(log).head().entry.author
    with pytest.raises(ForecastError):
        Log.create(tmp_path / "other", author="two\nlines", key=tmp_path / "key")
    with pytest.raises(CheckFailed):
        Log(tmp_path / "nothing").active_key()
