"""The documents of the site are true: the tutorial runs, how-tos print what they show, files are as described."""

import json
import re
import sys
from pathlib import Path

import pytest
import typer.main
import yaml
from console_blocks import ROOT, blocks_of, differences, prepare, run

from forecast.records import Run, Target
from runner.cli import app
from runner.study import load_study

DOCS = ROOT / "docs"
HOW_TOS = sorted(path for path in (DOCS / "how-to").glob("*.md") if blocks_of(path.read_text("utf-8")))


def fenced(name: str, language: str) -> list[str]:
    """The blocks of one language in a document."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / name).read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_tutorial_runs_and_ends_in_a_forecast(tmp_path):
    import nbclient
    import nbformat

    book = nbformat.read(DOCS / "tutorial.ipynb", 4)
    assert [] == [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    client = nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    texts = [output["data"].get("text/plain", "") for output in outputs if "data" in output]

    assert [] == [output["text"] for output in outputs if output.output_type == "stream"]
    assert any("<table" in output["data"].get("text/html", "") for output in outputs if "data" in output)
    assert any(text.startswith("alt.") for text in texts)
    assert 4 == len(re.findall(r"g0\d\d-n\d+", texts[-1]))


@pytest.mark.slow
@pytest.mark.parametrize("document", HOW_TOS, ids=lambda path: path.stem)
def test_a_how_tos_sessions_run_and_print_what_it_shows(document, tmp_path):
    text = document.read_text("utf-8")
    folder = prepare(tmp_path, text)
    wrong = {}
    for block in blocks_of(text):
        for command in block:
            found = differences(command.shown, run(command, folder))
            if found and not command.varies:
                wrong[command.line] = found

    assert {} == wrong


def test_the_slurm_how_tos_study_is_valid(tmp_path):
    (text,) = fenced("how-to/slurm.md", "toml")
    (tmp_path / "pilot.toml").write_text(text)
    study = load_study(tmp_path / "pilot.toml")

    assert 18 == len(study.job_specs())
    assert "slurm" == study.executor.resolve(study.presets).kind


def test_the_described_files_are_what_they_are_called():
    run_text, targets_text = fenced("reference/files.md", "json")

    assert "pilot-3" == Run.model_validate_json(run_text).run_id
    assert [3] == [Target.model_validate(row).replicates for row in json.loads(targets_text)]


def test_every_page_is_in_the_navigation_and_exists():
    text = re.sub(r"!!python\S+", "", (ROOT / "mkdocs.yml").read_text("utf-8"))
    named = re.findall(r"[\w/-]+\.(?:md|ipynb)", json.dumps(yaml.safe_load(text)["nav"]))
    there = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*") if path.suffix in (".md", ".ipynb")]

    assert sorted(there) == sorted(named)


def documented(text: str) -> set[str]:
    return set(re.findall(r"^## platocast (\S+)$", text, re.MULTILINE))


def test_the_reference_shows_the_help_of_every_command(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    from commands import MARK, on_page_markdown

    page = on_page_markdown((DOCS / "reference" / "commands.md").read_text("utf-8"))

    assert set(typer.main.get_command(app).commands) <= documented(page)
    assert MARK not in page
    assert "Usage: platocast fit [OPTIONS]" in page
    assert set() == documented(page.replace("## platocast", "## "))
    sys.modules.pop("commands")


def dead_links(text: str, folder: Path) -> list[str]:
    """Relative links and pictures of a page in `folder` that lead nowhere."""
    return [target for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text) if not (folder / target).exists()]


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda path: path.stem)
def test_links_of_the_site_lead_somewhere(page):
    assert [] == dead_links(page.read_text("utf-8"), page.parent)


def test_the_guard_on_links_of_the_site_can_fail():
    assert ["nowhere.md"] == dead_links("[a](index.md) [b](nowhere.md)", DOCS)
