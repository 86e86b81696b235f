"""The code that jobs run: its hash, its copy, and what is noticed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from forecast.code import evaluation_code_hash
from forecast.errors import ForecastError
from runner.snapshot import code_hash, job_environment, take_snapshot, verify_running_code


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small checkout: three packages, project files, worlds."""
    root = tmp_path / "tree"
    for name in ("forecast/__init__.py", "prereg/__init__.py", "runner/__init__.py", "runner/deep/x.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"# {name}\n")
    (root / "pyproject.toml").write_text("[project]\n")
    (root / "constraints.txt").write_text("numpy==2\n")
    (root / "data/glyphs").mkdir(parents=True)
    (root / "data/glyphs/manifest.json").write_text("{}")
    (root / "data/runs").mkdir()
    (root / "data/runs/pilot.jsonl").write_text("{}")
    return root


def test_a_snapshot_has_the_hash_of_its_source(tree: Path, tmp_path: Path) -> None:
    snapshot = take_snapshot(tmp_path / "out", tree)

    assert code_hash(tree) == snapshot.code_hash == code_hash(snapshot.path)
    assert (snapshot.path / "runner/deep/x.py").read_text() == "# runner/deep/x.py\n"
    assert (snapshot.path / "data/glyphs/manifest.json").exists()
    assert not (snapshot.path / "data/runs").exists()


def test_evaluation_code_is_what_scores_and_nothing_else(tree: Path) -> None:
    (tree / "runner/metrics").mkdir()
    (tree / "runner/metrics/knn.py").write_text("k = 10\n")
    (tree / "runner/evaluation.py").write_text("draws = 16\n")
    before = evaluation_code_hash(tree)
    (tree / "runner/deep/x.py").write_text("# other\n")

    assert before == evaluation_code_hash(tree)
    for name in ("runner/metrics/knn.py", "runner/evaluation.py"):
        was = evaluation_code_hash(tree)
        (tree / name).write_text("# changed\n")
        assert was != evaluation_code_hash(tree)


def test_equal_code_is_copied_once(tree: Path, tmp_path: Path) -> None:
    first = take_snapshot(tmp_path / "out", tree)
    (tree / "runner/__pycache__").mkdir()
    (tree / "runner/__pycache__/x.pyc").write_bytes(b"x")
    (tree / "README.md").write_text("not code")

    assert first == take_snapshot(tmp_path / "out", tree)


@pytest.mark.parametrize("name", ["runner/deep/x.py", "pyproject.toml", "constraints.txt", "data/glyphs/manifest.json"])
def test_changed_bytes_give_another_snapshot(tree: Path, tmp_path: Path, name: str) -> None:
    first = take_snapshot(tmp_path / "out", tree)
    (tree / name).write_text("changed")
    second = take_snapshot(tmp_path / "out", tree)

    assert first.path != second.path
    assert (first.code_hash == second.code_hash) == name.startswith("data/")


@pytest.mark.parametrize("name", ["runner/deep/x.py", "runner/new.py", "data/glyphs/manifest.json"])
def test_a_tampered_snapshot_is_refused(tree: Path, tmp_path: Path, name: str) -> None:
    snapshot = take_snapshot(tmp_path / "out", tree)
    (snapshot.path / name).write_text("tampered")

    with pytest.raises(ForecastError, match=r"not .* as launched"):
        take_snapshot(tmp_path / "out", tree)


def test_code_from_elsewhere_is_refused(tmp_path: Path) -> None:
    snapshot = take_snapshot(tmp_path)

    with pytest.raises(ForecastError, match=r"was loaded from .* not from the snapshot"):
        verify_running_code(snapshot.path, snapshot.code_hash, snapshot.content_hash)


def test_our_packages_come_first_in_the_environment(tmp_path: Path) -> None:
    environment = job_environment(tmp_path, {"PYTHONPATH": "/mine", "HOME": "/h"})

    assert {"PYTHONPATH": f"{tmp_path}:/mine", "PYTHONSAFEPATH": "1", "HOME": "/h"} == environment


def test_a_lost_source_is_an_error(tree: Path, tmp_path: Path) -> None:
    shutil.rmtree(tree / "runner")

    assert code_hash(tree) != take_snapshot(tmp_path).code_hash
