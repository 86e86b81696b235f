"""The commands `launch`, `status`, `collect` and `targets`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from forecast.console import JsonFlag, note, show_record, show_table
from forecast.errors import CheckFailed, ForecastError

__all__ = ["add_to"]

Folder = Annotated[Path, typer.Argument(help="The launch folder: what `launch --folder` was given.")]


def add_to(app: typer.Typer) -> None:
    """Register these commands on `app`."""
    app.command("launch")(launch_command)
    app.command("status")(status_command)
    app.command("collect")(collect_command)
    app.command("targets")(targets_command)


def launch_command(
    what: Annotated[Path, typer.Argument(help="A study file (.toml), or a registration LOG/NNNN-register.json.")],
    folder: Annotated[Path, typer.Option("--folder", help="Where runs, snapshot and logs go. The same one resumes.")],
    executor: Annotated[
        str | None, typer.Option("--executor", help="local, debug, or a preset of the study. Default: the study's.")
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="The most local jobs at a time.")] = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="CPU threads a run.")] = None,
    runs_per_job: Annotated[
        str, typer.Option("--runs-per-job", help="Runs that one SLURM job does in turn, or auto. Local jobs share.")
    ] = "auto",
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the jobs end.")] = True,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Launch at most so many runs now.")] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", help="Only runs with this setting (n_samples=8000, seed=3) or id; several: all of them."
        ),
    ] = None,
    shuffle: Annotated[
        int | None, typer.Option("--shuffle", help="Take the runs in an order drawn by this seed.")
    ] = None,
    history: Annotated[
        Path | None, typer.Option("--history", help="A ledger whose finished runs tell how long runs take.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be launched; submit nothing.")] = False,
    presets: Annotated[
        Path | None,
        typer.Option("--presets", help="For a registration: a study file whose [executor], [presets], entry to use."),
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="SSH key of the registration's log: signs a `launch` entry.")
    ] = None,
    other_code: Annotated[
        bool, typer.Option("--other-code", help="Go on though the code is not the registered one.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Launch the runs of a study or a registration; runs that have an outcome are never repeated."""
    from runner.budget import read_pace
    from runner.choosing import choose
    from runner.launch import Placing, launch, plan
    from runner.request import read_request

    request = read_request(
        what, executor=executor, jobs=jobs, threads=threads, runs_per_job=runs_per_job, presets=presets
    )
    request.check(key=key, other_code=other_code)
    specs = choose(request.specs, only or [], shuffle)
    place = Placing(request.choice, request.preset, limit=limit, keep_order=shuffle is not None)
    pace = read_pace(folder, history)
    if dry_run:
        _show_plan(plan(specs, folder.resolve(), place), pace, as_json=as_json)
        return
    planned, submission = launch(specs, folder, place, log=request.log, pace=pace)
    for entry in request.sign(folder.resolve(), key):
        note(f"signed {entry}")
    note(summary(planned, submission))
    if wait:
        wait_and_show(folder, [spec.run_id for spec in specs], as_json=as_json)


