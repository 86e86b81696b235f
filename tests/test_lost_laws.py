"""A law without a value at a held-out design is left out, and said."""

import numpy as np
import pytest
from worlds_of_runs import run

from forecast.fitting import fit
from forecast.records import Metric

LOSS = Metric(name="loss", lower=0.0, higher_is_better=False)
SIZES = 1e3 * 2.0 ** np.arange(8)


def runs():
    """A steep power law: a straight line in log n falls below 0 beyond what it was fitted to."""
    rng = np.random.default_rng(0)
    return [
        run(
            f"r{i}-{k}",
            float(n),
            None,
            3.0 * (n / 1e3) ** -1.1 * float(np.exp(rng.normal(0, 0.01))),
            seed=k,
            metric=LOSS,
        )
        for i, n in enumerate(SIZES)
        for k in range(2)
    ]


def test_a_null_that_falls_below_what_the_link_can_take_has_no_score_and_the_fit_stands():
    found = fit(runs(), metric="loss", link="log", rng=np.random.default_rng(0))
    line = next(row for row in found.candidates if row.law == "linear-log-n")

    assert line.backtest_crps is None
    assert 1.1 == pytest.approx(next(e.value for e in found.parameters if e.name in ("beta", "alpha", "c")), abs=0.1)


def test_a_law_of_the_user_s_that_does_so_is_neither_chosen_nor_left_unsaid():
    formula = "A - B*log(n)"
    found = fit(
        runs(),
        metric="loss",
        law=formula,
        link="log",
        bounds={"A": (0, 50), "B": (0, 10)},
        rng=np.random.default_rng(0),
    )

    assert () == found.held_out
    assert any("has no finite value there" in warning for warning in found.warnings)
