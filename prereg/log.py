"""The log: a folder of signed entries, each holding the hashes of the one before."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forecast.errors import CheckFailed, ForecastError
from forecast.files import read_regular, sha256_hex
from prereg.entry import Entry, EntryName, Kind, encode, read_entry, utc_now
from prereg.publish import LOCK, TEMPORARY, lock, publish
from prereg.signature import PublicKey, public_key_of, sign, verify_signature

__all__ = ["Log", "SignedEntry", "find_entry"]

ATTRIBUTES = "* -text\n"
IGNORED = f"{LOCK}\n*{TEMPORARY}\n"


@dataclass(frozen=True)
class SignedEntry:
    """An entry whose signature matches its bytes.

    digest: lower-case hex sha256 of the .json file; signature_digest: of its .sig file.
    """

    entry: Entry
    path: Path
    digest: str
    signature_digest: str
    key: PublicKey

    @property
    def seq(self) -> int:
        """The entry's number."""
        return self.entry.seq

    @property
    def kind(self) -> Kind:
        """The entry's kind."""
        return self.entry.kind

    @property
    def body(self) -> Mapping[str, Any]:
        """What the entry says."""
        return self.entry.body


class Log:
    """A log in a folder: NNNN-KIND.json, its signature .json.sig and its time token .json.tsr.

    An entry exists once its .json does; the .sig comes first. A .sig without its .json is what a killed
    writer left, and the next writer removes it.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.removed: list[str] = []

    @classmethod
    def create(cls, folder: Path | str, *, author: str, key: Path | str) -> Log:
        """A new log whose first entry states its author and public key; ForecastError if one is there."""
        log = cls(folder)
        try:
            log.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ForecastError(f"no log can be started at {folder}: {error.strerror}") from error
        with lock(log.folder):
            log._tidy()
            if log.names():
                raise ForecastError(f"{log.folder} holds a log already; append to it")
            for name, text in ((".gitattributes", ATTRIBUTES), (".gitignore", IGNORED)):
                if not (log.folder / name).exists():
                    publish(log.folder / name, text.encode())
            body = {"action": "open", "public_key": public_key_of(Path(key)).line}
            log._write("key", body, author=author, key=Path(key), head=None)
        return log

    def names(self) -> list[EntryName]:
        """The entries' numbers and kinds by their files' names, in order; nothing is read."""
        if not self.folder.is_dir():
            return []
        found = (EntryName.parse(name) for name in os.listdir(self.folder))
        return sorted((name for name in found if name is not None), key=lambda name: (name.seq, name.kind))

    def read(self, name: EntryName) -> SignedEntry:
        """The entry `name`, its signature verified before it is parsed; CheckFailed says what is wrong."""
        return read_signed(self.folder / name.text)

    def entries(self) -> Iterator[SignedEntry]:
        """Every entry in order, chain and signatures verified as far as it is read.

        Raises CheckFailed at the first that does not follow from the one before; `verify_log` goes on
        and lists all.
        """
        before: SignedEntry | None = None
        for name in self.names():
            found = self.read(name)
            problem = breaks_chain(before, found, name)
            if problem:
                raise CheckFailed(f"{found.path}: {problem}")
            before = found
            yield found

    def head(self) -> SignedEntry | None:
        """The last entry, or None in an empty log."""
        names = self.names()
        return self.read(names[-1]) if names else None

    def active_key(self) -> PublicKey:
        """The key that the log's last `key` entry states."""
        keys = [name for name in self.names() if name.kind == "key"]
        if not keys:
            raise CheckFailed(f"{self.folder} is no log: it has no `key` entry; `platocast register` starts one")
        return PublicKey.parse(str(self.read(keys[-1]).body.get("public_key")))

    def append(self, kind: Kind, body: Mapping[str, Any], *, key: Path | str) -> SignedEntry:
        """Sign and add one entry; a second writer waits.

        Leftovers of a killed writer are removed first and named in `self.removed`.
        """
        if not self.names():
            raise ForecastError(f"{self.folder} holds no log; start one with Log.create or `platocast register`")
        with lock(self.folder):
            self._tidy()
            head = self.head()
            assert head is not None
            names = self.names()
            if names[-1].seq != len(names):
                raise CheckFailed(f"{self.folder} has {len(names)} entries but ends at {names[-1].seq}; run verify")
            mine, active = public_key_of(Path(key)), self.active_key()
            if mine != active:
                raise ForecastError(
                    f"the log's key is {active.fingerprint}, {key} is {mine.fingerprint}; "
                    "sign with the log's key or rotate it with: platocast log rotate"
                )
            return self._write(kind, body, author=head.entry.author, key=Path(key), head=head)

    def rotate(self, *, key: Path | str, new_key: Path | str) -> SignedEntry:
        """Hand the log over to `new_key`, in an entry that the old key signs."""
        new = public_key_of(Path(new_key))
        return self.append("key", {"action": "rotate", "public_key": new.line}, key=key)

    def _write(
        self, kind: Kind, body: Mapping[str, Any], *, author: str, key: Path, head: SignedEntry | None
    ) -> SignedEntry:
        try:
            entry = Entry(
                seq=head.seq + 1 if head else 1,
                kind=kind,
                previous=head.digest if head else None,
                previous_signature=head.signature_digest if head else None,
                written=utc_now(),
                author=author,
                body=dict(body),
            )
        except ValueError as error:
            raise ForecastError(f"this {kind} entry cannot be written: {error}") from error
        data = encode(entry)
        armoured = sign(data, key)
        path = self.folder / EntryName(seq=entry.seq, kind=kind).text
        publish(signature_path(path), armoured)
        publish(path, data)
        return read_signed(path)

    def _tidy(self) -> None:
        for path in leftovers(self.folder):
            path.unlink()
            self.removed.append(path.name)


