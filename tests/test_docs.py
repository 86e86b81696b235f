"""The documents are true: their commands run, their outputs are real, every command is documented."""

import re
from pathlib import Path

import pytest
import typer.main
from console_blocks import ROOT, blocks_of, differences, prepare, run

from runner.cli import app

README = (ROOT / "README.md").read_text("utf-8")


def undocumented(text: str) -> set[str]:
    """Commands of `platocast` that `text` never names."""
    return {name for name in typer.main.get_command(app).commands if not re.search(rf"\bplatocast {name}\b", text)}


def test_every_command_is_named_in_the_readme():
    assert set() == undocumented(README)


def test_the_guard_on_commands_can_fail():
    assert "fit" in undocumented(README.replace("platocast fit", "platocast  fit"))


def dead_links(text: str, folder: Path = ROOT) -> list[str]:
    """Relative links and pictures of a document in `folder` that lead nowhere."""
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    return [target for target in targets if not (folder / target).exists()]


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "data/README.md"])
def test_links_lead_somewhere(name):
    assert [] == dead_links((ROOT / name).read_text("utf-8"), (ROOT / name).parent)


def test_the_guard_on_links_can_fail():
    assert ["nowhere.md"] == dead_links("[a](README.md) [b](nowhere.md) [c](https://example.org)")


def test_files_named_in_contributing_exist():
    named = re.findall(r"`((?:forecast|prereg|runner|tests|data|reports|benchmarks)/[\w./-]*)`", CONTRIBUTING)

    assert len(named) > 10
    assert [] == [name for name in named if not (ROOT / name).exists()]


CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


@pytest.mark.slow
def test_the_readmes_sessions_run_and_print_what_it_shows(tmp_path):
    folder = prepare(tmp_path)
    blocks = blocks_of(README)
    wrong = {
        command.line: differences(command.shown, printed)
        for block in blocks
        for command in block
        if (printed := run(command, folder)) is not None and not command.varies
    }

    assert len(blocks) >= 3
    assert {} == {line: found for line, found in wrong.items() if found}


@pytest.mark.parametrize(
    ("printed", "differs"),
    [("loss 0.2003 of 1,000\n", False), ("loss 0.25 of 1,000\n", True), ("cost 0.2 of 1,000\n", True), ("", True)],
)
def test_the_comparison_of_outputs_can_fail(printed, differs):
    assert differs == bool(differences("loss 0.2 of 1,000\n", printed))


def test_a_command_that_fails_is_not_passed_over(tmp_path):
    (block,) = blocks_of("```console\n$ false\n```\n")

    with pytest.raises(AssertionError, match="exit code 1"):
        run(block[0], Path(tmp_path))
