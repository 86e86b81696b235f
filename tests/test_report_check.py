"""The check's report: claim, verdict, evidence and every run, drawn in a real Chromium."""

import base64
import re
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from chromium import Browser, needs_chromium
from registration_cases import outcomes, registered, statement_body
from worlds_of_runs import simulated_runs

from forecast.files import sha256_hex
from forecast.fitting import fit
from forecast.records import Design
from prereg.check import check
from prereg.report_check import report_check
from prereg.resolving import resolve
from prereg.verify import examine_log

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def place(body):
    """Give the targets of a registration designs that vary in g and n."""
    for i, target in enumerate(body["targets"]):
        settings = {"good_view_fraction": SHARES[i % 5], "n_samples": 8000 * 2 ** (i // 5), "objective": "jepa"}
        target["design"], target["design_hash"] = {"settings": settings}, Design(settings=settings).hash
    body["power"] = [{"curve_error": e, "probability": p} for e, p in ((0, 0.98), (1, 0.5), (2, 0.01))]
    return body


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    folder = tmp_path_factory.mktemp("case")
    fitted = fit(simulated_runs(), metric="mutual_knn", law="hill", rng=np.random.default_rng(1), seed=1)
    fitted.save(folder / "fit.json")
    body = place(statement_body(targets=30, replicates=3))
    body["fit"]["file_hash"] = sha256_hex((folder / "fit.json").read_bytes())
    body["rules"]["looks"] = 2
    registration, log, _ = registered(folder, body)
    runs = outcomes(registration, np.random.default_rng(1))
    runs[0] = type(runs[0]).model_validate(runs[0].model_dump() | {"provenance": {"submitted": "2020-01-01T00:00:00Z"}})
    result = check(registration, runs[:-2], rng=np.random.default_rng(0), as_of=date(2026, 12, 1))
    result.save(folder / "check.json")
    return folder, registration, log, fitted, result


@pytest.fixture(scope="module")
def page(case):
    folder, registration, log, fitted, result = case
    options = {"rng": np.random.default_rng(2), "fit": fitted, "findings": examine_log(log).findings}
    (folder / "check.html").write_text(report_check(result, registration, **options), encoding="utf-8")
    return folder / "check.html"


def test_the_page_states_claim_author_key_and_verdict(case, page):
    _, registration, _, _, result = case
    text = page.read_text(encoding="utf-8")
    first = re.sub("<[^>]*>", "", re.search(r"<h1[^>]*>(.*?)</h1>", text, re.DOTALL)[1])

    assert first.startswith("INTERIM 88 of 90: AS GOOD AS SEED NOISE: the forecast missed 88 new runs by ")
    assert "Ada &lt;ada@example.org&gt;" in text
    assert registration.signed.key.fingerprint in text
    assert registration.digest in text
    assert registration.statement.refuted_by in text
    assert all(finding.text in text for finding in result.findings)


def test_what_was_not_examined_is_on_the_page_and_not_passed(page):
    text = page.read_text(encoding="utf-8")

    assert 'class="tag not-examined"' in text
    assert "a second log under another key" in text


def test_every_registered_run_has_a_row_missing_ones_too(page):
    rows = page.read_text(encoding="utf-8").split("Every registered run")[1].split("</table>")[0]

    assert rows.count("<tr>") == 91
    assert rows.count('data-value="missing"') == 2
    assert rows.count('data-value="submitted early"') == 1


def test_the_page_names_what_was_missing_and_early(page):
    assert "2 missing, 1 submitted early" in page.read_text(encoding="utf-8")


@needs_chromium
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_every_chart_of_the_check_is_drawn_and_no_request_leaves(page, tmp_path, width, dark):
    with Browser(tmp_path) as browser:
        browser.open(page, width=width, dark=dark)
        kinds = "svg .mark-symbol path, svg .mark-rect path, svg .mark-line path"
        count = f"[...document.querySelectorAll('.chart')].map(c => [c.id, c.querySelectorAll('{kinds}').length])"
        marks = dict(browser.ask(count))
        points = browser.ask("document.querySelectorAll('#observed .mark-symbol.role-mark path').length")

        assert browser.complaints() == []
        assert browser.requests() == []
        assert browser.ask("document.documentElement.scrollWidth") <= width
    names = {"curves", "observed", "residuals-n_samples", "residuals-good_view_fraction", "coverage", "pit", "power"}
    assert set(marks) == names
    assert min(marks.values()) > 2
    assert points == 88


@needs_chromium
def test_the_page_prints_whole_with_its_charts_and_no_scrollbar(page, tmp_path):
    with Browser(tmp_path) as browser:
        browser.open(page, width=1280)
        pdf = base64.b64decode(browser.command("Page.printToPDF", preferCSSPageSize=True)["data"])
        browser.command("Emulation.setEmulatedMedia", media="print")
        cut = browser.ask(
            "[...document.querySelectorAll('.scroll, pre')]"
            ".filter(e => getComputedStyle(e).overflowX != 'visible').length"
        )
        hidden = browser.ask("[...document.querySelectorAll('.chart')].filter(c => !c.clientHeight).length")

    assert pdf.startswith(b"%PDF-")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf)) <= 30
    assert (0, 0) == (cut, hidden)


