"""The commands `logs`, `cancel` and `retry`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from forecast.console import JsonFlag, note, show_record
from forecast.errors import ForecastError

__all__ = ["add_to"]

Folder = Annotated[Path, typer.Argument(help="The launch folder: what `launch --folder` was given.")]
Runs = Annotated[list[str] | None, typer.Option("--run", help="Only this run; may be given several times.")]


def add_to(app: typer.Typer) -> None:
    """Register these commands on `app`."""
    app.command("logs")(logs_command)
    app.command("cancel")(cancel_command)
    app.command("retry")(retry_command)


def logs_command(
    folder: Folder,
    run: Annotated[str, typer.Argument(help="The run's id.")],
    attempt: Annotated[int | None, typer.Option("--attempt", min=1, help="Which attempt. Default: the last.")] = None,
    tail: Annotated[int | None, typer.Option("--tail", min=1, help="Only so many lines from the end.")] = None,
) -> None:
    """Print what a run printed, and the trace of its error."""
    from runner.logs import read_log

    lines = read_log(folder, run, attempt).splitlines()
    sys.stdout.write("\n".join(lines if tail is None else lines[-tail:]) + "\n")


def cancel_command(folder: Folder, run: Runs = None, as_json: JsonFlag = False) -> None:
    """End the jobs of a launch folder, or single runs. Outcomes stay; the next launch takes up the rest."""
    from runner.cancel import cancel_jobs, cancel_runs

    if run:
        stopped = cancel_runs(folder.resolve(), run)
        show_record({"cancelled_runs": len(run), "of_them_running": len(stopped)}, as_json=as_json)
        return
    ended, unseen = cancel_jobs(folder.resolve())
    if unseen:
        note(f"{len(unseen)} job(s) cannot be seen from here ({unseen[0].reason}); cancel them there")
    show_record({"cancelled_jobs": len(ended), "unseen_jobs": len(unseen)}, as_json=as_json)


def retry_command(
    folder: Folder,
    failed: Annotated[bool, typer.Option("--failed", help="Every run that failed.")] = False,
    run: Runs = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the jobs end.")] = True,
    key: Annotated[Path | None, typer.Option("--key", help="SSH key of the registration's log.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Run failed runs again, where they were last launched. Their failures stay on record."""
    if failed == bool(run):
        raise ForecastError("say which runs: --failed for all that failed, or --run ID")
    from runner.commands_launch import summary, wait_and_show
    from runner.launch import Placing, launch
    from runner.registered import require_key, sign_launches
    from runner.retry import remembered, reopen

    folder = folder.resolve()
    choice, preset, log = remembered(folder)
    if log is not None and key is not None:
        require_key(log, key)
    specs = reopen(folder, run)
    if not specs:
        note("no run has failed; nothing to retry")
        return
    planned, submission = launch(specs, folder, Placing(choice, preset), log=log)
    if log is not None and key is not None:
        for entry in sign_launches(folder, log, key):
            note(f"signed {entry}")
    note(summary(planned, submission))
    if wait:
        wait_and_show(folder, [spec.run_id for spec in specs], as_json=as_json)
