"""What the demo does to folders; the loop itself is `make demo`, which CI runs."""

import pytest

from forecast.errors import CheckFailed, ForecastError
from runner.demo import _empty, _make_key, _run, _trust


def test_a_folder_that_no_demo_made_is_refused_and_kept(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")

    with pytest.raises(ForecastError, match="not made by a demo"):
        _empty(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_second_demo_starts_from_a_clean_folder(tmp_path):
    folder = tmp_path / "demo"
    _empty(folder)
    (folder / "log").mkdir()
    _empty(folder)

    assert [".platocast-demo"] == [path.name for path in folder.iterdir()]


def test_the_demos_key_is_fresh_and_its_verifier_trusts_it_by_name(tmp_path):
    _make_key(tmp_path / "one")
    _make_key(tmp_path / "two")
    _trust(tmp_path / "one", tmp_path / "signers")
    blob = (tmp_path / "one.pub").read_text().split()[1]

    assert blob != (tmp_path / "two.pub").read_text().split()[1]
    assert f'"platocast demo" ssh-ed25519 {blob}\n' == (tmp_path / "signers").read_text()


def test_a_step_that_fails_stops_the_demo(tmp_path):
    with pytest.raises(CheckFailed, match=r"'platocast runs' ended with exit code 2"):
        _run(["runs", tmp_path / "missing.jsonl"])
