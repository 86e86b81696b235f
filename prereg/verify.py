"""What a log shows: every entry examined, every sentence saying what was and what was not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path

from forecast.errors import CheckFailed, ForecastError
from forecast.files import read_regular, sha256_hex
from forecast.records import Run
from prereg.entry import EntryName, read_entry
from prereg.evidence import (
    examine_launch,
    examine_outcomes,
    examine_refit,
    examine_resolution,
    lenience,
    widths,
)
from prereg.finding import Finding, Level, Report
from prereg.job_files import examine_jobs
from prereg.log import Log, SignedEntry, breaks_chain, leftovers, signature_path
from prereg.order import Submission, order_of
from prereg.signature import PublicKey, allowed_principal, verify_signature
from prereg.stamping import chained, token_files
from prereg.standing import Standings
from prereg.statement import SignedRegistration, read_registration
from prereg.time import load_certificates
from prereg.witness import Witness, examine_tokens, time_finding

__all__ = ["Verification", "examine_log", "said_before", "verify_log", "walk"]


@dataclass
class Verification:
    """What verifying has gathered so far; memory does not grow with the entries' size.

    keys: per fingerprint the first and the last entry that it signed, for allowed_signers.
    stamped: per token file its sha256, its CA's sha256 and the `stamp` entry's number.
    """

    findings: list[Finding] = field(default_factory=list)
    standings: Standings = field(default_factory=Standings)
    keys: dict[str, list[SignedEntry]] = field(default_factory=dict)
    stamped: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    witness: Witness = field(default_factory=Witness)
    digests: dict[str, int] = field(default_factory=dict)
    author: str | None = None
    active: PublicKey | None = None

    def add(self, level: Level, code: str, text: str, seq: int | None = None) -> None:
        """Note one finding."""
        self.findings.append(Finding(level=level, code=code, seq=seq, text=text))

    def report(self, folder: Path | str) -> Report:
        """The findings so far."""
        return Report(subject=str(folder), findings=tuple(self.findings))


def verify_log(
    folder: Path | str,
    *,
    allowed_signers: Path | str | None = None,
    head: str | None = None,
    authority_ca: Path | str | None = None,
    runs: Sequence[Run] | None = None,
    data: Sequence[Run] | None = None,
    sacct: Sequence[Submission] | None = None,
    jobs: dict[str, bytes] | None = None,
    today: date | None = None,
) -> Report:
    """Every finding on the log in `folder` and on what lies beside it, for a person who trusts neither.

    allowed_signers: the verifier's own file, from outside the log. head: the digest (or its first 8 digits or
    more) of an entry, from outside the log. authority_ca: PEM of the time authorities that the verifier trusts.
    runs: the outcomes, data: what was fitted, sacct: SLURM's jobs, jobs: the job specs on disk (`job_files`);
    each is examined only where it is given.
    Raises ForecastError where there is no log.
    """
    found = examine_log(folder, allowed_signers=allowed_signers, head=head, authority_ca=authority_ca, today=today)
    _examine_evidence(found, Path(folder), runs, data, sacct, jobs)
    return found.report(folder)


def examine_log(
    folder: Path | str,
    *,
    allowed_signers: Path | str | None = None,
    head: str | None = None,
    authority_ca: Path | str | None = None,
    today: date | None = None,
) -> Verification:
    """The log alone: bytes first, parsed afterwards; a bad log gives findings, not errors."""
    folder = Path(folder)
    found = walk(folder)
    _examine_time(found, folder, Path(authority_ca) if authority_ca else None)
    _examine_keys(found, Path(allowed_signers) if allowed_signers else None)
    _examine_head(found, head)
    _examine_standings(found, today or datetime.now(UTC).date())
    _examine_folder(found, folder)
    found.add(
        "not examined",
        "second log",
        "a second log under another key, with other forecasts of the same runs, cannot be excluded by any local tool",
    )
    return found


def walk(folder: Path) -> Verification:
    """Read the whole log once, in order, noting what breaks."""
    names = Log(folder).names()
    if not names:
        raise ForecastError(f"{folder} holds no log; name the folder that has 0001-key.json")
    found = Verification()
    before: SignedEntry | None = None
    expected = 1
    for name in names:
        for seq in range(expected, min(name.seq, expected + 20)):
            found.add("failed", "MISSING", f"MISSING entry {seq}", seq)
        if name.seq > expected + 20:  # a name alone may claim any number
            found.add("failed", "MISSING", f"MISSING entries {expected + 20} to {name.seq - 1}", expected + 20)
        if name.seq > expected:
            expected, before = name.seq, None
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
        data, armoured = read_regular(path), read_regular(signature_path(path))
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
    first = found.keys.get(signed.key.fingerprint, [signed])[0]
    found.keys[signed.key.fingerprint] = [first, signed]
    found.active = announced or found.active


def _examine_body(found: Verification, signed: SignedEntry) -> None:
    if signed.kind == "register":
        try:
            found.standings.register(signed, read_registration(signed).statement)
        except CheckFailed as error:
            found.add("failed", "registration", str(error), signed.seq)
        return
    if signed.kind == "stamp":
        found.stamped |= {file: (digest, ca, signed.seq) for file, digest, _, ca in chained(signed)}
    problem = found.standings.note(signed)
    if problem:
        found.add("failed", "reference", f"entry {signed.seq} {problem}", signed.seq)


def _examine_time(found: Verification, folder: Path, authority_ca: Path | None) -> None:
    trusted = None
    if authority_ca is not None:
        try:
            trusted = load_certificates(authority_ca.read_bytes())
        except OSError as error:
            raise ForecastError(f"{authority_ca}: cannot be read ({error.strerror})") from error
    found.witness = examine_tokens(folder, found.stamped, trusted)
    found.findings += found.witness.findings
    for standing in found.standings.all.values():
        found.findings.append(time_finding(found.witness, standing.seq, standing.written))


def _examine_keys(found: Verification, allowed_signers: Path | None) -> None:
    """Whether the verifier's own file lets the author sign with the log's keys."""
    if allowed_signers is None:
        prints = ", ".join(found.keys) or "none"
        text = f"key not checked: no allowed_signers was given; the log is signed by {prints}"
        found.add("not examined", "key", text)
        return
    for fingerprint, entries in found.keys.items():
        said = [_allowed(found, signed, allowed_signers) for signed in entries]
        problem = next((text for text in said if text is not None), None)
        author, seq = entries[0].entry.author, entries[0].seq
        if problem is None:
            text = f"key {fingerprint} is one that {allowed_signers} allows for {author}"
            found.add("verified", "key", text, seq)
        else:
            found.add("failed", "key", f"key NOT the published one: {fingerprint} for {author}: {problem}", seq)


def _allowed(found: Verification, signed: SignedEntry, allowed_signers: Path) -> str | None:
    """What ssh-keygen says against the author's key on `signed`, at token time where that is evidence, or now."""
    token = found.witness.evidence(signed.seq)
    return allowed_principal(
        signed.path.read_bytes(),
        signature_path(signed.path).read_bytes(),
        principal=signed.entry.author,
        allowed_signers=allowed_signers,
        at=token.time.strftime("%Y%m%d%H%M%S") if token else None,
    )


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
        if standing.amendments:
            entries = ", ".join(str(seq) for seq in standing.amendments)
            text = f"registration {standing.seq} is amended by entries {entries}; its deadline is {standing.deadline}"
            text += "".join(f"; {move}" for move in standing.moves)
            found.add("warning", "amended", text, standing.seq)
        if standing.withdrawn is not None:
            text = f"registration {standing.seq} is withdrawn by entry {standing.withdrawn} {standing.withdrawn_after}"
            text = text.rstrip()
            found.add("warning", "withdrawn", text, standing.seq)
    for group in found.standings.groups():
        unresolved = sum(member.resolved is None for member in group)
        for place, member in enumerate(group, start=1):
            if len(group) > 1:
                text = f"registration {place} of {len(group)} on shared designs, {unresolved} unresolved"
                found.add("warning", "overlap", text, member.seq)


