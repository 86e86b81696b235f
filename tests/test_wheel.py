"""What the wheel holds at its top level, and that it runs from outside the checkout."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.xdist_group("wheel")  # one build serves them all
TOP_LEVEL = {"forecast", "prereg", "runner"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel built from an sdist of the checkout, as a release would be.

    Built from a copy without hidden files: other tests, at the same time, make and remove locks beside what they read.
    """
    out, copy = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("copy") / "platocast"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__"))
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(copy)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, (built.stdout + built.stderr)[-3000:]
    return next(out.glob("*.whl"))


def strangers(names: list[str]) -> set[str]:
    """Top-level names of a wheel that are neither our packages nor its metadata."""
    return {n for n in (name.split("/")[0] for name in names) if not n.endswith(".dist-info")} - TOP_LEVEL


@pytest.mark.slow
def test_the_wheel_holds_our_three_packages_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()

    assert set() == strangers(names)
    assert {name.split("/")[0] for name in names} >= TOP_LEVEL
    assert {"runner/content/glyphs/manifest.json", "runner/content/glyphs/reference.npy", "forecast/schema.sql"} <= set(
        names
    )


def test_the_guard_on_the_wheel_can_fail():
    assert {"data"} == strangers(["forecast/__init__.py", "data/__init__.py", "platocast-0.1.0.dist-info/WHEEL"])


@pytest.mark.slow
def test_the_wheel_runs_away_from_the_checkout(wheel, tmp_path):
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    probe = (
        "import forecast; from forecast.content import content_path; from runner.worlds.glyphs import load_glyphs;"
        "print(forecast.__file__); print(content_path('glyphs')); print(len(load_glyphs().test))"
    )
    environment = os.environ | {"PYTHONPATH": str(site), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, "-c", probe], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )

    assert [str(site / "forecast/__init__.py"), str(site / "runner/content/glyphs"), "1553"] == done.stdout.split()
