"""Imports point one way, and heavy packages are loaded only by the files that own them."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALLOWED = {"forecast": {"forecast"}, "prereg": {"forecast", "prereg"}, "runner": {"forecast", "prereg", "runner"}}
HEAVY = ("torch", "submitit", "duckdb", "altair")


def imported(source: str) -> set[str]:
    """Top-level names of every import in `source`, those inside functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


def wrong_way(package: str, source: str) -> set[str]:
    """Packages of ours that `source`, a file of `package`, must not import."""
    return imported(source) & set(ALLOWED) - ALLOWED[package]


def files(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_imports_point_one_way(package):
    wrong = {str(file): wrong_way(package, file.read_text()) for file in files(package)}

    assert len(wrong) > 3
    assert {} == {file: names for file, names in wrong.items() if names}


def test_the_guard_on_imports_can_fail():
    assert {"runner"} == wrong_way("prereg", "def f():\n    from runner.study import Study\n")
    assert {"prereg"} == wrong_way("forecast", "import prereg.log as log")
    assert set() == wrong_way("runner", "import forecast, prereg")


@pytest.mark.parametrize("command", ["import forecast", "import prereg", "from runner.cli import app"])
def test_light_entry_points_load_nothing_heavy(command):
    probe = f"import sys; {command}; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_the_probe_for_heavy_packages_can_fail():
    probe = f"import sys; import duckdb; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "['duckdb']"


def test_help_loads_nothing_heavy():
    heavy = (*HEAVY, "scipy", "pandas")
    probe = (
        "import sys\nfrom runner.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit as end:\n"
        f"    assert end.code == 0\nsys.stderr.write(str(sorted(set({heavy!r}) & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)

    assert done.stderr.strip() == "[]"


def test_no_file_is_longer_than_400_lines():
    long = {str(f): n for p in ALLOWED for f in files(p) if (n := len(f.read_text().splitlines())) > 400}

    assert {} == long


def test_no_package_hides_in_data_or_reports():
    made_by_demo = ROOT / "reports" / "demo"
    found = [*(ROOT / "data").rglob("*.py"), *(ROOT / "reports").rglob("*.py")]

    assert [] == [path for path in found if made_by_demo not in path.parents]
