"""Scores beside the verdict, against closed forms."""

import math

import numpy as np
import pytest
from registration_cases import SIGMA, statement_body, target_body

from prereg.outcomes import Outcome
from prereg.secondary import score
from prereg.statement import Registration


def outcome(claim, value, replicate=0):
    return Outcome(
        target=claim.target,
        replicate=replicate,
        run_id=f"{claim.target}-{replicate}",
        status="finished",
        value=value,
        error=value - claim.point,
    )


def scored(statement, values):
    rows = [outcome(claim, value) for claim, value in zip(statement.targets, values, strict=True)]
    return score(statement, rows, np.random.default_rng(0))


def statement(targets=60, **changes):
    body = statement_body(targets=targets, replicates=1)
    body["targets"] = [target_body(f"t{i:03d}", 0.4, replicates=1, n=1000 + i) for i in range(targets)]
    body["baselines"] = {"half": {claim["target"]: 0.5 for claim in body["targets"]}}
    return Registration.model_validate(body | changes)


def test_wis_of_the_median_itself_is_the_mean_width_part():
    registered = statement()
    levels = {float(level): float(value) for level, value in registered.targets[0].quantiles.items()}
    losses = [max(level * (0.4 - q), (level - 1) * (0.4 - q)) for level, q in levels.items()]
    result = scored(registered, [0.4] * 60)

    assert 2 * np.mean(losses) == pytest.approx(result.wis)


def test_crps_of_the_joint_forecast_is_near_that_of_its_normal():
    result = scored(statement(), [0.4] * 60)
    sd = 1.5 * SIGMA
    expected = sd * (math.sqrt(2) - 1) / math.sqrt(math.pi)  # a normal's CRPS at its mean

    assert expected == pytest.approx(result.crps, rel=0.05)


def test_skill_is_one_minus_the_ratio_of_squared_errors():
    rng = np.random.default_rng(1)
    values = 0.4 + rng.normal(0, SIGMA, 60)
    row = scored(statement(), values).skill[0]

    assert 1 - np.mean((values - 0.4) ** 2) / np.mean((values - 0.5) ** 2) == pytest.approx(row.skill)
    assert np.sqrt(np.mean((values - 0.5) ** 2)) == pytest.approx(row.rmse)


def test_the_coverage_band_knows_that_targets_share_the_laws_error():
    """All targets move together, so the observed share varies far more than a binomial one."""
    rows = scored(statement(), [0.4] * 60).coverage
    half = next(row for row in rows if row.level == 0.5)
    binomial = 1.96 * math.sqrt(0.25 / 60)

    assert half.band_upper - half.band_lower > 1.5 * 2 * binomial
    assert [0.95, 0.9, 0.8, 0.5] == [row.level for row in rows]


def test_outcomes_from_the_registered_forecast_lie_in_the_bands():
    rng = np.random.default_rng(2)
    inside, total = 0, 0
    for _ in range(8):
        values = 0.4 + SIGMA * math.sqrt(1.25) * rng.normal() + SIGMA * rng.normal(size=60)
        rows = scored(statement(), values).coverage
        inside += sum(row.inside for row in rows)
        total += len(rows)

    assert inside / total > 0.85


def test_pit_is_shown_from_40_outcomes_on():
    few, many = scored(statement(39), [0.4] * 39), scored(statement(40), [0.4] * 40)

    assert few.pit == ()
    assert 10 == len(many.pit)
    assert 1.0 == pytest.approx(sum(row.observed for row in many.pit))


def test_a_mean_of_k_is_scored_as_a_mean():
    body = statement_body(targets=3, replicates=3)
    for claim in body["targets"]:
        claim["quantity"] = "mean of 3"
    registered = Registration.model_validate(body)
    rows = [
        outcome(claim, claim.point + shift, k)
        for claim in registered.targets
        for k, shift in enumerate((-0.01, 0.0, 0.01))
    ]
    result = score(registered, rows, np.random.default_rng(0))

    assert 3 == result.outcomes
    assert 1.0 == next(row.observed for row in result.coverage if row.level == 0.5)


def test_a_trend_is_named_per_good_view_fraction():
    body = statement_body(targets=5, replicates=1)
    body["targets"] = [target_body(f"t{i}", 0.4, replicates=1, n=1000 * 10**i) for i in range(5)]
    body["baselines"] = {}
    registered = Registration.model_validate(body)
    over = scored(registered, [0.4 - 0.01 * i for i in range(5)])
    none = scored(registered, [0.4, 0.41, 0.4, 0.41, 0.4])

    assert over.trends[0].text.startswith("good_view_fraction 0.5: the forecast overestimates long training, by 0.01")
    assert -0.01 == pytest.approx(over.trends[0].slope)
    assert "no trend" in none.trends[0].text
    assert {"extrapolation", "good_view_fraction", "objective"} == {row.name for row in over.strata}
