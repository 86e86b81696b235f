"""The commands that read a log: what it shows, and where each registration stands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import prereg.commands_amend
from forecast.console import JsonFlag, note, show_table

__all__ = ["add_to"]


class ListByDefault(TyperGroup):
    """A group whose first word, where it is no command, is the log that `list` shows."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As the group's own, with `list` put before a first word that names no command."""
        return super().resolve_command(ctx, args if args[0] in self.commands else ["list", *args])


def add_to(app: typer.Typer) -> None:
    """Register `verify`, and `log` with its own commands, on `app`."""
    app.command("verify")(verify_command)
    log = typer.Typer(cls=ListByDefault, help="List a log's registrations (log LOG), or add to the log.")
    log.command("list")(list_command)
    prereg.commands_amend.add_to(log)
    app.add_typer(log, name="log", no_args_is_help=True)


def verify_command(
    log: Annotated[Path, typer.Argument(help="The log's folder.")],
    allowed_signers: Annotated[
        Path | None,
        typer.Option("--allowed-signers", help="Your own allowed_signers file, from outside the log."),
    ] = None,
    head: Annotated[
        str | None, typer.Option("--head", help="The last digest that you know of, from outside the log.")
    ] = None,
    authority_ca: Annotated[
        Path | None, typer.Option("--authority-ca", help="PEM of the time authorities that you trust.")
    ] = None,
    ledger: Annotated[Path | None, typer.Option("--ledger", help="The runs that came of the registrations.")] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="The runs that were fitted; they are fitted again.")
    ] = None,
    sacct: Annotated[Path | None, typer.Option("--sacct", help="What SLURM's accounting printed, see README.")] = None,
    jobs: Annotated[
        Path | None, typer.Option("--jobs", help="The folder of a launch; its job specs are compared with the log.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Examine a log: what is verified, what failed (exit 1), and what could not be examined."""
    from forecast.reading import read_runs
    from prereg.job_files import job_files
    from prereg.order import read_sacct
    from prereg.verify import verify_log

    report = verify_log(
        log,
        allowed_signers=allowed_signers,
        head=head,
        authority_ca=authority_ca,
        runs=read_runs(ledger) if ledger else None,
        data=read_runs(data) if data else None,
        sacct=read_sacct(sacct) if sacct else None,
        jobs=job_files(jobs) if jobs else None,
    )
    rows = [{"result": f.level, "entry": f.seq, "what": f.text} for f in report.findings]
    show_table(rows, title=f"log {log}", as_json=as_json)
    report.raise_if_failed()


def list_command(
    log: Annotated[Path, typer.Argument(help="The log's folder.")],
    ledger: Annotated[Path | None, typer.Option("--ledger", help="Runs, to count outcomes.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List every registration of a log with its state: open, launched, resolved, withdrawn, overdue."""
    from datetime import UTC, datetime

    from prereg.standing import rows
    from prereg.verify import walk

    found = walk(log)
    standings = list(found.standings.all.values())
    outcomes: dict[str, int] = {}
    if ledger is not None:
        from forecast.reading import read_runs

        runs = read_runs(ledger)
        outcomes = {
            s.digest: len({(r.target, r.replicate) for r in runs if r.registration == s.digest}) for s in standings
        }
    show_table(rows(standings, datetime.now(UTC).date(), outcomes), title=f"log {log}", as_json=as_json)
    failed = [finding for finding in found.findings if finding.level == "failed"]
    if failed:
        note(f"{len(failed)} entries do not verify; see: platocast verify {log}")
