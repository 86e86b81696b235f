"""What the data do not determine is said: ridges, profiles that never rise, bounds."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from worlds_of_runs import SIZES, run, simulated_runs

from forecast.fitted import Fit
from forecast.fitting import fit
from forecast.records import Design, Evaluation, Metric, Run

TABLES = Path(__file__).resolve().parents[2] / "shared" / "tables"


def fitted(runs, law, **options) -> Fit:
    return fit(runs, metric="mutual_knn", law=law, rng=np.random.default_rng(0), **options)


def curve(points=10, noise=0.001) -> list[Run]:
    rng = np.random.default_rng(2)
    return [
        run(f"r{i}-{k}", n, None, 0.5 * n**-0.3 + float(rng.normal(0, noise)), seed=k)
        for i, n in enumerate(np.geomspace(10, 1000, points))
        for k in range(2)
    ]


def test_a_product_of_two_parameters_is_not_identified_and_the_trade_is_told():
    f = fitted(curve(), "A*B*n**(-b)", bounds={"A": (0.01, 100.0), "B": (0.01, 100.0), "b": (0.01, 4.0)})

    assert "not identified" == f.chosen.status
    assert any("do not identify A of formula" in warning for warning in f.warnings)
    assert any("hardly more than a combination: A x" in w and "B x" in w for w in f.warnings)


def test_a_well_determined_law_says_nothing_of_the_kind():
    f = fitted(curve(), "B*n**(-b)", bounds={"B": (0.01, 100.0), "b": (0.01, 4.0)})

    assert "converged" == f.chosen.status
    assert not any("combination" in w or "identify" in w or "limit" in w for w in f.warnings)


def test_a_ceiling_far_beyond_the_data_has_no_upper_limit():
    f = fitted(simulated_runs(sizes=SIZES[:4], seed=3), "hill")
    ceiling = f.parameters[0]

    assert ("A", None, "free") == (ceiling.name, ceiling.upper, ceiling.status)
    assert any("the data give A of hill no upper limit: its profile never rises" in w for w in f.warnings)
    assert any("hardly more than a combination: A +" in w and "n50 x" in w for w in f.warnings)


def test_a_parameter_at_its_bound_is_named():
    f = fitted(simulated_runs(noise=0.001), "hill-floor", bounds={}, fixed={"kappa": 0.1})
    stuck = fitted(curve(), "E + B*n**(-b)", bounds={"E": (0.0, 1.0), "B": (0.01, 9.0), "b": (0.5, 4.0)})

    assert any("b of formula lies at lower bound (0.5)" in warning for warning in stuck.warnings)
    assert not any("lies at" in warning for warning in f.warnings)


@pytest.mark.skipif(not TABLES.is_dir(), reason=f"the public tables are not at {TABLES}")
def test_the_ridge_of_the_data_constrained_law_is_reported():
    """Muennighoff et al.'s R_D* and R_N* on their own 182 runs: 6 times R_D* costs 0.13 % of the objective."""
    frame = pd.read_csv(TABLES / "datablations" / "runs_fit_182.csv")
    metric = Metric(name="mutual_knn", higher_is_better=False)
    runs = [
        Run(
            run_id=f"r{i}",
            design=Design(settings={"N": float(row.N), "D": float(row.D), "U": float(row.U)}),
            seed=i,
            status="finished",
            evaluations=(Evaluation(metric=metric, value=float(row.loss)),),
        )
        for i, row in enumerate(frame.itertuples())
    ]
    published = {"A": np.exp(6.255414), "B": np.exp(7.3049974), "E": np.exp(0.6254804), "alpha": 0.3526596}
    f = fitted(runs, "data-constrained", fixed=published, loss="huber", delta=1e-3, link="log")
    rd, rn = f.parameters
    said = [w for w in f.warnings if "rd" in w or "rn" in w]

    assert ("rd", "rn") == (rd.name, rn.name)
    assert rd.upper is None or rd.upper > 6 * 15.387756
    assert any("rd of data-constrained no upper limit" in warning for warning in said)
    assert any("do not identify rn" in warning for warning in said)
