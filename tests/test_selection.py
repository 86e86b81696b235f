"""Folds look ahead, scores are of designs that were not seen, and weights follow them."""

import numpy as np
import pytest
from worlds_of_runs import SHARES, SIZES, simulated_runs

from forecast.baselines import BASELINES, constant_per_g, nearest_design
from forecast.dataset import build
from forecast.selection import backtest_baseline, folds_of

MAPPING = {"n": "n_samples", "g": "good_view_fraction"}


def grid():
    g, n = np.meshgrid(SHARES, np.array(SIZES, dtype=float))
    return {"n": n.ravel(), "g": g.ravel()}


def test_folds_train_on_smaller_n_and_leave_each_g_and_the_corner_out():
    columns = grid()
    folds = folds_of(columns, 5)
    cuts = [f for f in folds if "<=" in f.name]

    assert {"n <= 64000", "n <= 128000", "n <= 256000"} == {f.name for f in cuts}
    assert all(columns["n"][f.train].max() < columns["n"][f.test].min() for f in cuts)
    assert 5 == sum(f.name.startswith("without g") for f in folds)
    assert 1 == sum("without n" in f.name for f in folds)
    assert not any(np.any(f.train & f.test) for f in folds)


def test_too_few_designs_leave_no_fold():
    few = {"n": np.array([1.0, 2.0, 4.0]), "g": np.ones(3)}

    assert [] == folds_of(few, 3)


def test_a_held_out_design_does_not_change_its_own_forecast():
    data = build(simulated_runs(), "mutual_knn", MAPPING)
    folds = folds_of(data.columns, 5)
    before = backtest_baseline(BASELINES["nearest-design"], data, folds)
    test = folds[0].test
    moved = data.means.copy()
    moved[test] += 1.0
    from dataclasses import replace

    after = backtest_baseline(BASELINES["nearest-design"], replace(data, means=moved), folds)
    mine = before.fold == 0

    assert before.error[mine] + 1.0 == pytest.approx(after.error[mine])


def test_baselines_are_what_they_are_named_for():
    columns = {"n": np.array([1e3, 1e4, 1e3, 1e4]), "g": np.array([0.0, 0.0, 1.0, 1.0])}
    means, counts = np.array([1.0, 2.0, 3.0, 5.0]), np.array([1.0, 3.0, 1.0, 1.0])
    targets = {"n": np.array([2e3, 9e4]), "g": np.array([0.0, 0.5])}

    assert [1.75, (1.75 + 4.0) / 2] == pytest.approx(constant_per_g(columns, means, counts, targets).tolist())
    assert [1.0, (2.0 + 5.0) / 2] == pytest.approx(nearest_design(columns, means, counts, targets).tolist())
