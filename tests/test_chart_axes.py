"""Which axes are logarithmic."""

import pytest

from forecast.chart_data import axis_over


@pytest.mark.parametrize(
    ("setting", "values", "log"),
    [
        ("n_samples", [10_000, 20_000, 40_000], True),
        ("n_samples", [10_000, 20_000], False),
        ("good_view_fraction", [0.1, 0.9], False),
        ("good_view_fraction", [0.0, 1.0], False),
        ("learning_rate", [1e-4, 1e-2], True),
        ("offset", [0.0, 100.0], False),
    ],
)
def test_positive_sizes_are_drawn_by_their_ratios_and_fractions_evenly(setting, values, log):
    axis = axis_over("x", setting, values)

    assert log == axis.log
    assert log == axis.title.endswith("(log scale)")


def test_one_value_has_no_axis():
    assert axis_over("x", "n_samples", [3.0, 3.0]) is None