def test_a_check_that_nobody_signed_or_that_was_edited_is_told_on_its_page(case, tmp_path):
    folder, registration, _, _, result = case
    place = shutil.copytree(folder, tmp_path / "place")
    words = ["report", "check.json", "--log", "log", "--out"]
    assert platocast(*words, "unsigned.html", cwd=place).returncode == 0
    resolve(place / "log", result, ledger=place / "check.json", key=place / "key")
    assert platocast(*words, "signed.html", cwd=place).returncode == 0
    result.model_copy(update={"rmse": 1e-9, "claim": "all is well"}).save(place / "check.json")
    assert platocast(*words, "edited.html", cwd=place).returncode == 0
    pages = {name: (place / f"{name}.html").read_text("utf-8") for name in ("unsigned", "signed", "edited")}

    assert "this check is signed nowhere" in pages["unsigned"]
    assert "signed exactly this check" in pages["signed"]
    assert "this is not the check that entry 3 signed" in pages["edited"]
    assert "all is well" not in pages["edited"]
    assert registration.statement.claim in pages["edited"]


def test_the_command_exports_every_table_and_chart_of_a_check(case, tmp_path):
    folder, registration, *_ = case
    words = ["export", "check.json", "--log", "log", "--fit", "fit.json", "--format", "csv", "--format", "vl.json"]
    done = platocast(*words, "--out", tmp_path / "out", cwd=folder)
    outcomes_csv = pd.read_csv(tmp_path / "out" / "outcomes.csv")

    assert done.returncode == 0, done.stderr
    assert registration.statement.runs == len(outcomes_csv)
    assert {"missing": 2, "finished": 88} == outcomes_csv["status"].value_counts().to_dict()
    assert {"findings.csv", "baselines.csv", "coverage.csv", "strata.csv", "observed.vl.json", "power.vl.json"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }


def platocast(*words, cwd):
    command = [str(Path(sys.executable).with_name("platocast")), *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def test_the_command_writes_the_page_and_refuses_another_fit(case):
    folder, *_ = case
    done = platocast("report", "check.json", "--log", "log", "--fit", "fit.json", "--out", "out/index.html", cwd=folder)
    without = platocast("report", "check.json", cwd=folder)
    (folder / "other.json").write_text((folder / "fit.json").read_text() + " ")
    other = platocast("report", "check.json", "--log", "log", "--fit", "other.json", cwd=folder)

    assert done.returncode == 0, done.stderr
    assert "AS GOOD AS SEED NOISE" in (folder / "out/index.html").read_text(encoding="utf-8")
    assert (without.returncode, "--log LOG" in without.stderr) == (2, True)
    assert (other.returncode, "is not the fit that was registered" in other.stderr) == (2, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "is not JSON"),
        ("[]", "states no format"),
        ('{"format": "platocast-run-1"}', "there are reports of platocast-check-1, platocast-fit-1"),
        ('{"format": "platocast-fit-1"}', "no fit of this version"),
    ],
)
def test_a_file_without_a_report_is_refused(tmp_path, text, expected):
    (tmp_path / "x.json").write_text(text)
    refused = platocast("report", "x.json", cwd=tmp_path)

    assert (refused.returncode, expected in refused.stderr) == (2, True)
