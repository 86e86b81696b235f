"""A fit in Python: a table in a terminal, HTML in a notebook, Altair charts."""

import altair
import numpy as np
import pytest
from worlds_of_runs import simulated_runs

from forecast.fitting import fit
from forecast.showing import charts_of, fit_html, fit_text

RUNS = simulated_runs()


@pytest.fixture(scope="module")
def fitted():
    return fit(RUNS, metric="mutual_knn", law="hill", rng=np.random.default_rng(1), seed=1)


def test_a_terminal_gets_a_table_that_fits(fitted):
    lines = fit_text(fitted, width=90).splitlines()

    assert lines[0].startswith("hill: mutual_knn = ")
    assert all(any(line.startswith(p.name) and f"{p.value:.4g}" in line for line in lines) for p in fitted.parameters)
    assert lines[-1].startswith("53 runs of 35 designs; seed noise 0.00")
    assert max(map(len, lines[1:-1])) <= 90


def test_a_notebook_gets_html_without_buttons(fitted):
    html = fit_html(fitted)

    assert html.count("<tr") == 1 + len(fitted.parameters)
    assert "button" not in html


def test_printing_and_displaying_a_fit_use_them(fitted):
    assert str(fitted) == fit_text(fitted)
    assert fitted._repr_html_() == fit_html(fitted)


def test_charts_are_altair_objects(fitted):
    charts = charts_of(fitted, RUNS, rng=np.random.default_rng(1))

    assert {"curves", "surface", "comparison", "observed"} <= set(charts)
    assert all(isinstance(chart, altair.TopLevelMixin) for chart in charts.values())
