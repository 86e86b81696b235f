"""What a log shows: every entry examined, every sentence saying what was and what was not."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path

from forecast.errors import CheckFailed, ForecastError
from forecast.files import sha256_hex
from prereg.entry import EntryName, read_entry
from prereg.finding import Finding, Level, Report
from prereg.log import Log, SignedEntry, breaks_chain, leftovers, signature_path
from prereg.signature import PublicKey, allowed_principal, verify_signature
from prereg.standing import Standings
from prereg.statement import SignedRegistration, read_registration

__all__ = ["Verification", "order_of", "verify_log", "walk"]


@dataclass
class Verification:
    """What verifying has gathered so far; memory does not grow with the entries' size.

    keys: per fingerprint the first entry that it signed, for allowed_signers.
    """

    findings: list[Finding] = field(default_factory=list)
    standings: Standings = field(default_factory=Standings)
    keys: dict[str, SignedEntry] = field(default_factory=dict)
    digests: dict[str, int] = field(default_factory=dict)
    author: str | None = None
    active: PublicKey | None = None

    def add(self, level: Level, code: str, text: str, seq: int | None = None) -> None:
        """Note one finding."""
        self.findings.append(Finding(level=level, code=code, seq=seq, text=text))


def verify_log(
    folder: Path | str,
    *,
    allowed_signers: Path | str | None = None,
    head: str | None = None,
    today: date | None = None,
) -> Report:
    """Every finding on the log in `folder`, bytes first, parsed afterwards; never raises for a bad log.

    allowed_signers: the verifier's own file, from outside the log. head: the digest (or its first 8 digits or
    more) of an entry, from outside the log. Raises ForecastError where there is no log.
    """
    folder = Path(folder)
    found = walk(folder)
    _examine_keys(found, Path(allowed_signers) if allowed_signers else None)
    _examine_head(found, head)
    _examine_standings(found, today or datetime.now(UTC).date())
    _examine_folder(found, folder)
    found.add(
        "not examined",
        "second log",
        "a second log under another key, with other forecasts of the same runs, cannot be excluded by any local tool",
    )
    return Report(subject=str(folder), findings=tuple(found.findings))


def walk(folder: Path) -> Verification:
    """Read the whole log once, in order, noting what breaks."""
    names = Log(folder).names()
    if not names:
        raise ForecastError(f"{folder} holds no log; name the folder that has 0001-key.json")
    found = Verification()
    before: SignedEntry | None = None
    expected = 1
    for name in names:
        while expected < name.seq:
            found.add("failed", "MISSING", f"MISSING entry {expected}", expected)
            expected, before = expected + 1, None
        if name.seq < expected:
            found.add("failed", "TAMPERED", f"TAMPERED: two entries have the number {name.seq}", name.seq)
        before = _examine_entry(found, folder / name.text, name, before, gap=before is None and name.seq > 1)
        expected = name.seq + 1
    if not any(finding.level == "failed" for finding in found.findings):
        text = (
            f"{len(names)} entries: every signature matches its bytes, every entry holds the hashes of the one before"
        )
        found.add("verified", "chain", text)
    return found


def _examine_entry(
    found: Verification, path: Path, name: EntryName, before: SignedEntry | None, *, gap: bool
) -> SignedEntry | None:
    """The entry in `path` with all that is wrong noted; None if nothing can be built on it."""
    try:
        data, armoured = path.read_bytes(), signature_path(path).read_bytes()
    except OSError as error:
        found.add(
            "failed", "TAMPERED", f"{name.text}: TAMPERED: {Path(error.filename).name}: {error.strerror}", name.seq
        )
        return None
    try:
        key = verify_signature(data, armoured)
        entry = read_entry(data)
    except CheckFailed as error:
        found.add("failed", "TAMPERED", f"{name.text}: TAMPERED: {error}", name.seq)
        return None
    signed = SignedEntry(entry, path, sha256_hex(data), sha256_hex(armoured), key)
    found.digests[signed.digest] = signed.seq
    problem = None if gap else breaks_chain(before, signed, name)
    if problem:
        found.add("failed", "TAMPERED", f"{name.text}: TAMPERED: {problem}", name.seq)
    _examine_key_use(found, signed)
    _examine_body(found, signed)
    return signed


def _examine_key_use(found: Verification, signed: SignedEntry) -> None:
    """The first entry announces the key; each is signed by the key announced last; a key entry hands over."""
    entry, announced = signed.entry, None
    if entry.kind == "key":
        try:
            announced = PublicKey.parse(str(entry.body.get("public_key")))
        except CheckFailed as error:
            found.add("failed", "TAMPERED", f"entry {entry.seq}: {error}", entry.seq)
    if found.active is None:
        found.author = entry.author
        found.active = announced or signed.key
        if announced is None:
            found.add("failed", "key", f"entry {entry.seq}: the log does not begin with its key", entry.seq)
    if signed.key != found.active:
        text = f"entry {entry.seq}: signed by {signed.key.fingerprint}, the log's key is {found.active.fingerprint}"
        found.add("failed", "key", text, entry.seq)
    found.keys.setdefault(signed.key.fingerprint, signed)
    found.active = announced or found.active


def _examine_body(found: Verification, signed: SignedEntry) -> None:
    if signed.kind == "register":
        try:
            found.standings.register(signed, read_registration(signed).statement)
        except CheckFailed as error:
            found.add("failed", "registration", str(error), signed.seq)
        return
    problem = found.standings.note(signed)
    if problem:
        found.add("failed", "reference", f"entry {signed.seq} {problem}", signed.seq)


def _examine_keys(found: Verification, allowed_signers: Path | None) -> None:
    """Whether the verifier's own file lets the author sign with the log's keys."""
    if allowed_signers is None:
        prints = ", ".join(found.keys) or "none"
        text = f"key not checked: no allowed_signers was given; the log is signed by {prints}"
        found.add("not examined", "key", text)
        return
    for fingerprint, signed in found.keys.items():
        data = signed.path.read_bytes()
        armoured = signature_path(signed.path).read_bytes()
        said = allowed_principal(data, armoured, principal=signed.entry.author, allowed_signers=allowed_signers)
        if said is None:
            text = f"key {fingerprint} is one that {allowed_signers} allows for {signed.entry.author}"
            found.add("verified", "key", text, signed.seq)
        else:
            text = f"key NOT the published one: {fingerprint} for {signed.entry.author}: {said}"
            found.add("failed", "key", text, signed.seq)


def _examine_head(found: Verification, head: str | None) -> None:
    last = max(found.digests.values(), default=0)
    if head is None:
        text = f"tail not provable: entries after {last} may have been cut off; give the last digest with --head"
        found.add("not examined", "head", text)
        return
    matches = [seq for digest, seq in found.digests.items() if len(head) >= 8 and digest.startswith(head.lower())]
    if len(matches) != 1:
        text = f"head differs: no entry has the digest {head[:16]}; the tail was cut off or this is another log"
        found.add("failed", "head", text)
    else:
        later = f"; {last - matches[0]} entries are newer than the given head" if matches[0] < last else ""
        found.add("verified", "head", f"entry {matches[0]} is the given head{later}", matches[0])


def _examine_standings(found: Verification, today: date) -> None:
    for standing in found.standings.all.values():
        if standing.state(today) == "OVERDUE":
            text = f"registration {standing.seq} is OVERDUE: its deadline was {standing.deadline}, it is not resolved"
            found.add("warning", "OVERDUE", text, standing.seq)
        others = found.standings.overlapping(standing)
        if len(others) > 1:
            place = [other.seq for other in others].index(standing.seq) + 1
            unresolved = sum(other.resolved is None for other in others)
            text = f"registration {place} of {len(others)} on shared designs, {unresolved} unresolved"
            found.add("warning", "overlap", text, standing.seq)


def _examine_folder(found: Verification, folder: Path) -> None:
    for path in leftovers(folder):
        text = f"{path.name} is what an interrupted writer left, or an entry was cut off; the next command removes it"
        found.add("warning", "leftover", text)
    known = {".gitattributes", ".gitignore", ".lock", "authorities"} | {path.name for path in leftovers(folder)}
    for name in sorted(os.listdir(folder)):
        stem = name.split(".json")[0] + ".json"
        if name not in known and (EntryName.parse(stem) is None or not (folder / stem).exists()):
            found.add("warning", "unknown file", f"{name!r} is no part of the log")


def order_of(registration: SignedRegistration, report: Report) -> str:
    """What shows that the runs are later than the registration, and what does not."""
    times = [
        f.text
        for f in report.findings
        if f.code == "time" and f.seq == registration.signed.seq and f.level == "verified"
    ]
    if times:
        return times[0]
    return (
        "time owed: the order rests on the derived seeds alone, which shows that the runs are later than the "
        "registration's bytes; rehearsal: cannot be excluded"
    )
