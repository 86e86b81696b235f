"""Ratios at equal outcome: a constructed case with the paper's kind of answer, and bounds where a curve stops short."""

import numpy as np
import pytest

from forecast.errors import ForecastError
from forecast.ratio import ratio, split_arms
from forecast.records import Counters, Design, Evaluation, Metric, Run

METRIC = Metric(name="knn", chance=0.01, lower=0.0, upper=1.0)
GOOD, TOKEN = 3, 1  # texts of 20 tokens that a sample reads


def arm(objective: str, half: float, sizes, texts: int, noise: float = 0.0005) -> list[Run]:
    """Hill curves from 0.01 to 0.2 in n, half way at `half` samples."""
    rng = np.random.default_rng(1)
    runs = []
    for n in sizes:
        for seed in range(2):
            value = 0.01 + 0.19 / (1 + half / n) + float(rng.normal(0, noise))
            runs.append(
                Run(
                    run_id=f"{objective}-{n:g}-{seed}",
                    design=Design(settings={"n_samples": float(n), "objective": objective}),
                    seed=seed,
                    status="finished",
                    evaluations=(Evaluation(metric=METRIC, value=value),),
                    counters=Counters(tokens_processed=int(20 * texts * n)),
                )
            )
    return runs


# 0.109 is met at n = half * 0.099/0.091: 21.6M and 42 times that
HALF = 21.6e6 * 0.091 / 0.099
GOOD_RUNS = arm("good", HALF, 1e6 * 2.0 ** np.arange(7), GOOD)
TOKEN_RUNS = arm("next_token", 42 * HALF, 30e6 * 2.0 ** np.arange(7), TOKEN)


def factors(a, b, target=0.109):
    found = ratio(a, b, metric="knn", target=target, rng=np.random.default_rng(0), law="rising-hill")
    return {f.resource: f for f in found}


def test_42_times_the_samples_are_14_times_the_tokens():
    found = factors(GOOD_RUNS, TOKEN_RUNS)

    assert {"samples", "processed tokens"} == set(found)
    assert 42 == pytest.approx(found["samples"].value, rel=0.05)
    assert 14 == pytest.approx(found["processed tokens"].value, rel=0.05)
    assert found["samples"].lower < 42 < found["samples"].upper
    assert 21.6e6 == pytest.approx(found["samples"].a, rel=0.05)


def test_an_arm_that_stops_short_gives_a_bound_not_a_number():
    short = [r for r in TOKEN_RUNS if r.design.settings["n_samples"] <= 240e6]
    found = factors(GOOD_RUNS, short)["samples"]
    turned = factors(short, GOOD_RUNS)["samples"]

    assert "at least" == found.kind
    assert found.lower is None
    assert 240 / 21.6 == pytest.approx(found.value, rel=0.05)
    assert "at most" == turned.kind
    assert 21.6 / 240 == pytest.approx(turned.value, rel=0.05)


def test_a_target_that_neither_meets_is_refused():
    with pytest.raises(ForecastError, match="neither arm"):
        factors(GOOD_RUNS, TOKEN_RUNS, target=0.19)


def test_arms_are_found_by_their_values():
    good, token = split_arms([*GOOD_RUNS, *TOKEN_RUNS], "good", "next_token")

    assert (GOOD_RUNS, TOKEN_RUNS) == (good, token)
    assert good == split_arms([*GOOD_RUNS, *TOKEN_RUNS], "objective=good", "objective=next_token")[0]
    with pytest.raises(ForecastError, match="no setting has"):
        split_arms(GOOD_RUNS, "good", "next_token")
