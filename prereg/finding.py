"""What an examination found: one sentence each, with a level that decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator

from forecast.errors import CheckFailed
from forecast.plain import one_line
from forecast.records import Record

__all__ = ["Finding", "Level", "Report"]

Level = Literal["verified", "failed", "warning", "not examined"]


class Finding(Record):
    """One thing examined. code: short and fixed, for programs; seq: the entry that it is about, or null."""

    level: Level
    code: str
    seq: int | None = None
    text: Annotated[str, AfterValidator(one_line)]


class Report(Record):
    """All findings of an examination. ok: nothing failed; what was not examined is listed, not passed."""

    subject: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing that was examined failed."""
        return bool(self.findings) and not self.failures

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that failed."""
        return tuple(finding for finding in self.findings if finding.level == "failed")

    def raise_if_failed(self) -> None:
        """Raise CheckFailed naming what failed."""
        if not self.findings:
            raise CheckFailed(f"{self.subject}: nothing was examined")
        if self.failures:
            lines = "\n".join(f"  {finding.text}" for finding in self.failures[:20])
            raise CheckFailed(f"{self.subject}: verification failed\n{lines}")


def codes(findings: Sequence[Finding]) -> list[str]:
    """The codes of `findings`, in order."""
    return [finding.code for finding in findings]