def read_signed(path: Path) -> SignedEntry:
    """The entry in the file `path`, its bytes verified against its .sig, then parsed."""
    data, armoured = _bytes(path), _bytes(signature_path(path))
    key = verify_signature(data, armoured)
    return SignedEntry(read_entry(data), path, sha256_hex(data), sha256_hex(armoured), key)


def breaks_chain(before: SignedEntry | None, found: SignedEntry, name: EntryName) -> str | None:
    """How `found`, in the file `name`, fails to follow `before`; None if it follows."""
    entry = found.entry
    if (entry.seq, entry.kind) != (name.seq, name.kind):
        return f"states number {entry.seq} and kind {entry.kind}, its name says {name.text}"
    expected = before.seq + 1 if before else 1
    if entry.seq != expected:
        return f"MISSING entry: {expected} is expected, {entry.seq} found"
    if entry.previous != (before.digest if before else None):
        return "does not hold the hash of the entry before"
    if entry.previous_signature != (before.signature_digest if before else None):
        return "does not hold the hash of the signature before"
    if before and entry.author != before.entry.author:
        return f"states the author {entry.author!r}, the entry before {before.entry.author!r}"
    return None


def leftovers(folder: Path) -> list[Path]:
    """What a killed writer left: temporary names, and the next entry's signature without its entry."""
    if not folder.is_dir():
        return []
    names = os.listdir(folder)
    entries = [parsed.seq for parsed in map(EntryName.parse, names) if parsed]
    following = max(entries, default=0) + 1
    found = []
    for name in names:
        signed = EntryName.parse(name.removesuffix(".sig")) if name.endswith(".sig") else None
        if (signed and signed.seq == following) or re.fullmatch(r"\..*\.tmp", name, re.DOTALL):
            found.append(folder / name)
    return sorted(found)


def signature_path(path: Path) -> Path:
    """Where the signature of the entry file `path` lies."""
    return path.with_name(path.name + ".sig")


def find_entry(reference: Path | str, *, log: Path | str | None = None) -> SignedEntry:
    """The entry that `reference` names: its file, or with `log` its number or (the start of) its digest."""
    path = Path(reference)
    if log is None:
        if EntryName.parse(path.name) is None or not path.is_file():
            raise ForecastError(f"{path} is no entry of a log; name a file such as LOG/0002-register.json")
        return read_signed(path)
    text, names = str(reference), Log(log).names()
    if re.fullmatch(r"[0-9]{1,12}", text):
        names = [name for name in names if name.seq == int(text)]
    elif re.fullmatch(r"[0-9a-f]{8,64}", text):
        names = [name for name in names if sha256_hex(_bytes(Path(log) / name.text)).startswith(text)]
    else:
        names = [name for name in names if name.text == path.name]
    if len(names) != 1:
        raise ForecastError(f"{text!r} names {len(names)} entries of {log}; give a number, a digest or a file name")
    return Log(log).read(names[0])


def _bytes(path: Path) -> bytes:
    try:
        return read_regular(path)
    except FileNotFoundError as error:
        raise CheckFailed(f"{path} is missing") from error
    except OSError as error:
        raise ForecastError(f"{path} cannot be read: {error.strerror}") from error
