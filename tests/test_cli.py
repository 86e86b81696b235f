"""The command's frame: exit codes, usage errors, --debug, and what every command offers."""

import subprocess
import sys

import pytest
import typer.main

from runner.cli import app, main

COMMAND = typer.main.get_command(app)


def leaves(group=COMMAND, path=()):
    """Every command with its words, those of groups included."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from leaves(command, (*path, name))
        else:
            yield (*path, name), command


def code_of(*words: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(words))
    return end.value.code


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fit", "--nope"], "No such option"),
        (["nonsense"], "No such command"),
        (["fit"], "Missing"),
        (["predict", "fit.json", "--n", "many"], "--n"),
        (["fit", "no-such-file.jsonl", "--metric", "m"], "no-such-file.jsonl"),
    ],
)
def test_bad_input_is_said_without_a_trace_and_exits_2(words, said, capsys):
    code = code_of(*words)
    printed = capsys.readouterr().err

    assert code == 2
    assert said in printed
    assert "Traceback" not in printed


def test_debug_shows_the_trace():
    command = [sys.executable, "-P", "-m", "runner", "--debug", "runs", "no-such-file.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "Traceback" in done.stderr


def test_help_exits_0(capsys):
    assert code_of("--help") == 0
    assert "register" in capsys.readouterr().out


def test_every_command_and_option_has_help():
    found = list(leaves())
    silent = [
        (*words, parameter.name)
        for words, command in found
        for parameter in command.params
        if not parameter.help and parameter.name != "help"
    ]

    assert len(found) > 20
    assert [] == silent
    assert [] == [words for words, command in found if not command.help]


NO_TABLE = {("report",), ("export",), ("demo",), ("logs",), ("log", "export")}


def test_every_command_that_prints_a_table_offers_json():
    without = {words for words, command in leaves() if not any(p.name == "as_json" for p in command.params)}

    assert set() == without - NO_TABLE
