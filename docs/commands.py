"""Writes every command's help into reference/commands.md when the site is built."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MARK = "<!-- every command -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the mark by the help of each command, as the terminal prints it."""
    return markdown.replace(MARK, "\n".join(sections())) if MARK in markdown else markdown


def sections() -> Iterator[str]:
    """A heading and a block of text for each command and each command of a group."""
    import typer.main

    from runner.cli import app

    yield from _sections(typer.main.get_command(app), ["platocast"])


def _sections(command: Any, words: list[str]) -> Iterator[str]:
    for name, found in sorted(command.commands.items()):
        path = [*words, name]
        context = found.make_context(" ".join(path), [], resilient_parsing=True, terminal_width=80)
        yield f"\n## {' '.join(path)}\n\n```text\n{found.get_help(context).rstrip()}\n```\n"
        if hasattr(found, "commands"):
            yield from _sections(found, path)
