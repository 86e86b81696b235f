"""The fit's report: what it says, and in a real Chromium that it draws, sorts and asks nobody."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from chromium import Browser, needs_chromium
from worlds_of_runs import simulated_runs

from forecast.chart_data import axes_of, observations
from forecast.fitting import fit
from forecast.page import Page, number, table
from forecast.prediction import predict
from forecast.records import Design, Target
from forecast.report import fit_page, report_fit

RUNS = simulated_runs()


@pytest.fixture(scope="module")
def fitted():
    return fit(RUNS, metric="mutual_knn", law="hill", rng=np.random.default_rng(1), seed=1)


@pytest.fixture(scope="module")
def page(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "index.html"
    path.write_text(report_fit(fitted, RUNS, rng=np.random.default_rng(2)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


class Spec(dict):
    """A chart's specification that stands for a chart."""

    def to_dict(self):
        return dict(self)


class Addresses(HTMLParser):
    """Every attribute of a page by which a browser would fetch something."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found += [value for name, value in attributes if name in ("src", "href", "data", "poster", "action")]


def test_the_page_is_one_file_with_nothing_to_fetch(page):
    parser = Addresses()
    parser.feed(page.read_text(encoding="utf-8"))

    assert parser.found == ["data:,"]
    assert "connect-src 'none'" in page.read_text(encoding="utf-8")


def test_the_page_says_who_what_and_how_to_repeat_it(page, fitted):
    text = page.read_text(encoding="utf-8")
    first = re.search(r"<h1[^>]*>(.*?)</h1>", text, re.DOTALL)[1]

    assert "hill" in first
    assert fitted.data_hash in text
    assert "platocast fit RUNS.jsonl --metric mutual_knn --law hill" in text
    assert number(fitted.noise.sigma) in text


def behind(fitted, by):
    """The fit with the best baseline so many standard errors behind it."""
    rows = [row.model_copy(update={"behind": by}) if row.kind == "baseline" else row for row in fitted.candidates]
    return fitted.model_copy(update={"candidates": tuple(rows)})


def test_the_headline_gives_a_ratio_only_where_the_law_is_preferred(fitted):
    ahead, equal, worse, alone = (
        fit_page(behind(fitted, by), rng=np.random.default_rng(0)).verdict for by in (4.0, 1.8, -4.0, None)
    )

    assert re.search(r"hill predicts .* with \d+% of the error \(CRPS\) of the best baseline", ahead)
    assert "hill and the baseline" in equal
    assert "cannot be told apart" in equal
    assert "%" not in equal + alone
    assert re.search(r"The baseline .* predicts .* better than hill", worse)
    assert "cannot be told apart" in alone


def test_the_points_drawn_are_the_predictions_of_the_fit(fitted):
    seen = observations(fitted, RUNS, np.random.default_rng(2))
    targets = [
        Target(target=f"t{i}", design=Design(settings={"n_samples": n, "good_view_fraction": g}))
        for i, (n, g) in enumerate(zip(seen.columns["n"], seen.columns["g"], strict=True))
    ]
    expected = [prediction.point for prediction in predict(fitted, targets, rng=np.random.default_rng(3))]
    outcomes = {run.run_id: run.evaluations[0].value for run in RUNS}

    assert expected == pytest.approx(seen.points)
    assert [outcomes[name] for name in seen.names] == seen.values.tolist()


def test_without_runs_the_design_means_are_drawn(fitted):
    seen = observations(fitted, None, np.random.default_rng(2))

    assert len(fitted.designs) == len(seen.values)


def test_axes_are_logarithmic_where_the_data_span_decades(fitted):
    n, g = axes_of(fitted)

    assert (n.name, n.log, n.data) == ("n", True, (8000.0, 512000.0))
    assert (g.name, g.log, g.domain) == ("g", False, (0.0, 1.0))
    assert all(n.domain[0] <= tick <= n.domain[1] for tick in n.ticks)


def test_text_from_outside_cannot_become_markup():
    page = Page(title="<b>", kicker="k", verdict="a & <script>alert(1)</script>", mark="<script>")
    page.section("<i>", table([{"<u>": "</table><script>x</script>"}]))
    text = page.html()

    assert "<script>alert" not in text
    assert "<script>x" not in text
    assert "<u>" not in text.split("<main>")[1].split("</main>")[0]


def test_a_chart_whose_data_close_the_script_do_not_close_it(fitted):
    page = Page(title="t", kicker="k", verdict="v")
    page.charts["c"] = Spec({"data": "</script><b>"})
    inner = re.search(r'id="c-spec">(.*?)</script>', page.html(), re.DOTALL)[1]

    assert json.loads(inner) == {"data": "</script><b>"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "–"),
        (0.0, "0"),
        (0.00379612, "0.003796"),
        (-1.5, "−1.5"),
        (326234.5, "326,200"),
        (512000, "512,000"),
        (3.2e-7, "3.2×10⁻⁰⁷".replace("⁰", "")),
        (True, "yes"),
    ],
)
def test_numbers_are_written_for_people(value, expected):
    assert expected == number(value)


def test_a_column_has_as_many_decimals_as_its_largest_number_needs():
    cells = re.findall(
        r'class="number" data-value="[^"]*">([^<]*)<', table([{"x": 0.02231}, {"x": 0.0038}, {"x": 0.0}])
    )

    assert cells == ["0.02231", "0.00380", "0.00000"]


@needs_chromium
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_chart_is_drawn_and_no_request_leaves_the_page(browser, page, width, dark):
    browser.open(page, width=width, dark=dark)
    kinds = "svg .mark-symbol path, svg .mark-rect path, svg .mark-line path, svg .mark-rule line"
    count = f"[...document.querySelectorAll('.chart')].map(c => [c.id, c.querySelectorAll('{kinds}').length])"
    marks = browser.ask(count)

    assert browser.complaints() == []
    assert browser.requests() == []
    assert {"curves", "surface", "comparison", "observed", "residuals-n", "residuals-g"} == {name for name, _ in marks}
    assert min(count for _, count in marks) > 5
    assert ("dark" if dark else "light") == browser.ask("document.documentElement.dataset.theme")
    assert browser.ask("document.documentElement.scrollWidth") <= width


@needs_chromium
def test_all_runs_are_points_on_the_curves(browser, page):
    browser.open(page)

    assert len(RUNS) == browser.ask("document.querySelectorAll('#curves .mark-symbol.role-mark path').length")


@needs_chromium
def test_a_table_sorts_by_number_up_and_down(browser, page):
    browser.open(page)
    column = (
        "[...[...document.querySelectorAll('table')].at(-1).tBodies[0].rows].map(r => Number(r.cells[3].dataset.value))"
    )
    click = "[...document.querySelectorAll('table')].at(-1).querySelectorAll('th button')[3].click()"
    browser.ask(click)
    up = browser.ask(column)
    browser.ask(click)
    down = browser.ask(column)

    assert sorted(up) == up
    assert sorted(up, reverse=True) == down
    assert (
        browser.ask("[...document.querySelectorAll('table')].at(-1).querySelectorAll('th')[3].ariaSort") == "descending"
    )


@needs_chromium
def test_a_page_that_asks_somebody_or_fails_is_noticed(browser, tmp_path):
    spec = {"data": {"url": "http://127.0.0.1:9/a.json"}, "mark": "nonsense", "encoding": {}}
    guilty = Page(
        title="t", kicker="k", verdict="v", parts=['<div class="chart" id="c"></div>'], charts={"c": Spec(spec)}
    )
    path = tmp_path / "guilty.html"
    text = guilty.html().replace("<main>", '<main><img src="http://127.0.0.1:9/pixel.png">')
    path.write_text(re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text), encoding="utf-8")
    browser.open(path)

    assert "http://127.0.0.1:9/pixel.png" in browser.requests()
    assert browser.complaints() != []