def _examine_evidence(
    found: Verification,
    folder: Path,
    runs: Sequence[Run] | None,
    data: Sequence[Run] | None,
    sacct: Sequence[Submission] | None,
    jobs: dict[str, bytes] | None,
) -> None:
    """What lies outside the log, for each registration; not for a log that is itself broken."""
    if any(finding.level == "failed" for finding in found.findings):
        found.add("not examined", "outcomes", "outcomes and data: not examined, since the log does not verify")
        return
    for name, given in (("runs (--ledger)", runs), ("the fit's data (--data)", data), ("job specs (--jobs)", jobs)):
        if given is None and found.standings.all:
            found.add("not examined", "outcomes", f"{name} were not given")
    for standing in found.standings.all.values():
        registration = read_registration(Log(folder).read(EntryName(seq=standing.seq, kind="register")))
        found.findings += [*lenience(registration), *(finding for finding in [widths(registration)] if finding)]
        launches = [Log(folder).read(EntryName(seq=seq, kind="launch")) for seq in standing.launches]
        for launch in launches:
            found.findings += examine_launch(registration, launch)
        if jobs is not None:
            found.findings += examine_jobs(registration, launches, jobs)
        if runs is not None:
            found.findings += examine_outcomes(registration, runs)
            if standing.resolved is not None:
                entry = Log(folder).read(EntryName(seq=standing.resolved, kind="resolve"))
                found.findings += examine_resolution(registration, entry, runs)
        if data is not None:
            found.findings.append(examine_refit(registration, data))
        found.findings.append(order_of(registration, found.witness, sacct=sacct, runs=runs or ()))


def said_before(
    found: Verification, folder: Path, registration: SignedRegistration, runs: Sequence[Run]
) -> list[Finding]:
    """What the log's own `launch` and `resolve` entries hold against `runs`, and what makes the test lenient."""
    standing, log = found.standings.all.get(registration.digest), Log(folder)
    if standing is None:
        return []
    findings = lenience(registration)
    for seq in standing.launches:
        findings += examine_launch(registration, log.read(EntryName(seq=seq, kind="launch")))
    if not standing.launches:
        text = f"entry {standing.seq}: no launch entry: which jobs were meant to make the runs is not on record"
        findings.append(Finding(level="not examined", code="launch", seq=standing.seq, text=text))
    if standing.resolved is not None:
        entry = log.read(EntryName(seq=standing.resolved, kind="resolve"))
        findings += [f for f in examine_resolution(registration, entry, runs) if f.level == "failed"]
    return findings


def _examine_folder(found: Verification, folder: Path) -> None:
    for path in leftovers(folder):
        text = f"{path.name} is what an interrupted writer left, or an entry was cut off; the next command removes it"
        found.add("warning", "leftover", text)
    known = {".gitattributes", ".gitignore", ".lock", ".git", "authorities", "README.md"}
    known |= {path.name for path in leftovers(folder)} | {token.path.name for token in token_files(folder)}
    for name in sorted(os.listdir(folder)):
        stem = name.removesuffix(".sig")
        if name not in known and (EntryName.parse(stem) is None or not (folder / stem).exists()):
            found.add("warning", "unknown file", f"{name!r} is no part of the log")