def status_command(
    folder: Folder,
    runs: Annotated[bool, typer.Option("--runs", help="Show every run, not only counts.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again and again until no job lives.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show how the runs of a launch folder stand: done, running, requeued, pending, failed, lost."""
    from dataclasses import asdict

    from runner.status import read_status
    from runner.waiting import watch as watch_folder

    if watch:
        try:
            watch_folder(folder, lambda status: _live_table(folder, status))
        except KeyboardInterrupt:
            note("the jobs go on without this window")
            raise typer.Exit(130) from None
    status = read_status(folder)
    record = _counted(folder, status)
    if as_json:
        show_record(record | {"runs": [asdict(run) for run in status.runs]}, as_json=True)
        return
    show_record(record, as_json=False)
    shown = [run for run in status.runs if runs or run.state in ("running", "requeued", "failed", "lost")]
    if shown:
        show_table([asdict(run) for run in shown[: None if runs else 40]], title="runs", as_json=False)


def _counted(folder: Path, status: Any) -> dict[str, Any]:
    from runner.budget import gpu_hours_used

    return {
        **status.counts(),
        "total": len(status.runs),
        "living_jobs": sum(1 for job in status.jobs if job.alive),
        "eta_s": status.eta_s,
        "gpu_hours": round(gpu_hours_used(folder), 3),
    }


def _live_table(folder: Path, status: Any) -> Any:
    from rich.table import Table

    from runner.waiting import clock

    record = _counted(folder, status)
    table = Table(title=", ".join(f"{value} {name}" for name, value in status.counts().items() if value))
    for name in ("run", "state", "progress", "left", "reason"):
        table.add_column(name)
    for run in [run for run in status.runs if run.state in ("running", "requeued", "failed", "lost")][:30]:
        progress = "" if run.progress is None else f"{run.progress:.0%}"
        table.add_row(run.run_id, run.state, progress, "" if run.eta_s is None else clock(run.eta_s), run.reason or "")
    left = "unknown" if record["eta_s"] is None else clock(record["eta_s"])
    table.caption = f"{record['living_jobs']} living jobs, {left} left, {record['gpu_hours']} GPU-hours"
    return table


def collect_command(
    folder: Folder,
    ledger: Annotated[Path, typer.Option("--ledger", help="The JSONL ledger to append to.")],
    as_json: JsonFlag = False,
) -> None:
    """Append the outcomes of a launch folder to a ledger; may run while jobs run, adds nothing twice."""
    from dataclasses import asdict

    from runner.collect import collect

    show_record(asdict(collect(folder, ledger)), as_json=as_json)


def targets_command(
    study: Annotated[Path, typer.Argument(help="A study file (.toml) with the designs to be forecast.")],
    out: Annotated[Path | None, typer.Option("--out", help="Where to write the targets (.json).")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Write the designs of a study as targets for `predict` and `register`."""
    from forecast.files import write_atomically
    from forecast.summaries import split_settings
    from runner.study import load_study

    targets = load_study(study).targets()
    written = [target.model_dump(mode="json") for target in targets]
    if out is not None:
        write_atomically(out, (json.dumps(written, ensure_ascii=False, indent=1) + "\n").encode())
    if as_json:
        show_table(written, title="targets", as_json=True)
        return
    varying, constant = split_settings([target.design for target in targets])
    note("the same in all: " + ", ".join(f"{name}={value}" for name, value in constant.items()))
    rows = [
        {"target": t.target, **{name: t.design.settings.get(name) for name in varying}, "replicates": t.replicates}
        for t in targets
    ]
    show_table(rows, title=f"{len(rows)} target(s)", as_json=False)


def _show_plan(planned: Any, pace: Any, *, as_json: bool) -> None:
    shared = len(planned.lists) > 1 and planned.lists[0] == planned.lists[1]
    rows = [
        {
            "job": number,
            "runs": f"shares {len(job)}" if shared else len(job),
            "size": sum(spec.size for spec in job) / (len(planned.lists) if shared else 1),
            "expected_s": None if pace is None else round(pace.seconds(job) / (len(planned.lists) if shared else 1), 1),
            "first_run": job[0].run_id,
        }
        for number, job in enumerate(planned.lists)
    ]
    note(summary(planned, None))
    show_table(rows, title="jobs", as_json=as_json)


def summary(planned: Any, submission: Path | None) -> str:
    """What a launch did, in one line."""
    new = f"{len(planned.to_do)} run(s) in {len(planned.lists)} new job(s)"
    if submission is not None:
        here = Path.cwd()
        new += f" ({submission.relative_to(here) if submission.is_relative_to(here) else submission})"
    parts = (
        (planned.finished, "finished before"),
        (planned.failed, "failed before (not repeated)"),
        (planned.with_jobs, "with living jobs"),
        (planned.left_out, "left for later"),
    )
    return "; ".join([new, *(f"{len(runs)} {words}" for runs, words in parts if runs)])


def wait_and_show(folder: Path, run_ids: list[str], *, as_json: bool) -> None:
    """Wait for these runs and show how they ended; CheckFailed if any failed or was lost."""
    from runner.waiting import wait_for

    try:
        status = wait_for(folder)
    except KeyboardInterrupt:
        note(f"the jobs go on without this window; come back with: platocast status {folder}")
        raise typer.Exit(130) from None
    counts = dict.fromkeys(status.counts(), 0)
    for run in status.runs:
        if run.run_id in set(run_ids):
            counts[run.state] += 1
    show_record(counts, as_json=as_json)
    if counts["failed"] or counts["lost"]:
        raise CheckFailed(
            f"{counts['failed']} run(s) failed and {counts['lost']} were lost; see: platocast status {folder}"
        )
    if not counts["finished"]:
        raise ForecastError(f"no run finished; see: platocast status {folder}")
