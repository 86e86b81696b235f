"""The one tree of errors: each says the name, the rule, the value and what to do next."""

from __future__ import annotations


class ForecastError(Exception):
    """Bad input or a state that we refuse; the command prints the message and exits with `exit_code`."""

    exit_code = 2


class BadRows(ForecastError):
    """Rows of a foreign file or a ledger that break a rule.

    problems: one sentence a broken rule, each with its row, column, value and fix.
    """

    def __init__(self, source: str, problems: list[str]) -> None:
        self.source, self.problems = source, problems
        shown = "\n".join(f"  {problem}" for problem in problems[:20])
        more = f"\n  ... and {len(problems) - 20} more" if len(problems) > 20 else ""
        super().__init__(f"{source}: {len(problems)} problem(s), nothing was imported\n{shown}{more}")


class StoreBusy(ForecastError):
    """The DuckDB file is open in another process."""


class FitFailed(ForecastError):
    """A law could not be fitted: not converged, not identified, or too few designs."""


class CheckFailed(ForecastError):
    """A verification or a check that was carried out and failed."""

    exit_code = 1
