"""Pages and exports made of files of unknown origin."""

import altair as alt

from forecast.exporting import export
from forecast.page import Page

HOSTILE = '"><img src=x onerror="document.title=1"></script><!--<script>'


def page_of(*names):
    page = Page(title="t", kicker="k", verdict="v", mark="", tone="doubt", lead="", facts=[])
    chart = alt.Chart(alt.InlineData(values=[{"x": 1, "name": HOSTILE}])).mark_point().encode(x="x:Q")
    page.section("Charts", *[page.chart(name, chart, name) for name in names])
    return page


def test_a_charts_name_cannot_become_markup_or_end_a_script():
    text = page_of(HOSTILE).html()

    assert "<img src=x" not in text
    assert "<!--<script>" not in text
    assert "&lt;img src=x" in text


def test_a_charts_name_cannot_lead_out_of_the_folder(tmp_path):
    page = page_of("/../../../escaped", "../x")
    written = export(page, tmp_path / "a" / "b" / "c", ["vl.json"])

    assert 2 == len(written)
    assert {tmp_path / "a" / "b" / "c"} == {path.resolve().parent for path in written}
    assert [] == [path for path in tmp_path.rglob("*.json") if path not in written]


def test_two_names_that_become_one_are_told_apart():
    assert ["a-b", "a-b-1"] == list(page_of("a/b", "a b").charts)
