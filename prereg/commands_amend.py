"""The commands that add to a log without a forecast: time, second thoughts, a new key, an export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forecast.console import JsonFlag, note, show_record

if TYPE_CHECKING:
    from prereg.log import SignedEntry

__all__ = ["add_to", "pay"]

LogArgument = Annotated[Path, typer.Argument(help="The log's folder.")]
KeyOption = Annotated[
    Path, typer.Option("--key", help="The log's SSH key: the private file, or with an agent its .pub.")
]
Reference = Annotated[str, typer.Argument(metavar="ENTRY", help="The registration: its number, file name or digest.")]


def add_to(app: typer.Typer) -> None:
    """Register `stamp`, `amend`, `withdraw`, `rotate` and `export` on `app`."""
    app.command("stamp")(stamp_command)
    app.command("amend")(amend_command)
    app.command("withdraw")(withdraw_command)
    app.command("rotate")(rotate_command)
    app.command("export")(export_command)


def stamp_command(
    log: LogArgument,
    key: KeyOption,
    authorities: Annotated[
        Path, typer.Option("--authorities", help="TOML with [[authority]] name, url and ca (a PEM file).")
    ],
    as_json: JsonFlag = False,
) -> None:
    """Pay the time that is owed: fetch RFC 3161 tokens and chain them."""
    pay(log, authorities, key, as_json=as_json)


def pay(log: Path, authorities: Path, key: Path, *, as_json: bool) -> None:
    """Fetch what is owed; AuthorityAway where every authority was away and nothing came."""
    from prereg.stamping import owed, stamp
    from prereg.time import AuthorityAway, read_authorities

    signed, away = stamp(log, read_authorities(authorities), key=key)
    for error in away:
        note(f"time owed: {error}")
    left = len(owed(log))
    if signed is None and away:
        raise AuthorityAway(f"no token came; {left} entries owe time: try again with `platocast log stamp {log}`")
    tokens = 0 if signed is None else len(signed.body["tokens"])
    path = None if signed is None else str(signed.path)
    show_record({"entry": path, "tokens": tokens, "still owed": left}, as_json=as_json)


def amend_command(
    log: LogArgument,
    entry: Reference,
    text: Annotated[str, typer.Option("--text", help="What is noted, in words.")],
    key: KeyOption,
    deadline: Annotated[str | None, typer.Option("--deadline", help="A later day (UTC) to be resolved by.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Sign a note on a registration; its forecasts stay as they are."""
    from prereg.amending import amend

    _show(amend(log, entry, text=text, key=key, deadline=deadline), as_json)


def withdraw_command(
    log: LogArgument,
    entry: Reference,
    reason: Annotated[str, typer.Option("--reason", help="Why, in words.")],
    key: KeyOption,
    as_json: JsonFlag = False,
) -> None:
    """Give a registration up, in an entry of its own; it stays listed."""
    from prereg.amending import withdraw

    _show(withdraw(log, entry, reason=reason, key=key), as_json)


def rotate_command(
    log: LogArgument,
    key: KeyOption,
    new_key: Annotated[Path, typer.Option("--new-key", help="The SSH key that signs from now on.")],
    as_json: JsonFlag = False,
) -> None:
    """Hand the log over to a new key, in an entry that the old key signs."""
    from prereg.log import Log

    _show(Log(log).rotate(key=key, new_key=new_key), as_json)


def export_command(
    log: LogArgument,
    entry: Reference,
    key: KeyOption,
    out: Annotated[Path, typer.Option("--out", help="Where to write the envelope (JSON).")],
) -> None:
    """Write a registration as a signed in-toto statement in a DSSE envelope."""
    from prereg.export import export

    export(log, entry, key=key, out=out)
    note(f"wrote {out}")


def _show(signed: SignedEntry, as_json: bool) -> None:
    show_record({"entry": str(signed.path), "digest": signed.digest}, as_json=as_json)
