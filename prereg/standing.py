"""Where each registration of a log stands: open, amended, withdrawn, resolved or overdue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date

from prereg.log import SignedEntry
from prereg.statement import Registration

__all__ = ["Standing", "Standings", "rows"]


@dataclass
class Standing:
    """One registration and what later entries say of it. designs: hashes of its targets' designs.

    written: the date that the file claims. moves: what amendments did to the deadline, a sentence each.
    """

    seq: int
    digest: str
    claim: str
    metric: str
    runs: int
    targets: int
    deadline: date
    written: str
    designs: frozenset[str]
    amendments: list[int] = field(default_factory=list)
    withdrawn: int | None = None
    withdrawn_after: str = ""
    moves: list[str] = field(default_factory=list)
    launches: list[int] = field(default_factory=list)
    resolved: int | None = None
    headline: str | None = None

    def state(self, today: date) -> str:
        """In a word: withdrawn, resolved, overdue, launched or open."""
        if self.withdrawn is not None:
            return "resolved, then withdrawn" if self.resolved is not None else "withdrawn"
        if self.resolved is not None:
            return "resolved"
        if today > self.deadline:
            return "OVERDUE"
        return "launched" if self.launches else "open"


class Standings:
    """Collects standings while a log is read once, in order."""

    def __init__(self) -> None:
        self.all: dict[str, Standing] = {}

    def register(self, signed: SignedEntry, statement: Registration) -> None:
        """Note a new registration."""
        self.all[signed.digest] = Standing(
            seq=signed.seq,
            digest=signed.digest,
            claim=statement.claim,
            metric=statement.metric.name,
            runs=statement.runs,
            targets=len(statement.targets),
            deadline=date.fromisoformat(statement.rules.deadline),
            written=signed.entry.written,
            designs=frozenset(claim.design_hash for claim in statement.targets),
        )

    def note(self, signed: SignedEntry) -> str | None:
        """Note what `signed` says of a registration; a sentence if it names none of this log."""
        if signed.kind in ("key", "stamp", "register"):
            return None
        digest = signed.body.get("registration")
        standing = self.all.get(digest) if isinstance(digest, str) else None
        if standing is None:
            return f"is about the registration {str(digest)[:16]!r}, which is not in this log before it"
        if signed.kind == "amend":
            standing.amendments.append(signed.seq)
            before, standing.deadline = standing.deadline, _later(standing.deadline, signed.body.get("deadline"))
            if standing.deadline > before:
                late = signed.entry.written[:10] > before.isoformat()
                standing.moves.append(
                    f"deadline moved from {before} to {standing.deadline} by entry {signed.seq}"
                    + (", after it had passed" if late else "")
                )
        elif signed.kind == "withdraw":
            standing.withdrawn = signed.seq
            standing.withdrawn_after = (
                f"after entry {standing.resolved} had resolved it ({standing.headline})"
                if standing.resolved is not None
                else f"after entry {standing.launches[0]} had launched its runs"
                if standing.launches
                else ""
            )
        elif signed.kind == "launch":
            standing.launches.append(signed.seq)
        elif standing.resolved is None:
            standing.resolved, standing.headline = signed.seq, str(signed.body.get("headline"))
        else:
            return f"resolves registration {standing.seq} again, which entry {standing.resolved} has resolved"
        return None

    def groups(self) -> list[list[Standing]]:
        """The registrations in groups that hang together by shared designs, each in order."""
        members = list(self.all.values())
        parent = list(range(len(members)))

        def root(number: int) -> int:
            while parent[number] != number:
                parent[number] = parent[parent[number]]
                number = parent[number]
            return number

        first: dict[str, int] = {}
        for number, member in enumerate(members):
            for design in member.designs:
                parent[root(number)] = root(first.setdefault(design, number))
        groups: dict[int, list[Standing]] = {}
        for number, member in enumerate(members):
            groups.setdefault(root(number), []).append(member)
        return list(groups.values())


def _later(deadline: date, text: object) -> date:
    """The amended deadline; what is no day, or an earlier one, changes nothing."""
    try:
        return max(deadline, date.fromisoformat(text)) if isinstance(text, str) else deadline
    except ValueError:
        return deadline


def rows(standings: Iterable[Standing], today: date, outcomes: Mapping[str, int]) -> list[dict[str, object]]:
    """The table that `platocast log` prints; outcomes: per digest, registered runs with an outcome."""
    return [
        {
            "entry": standing.seq,
            "digest": standing.digest[:16],
            "state": standing.state(today),
            "outcomes": f"{outcomes[standing.digest]} of {standing.runs}" if outcomes else f"? of {standing.runs}",
            "deadline": standing.deadline.isoformat(),
            "what": standing.headline or standing.claim,
        }
        for standing in standings
    ]
