"""The check: one verdict, what stands beside it, and what it refuses to say."""

from datetime import date

import numpy as np
import pytest
from registration_cases import METRIC, SIGMA, outcomes, registered, statement_body

from forecast.errors import ForecastError
from forecast.noise_test import replicate_test
from forecast.records import Evaluation
from prereg.check import Check, check
from prereg.finding import Finding

TODAY = date(2026, 12, 1)


def checked(registration, runs, **options):
    return check(registration, runs, rng=np.random.default_rng(0), as_of=TODAY, **options)


def codes(result):
    return [finding.code for finding in result.findings if finding.level == "failed"]


def changed(run, **fields):
    return type(run).model_validate(run.model_dump() | fields)


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    registration, _, _ = registered(tmp_path_factory.mktemp("case"), statement_body(targets=20, replicates=3))
    return registration, outcomes(registration, np.random.default_rng(1))


def test_a_law_without_error_is_as_good_as_seed_noise(case):
    registration, runs = case
    result = checked(registration, runs)

    assert result.headline == "AS GOOD AS SEED NOISE"
    assert result.ok
    assert (result.expected, result.finished, result.missing, result.failed, result.excluded) == (60, 60, 0, 0, 0)
    assert pytest.approx(result.sigma, rel=0.3) == SIGMA
    assert result.sigma * 2**0.5 == pytest.approx(result.rerun)
    assert "40 degrees of freedom" in result.sigma_source


def test_a_large_error_is_worse(case):
    registration, _ = case
    runs = outcomes(registration, np.random.default_rng(2), bias=lambda i: 0.05)

    assert checked(registration, runs).headline == "WORSE THAN SEED NOISE"


def test_a_small_constant_error_is_named_as_bias(tmp_path):
    registration, _, _ = registered(tmp_path, statement_body(targets=20, replicates=10))
    runs = outcomes(registration, np.random.default_rng(3), bias=lambda i: 0.6 * SIGMA)

    assert checked(registration, runs).headline.startswith("AS GOOD AS SEED NOISE BUT BIAS DETECTED")


def test_noisy_runs_flatter_everyone_and_the_headline_says_so(tmp_path):
    body = statement_body(targets=20, replicates=3)
    body["baselines"] = {"half-wrong": {t["target"]: t["point"] + 0.3 * SIGMA for t in body["targets"]}}
    registration, _, _ = registered(tmp_path, body)
    result = checked(registration, outcomes(registration, np.random.default_rng(2)))

    assert result.headline == "AS GOOD AS SEED NOISE BUT SO DOES BASELINE half-wrong"


def test_a_missing_run_before_the_deadline_is_interim_and_after_it_incomplete(case):
    registration, runs = case

    assert checked(registration, runs[:-3]).headline.startswith("INTERIM 57 of 60: ")
    assert checked(registration, runs[:-3], final=True).headline.startswith("INCOMPLETE (57 of 60): ")
    late = check(registration, runs[:-3], rng=np.random.default_rng(0), as_of=date(3000, 1, 1))
    assert late.headline.startswith("INCOMPLETE (57 of 60): ")


def test_an_interim_look_gives_no_verdict_where_one_look_is_registered(case):
    registration, runs = case
    early = checked(registration, runs[:-1])

    assert "INTERIM 59 of 60: NO VERDICT: one look is registered, when the last run is there" == early.headline
    assert early.primary is None
    assert {None} == {baseline.label for baseline in early.baselines}
    assert early.rmse > 0


def test_several_registered_looks_are_each_made_at_their_share_of_alpha(tmp_path):
    body = statement_body(targets=20, replicates=3)
    body["rules"]["looks"] = 2
    registration, _, _ = registered(tmp_path, body)
    runs = outcomes(registration, np.random.default_rng(1))
    early, late = checked(registration, runs[:-3]), checked(registration, runs)
    errors = [
        np.array([o.error for o in late.outcomes if o.target == claim.target])
        for claim in registration.statement.targets
    ]

    assert early.headline.startswith("INTERIM 57 of 60: AS GOOD")
    assert replicate_test(errors, alpha=0.025).upper == late.primary.upper
    assert replicate_test(errors, alpha=0.05).upper < late.primary.upper


def test_a_diverged_run_is_incomplete_and_carries_no_number(case):
    registration, runs = case
    dead = changed(runs[0], status="failed", failure="loss is NaN", evaluations=())
    result = checked(registration, [dead, *runs[1:]])

    assert result.headline.startswith("INCOMPLETE (59 of 60): ")
    assert result.failed == 1
    assert next(o for o in result.outcomes if o.status == "failed").value is None


def test_an_excluded_run_needs_a_declared_rule_and_the_score_of_all_runs_stands_beside(case):
    registration, runs = case
    result = checked(registration, runs, exclusions={"t000-0": "node-failure"})

    assert result.headline.startswith("INCOMPLETE (59 of 60): ")
    assert result.all_runs is not None
    assert checked(registration, runs).primary.estimate == result.all_runs.estimate
    with pytest.raises(ForecastError, match="was not registered; declared are: node-failure"):
        checked(registration, runs, exclusions={"t000-0": "looked-odd"})
    with pytest.raises(ForecastError, match="no outcome of this registration"):
        checked(registration, runs, exclusions={"t999-0": "node-failure"})


def test_no_outcome_at_all_is_an_error(case):
    registration, runs = case

    with pytest.raises(ForecastError, match="no run belongs"):
        checked(registration, [])
    with pytest.raises(ForecastError, match="no run belongs"):
        checked(registration, [changed(run, registration="00" * 32) for run in runs])


def test_a_seed_of_ones_own_choice_fails(case):
    registration, runs = case
    result = checked(registration, [changed(runs[0], seed=17), *runs[1:]])

    assert codes(result) == ["seed not derived"]
    assert result.headline.startswith("VERIFICATION FAILED: ")


def test_another_metric_eval_set_or_design_is_an_outcome_switched(case):
    registration, runs = case
    other_items = METRIC.model_copy(update={"items_hash": "99" * 32})
    other_name = METRIC.model_copy(update={"name": "cka"})
    for metric in (other_items, other_name):
        switched = changed(runs[0], evaluations=(Evaluation(metric=metric, value=0.3),))
        assert codes(checked(registration, [switched, *runs[1:]])) == ["OUTCOME SWITCHED"]
    design = {"settings": dict(runs[0].design.settings) | {"checkpoint": "best"}}
    result = checked(registration, [changed(runs[0], design=design), *runs[1:]])
    assert codes(result) == ["OUTCOME SWITCHED"]
    assert "checkpoint (None -> 'best')" in result.findings[0].text


def test_other_code_than_registered_fails(case):
    registration, runs = case
    ran = changed(runs[0], provenance={"code_hash": "77" * 32})

    assert codes(checked(registration, [ran, *runs[1:]])) == ["CODE CHANGED"]


def test_picked_seeds_are_counted(case):
    registration, runs = case
    extra = [changed(run, run_id=f"x{i}", replicate=i + 3) for i, run in enumerate(runs[:3])]
    result = checked(registration, [*runs[5:], *extra])

    assert "5 of 60 missing, 3 unregistered (x0, x1, x2)" in [f.text for f in result.findings]
    assert not result.ok


def test_a_replicate_that_ran_twice_fails(case):
    registration, runs = case
    again = changed(runs[0], run_id="again")

    assert codes(checked(registration, [*runs, again])) == ["replicate twice"]


def test_runs_of_the_same_design_outside_the_registration_are_named(case):
    registration, runs = case
    older = changed(runs[0], run_id="older", registration=None, target=None, replicate=None, seed=0)
    result = checked(registration, [*runs, older])

    assert result.ok
    assert any("1 runs of registered designs do not belong" in finding.text for finding in result.findings)


def test_targets_inside_the_fit_data_are_found_from_the_registration_alone(tmp_path):
    body = statement_body()
    body["fit"]["design_hashes"] = [body["targets"][4]["design_hash"]]
    registration, _, _ = registered(tmp_path, body)
    result = checked(registration, outcomes(registration, np.random.default_rng(1)))

    assert [f.text for f in result.findings if f.level == "failed"] == ["1 targets are in the fit data (t004)"]


def test_identical_replicates_give_no_verdict(case):
    registration, _ = case
    result = checked(registration, outcomes(registration, np.random.default_rng(1), noise=0.0))

    assert result.headline.startswith("NO VERDICT: seed had no effect")


def test_single_runs_take_sigma_from_the_registration(tmp_path):
    registration, _, _ = registered(tmp_path, statement_body(targets=40, replicates=1))
    result = checked(registration, outcomes(registration, np.random.default_rng(1)))

    assert result.primary.test == "single runs"
    assert result.sigma == SIGMA
    assert "as registered, 40 degrees of freedom" in result.sigma_source
    assert result.headline == "AS GOOD AS SEED NOISE"


def test_an_inflated_sigma_gives_no_verdict_where_the_outcomes_seeds_refute_it(tmp_path):
    body = statement_body(targets=20, replicates=2)
    body["rules"]["primary"] = {"test": "single runs"}
    body["noise"] = {"sigma": 10 * SIGMA, "degrees_of_freedom": 500}
    registration, _, _ = registered(tmp_path, body)
    result = checked(registration, outcomes(registration, np.random.default_rng(1), bias=lambda i: 5 * SIGMA))

    assert result.primary is None
    assert result.headline.startswith("NO VERDICT: the registered seed noise 0.1 is more than the outcomes' own seeds")


def test_a_wide_margin_and_a_lenient_level_stand_in_the_headline(tmp_path):
    body = statement_body(targets=20, replicates=3)
    body["rules"]["primary"] = {"test": "replicates", "delta": 100.0, "alpha": 0.4}
    registration, _, _ = registered(tmp_path, body)
    result = checked(registration, outcomes(registration, np.random.default_rng(1), bias=lambda i: 10 * SIGMA))

    assert result.headline.startswith("AS GOOD AS 100 x SEED NOISE (alpha = 0.4) BUT BIAS DETECTED")


def test_targets_that_ran_once_are_scored_but_do_not_enter_the_test_of_replicates(tmp_path):
    body = statement_body(targets=20, replicates=3)
    for target in body["targets"][10:]:
        target["replicates"] = 1
    registration, _, _ = registered(tmp_path, body)
    runs = outcomes(registration, np.random.default_rng(1), bias=lambda i: 0.0 if i < 10 else 0.5)
    result = checked(registration, runs)

    assert (10, "replicates") == (result.primary.targets, result.primary.test)
    assert "AS GOOD" in result.headline or "INCONCLUSIVE" in result.headline
    assert result.rmse > 0.2
    assert checked(registration, runs[:-1], final=True).headline.startswith("INCOMPLETE (39 of 40): ")


def test_single_runs_are_weighed_by_each_targets_own_noise_where_it_varies(tmp_path):
    body = statement_body(targets=40, replicates=1)
    body["noise"]["model"] = "mean"
    for i, target in enumerate(body["targets"]):
        target["noise_sd"] = SIGMA * (0.2 if i % 2 else 3.0)
    registration, _, _ = registered(tmp_path, body)
    rng = np.random.default_rng(5)
    runs = [
        changed(run, evaluations=(changed(run.evaluations[0], value=claim.point + claim.noise_sd * z),))
        for run, claim, z in zip(
            outcomes(registration, rng), registration.statement.targets, rng.standard_normal(40), strict=True
        )
    ]
    result = checked(registration, runs)
    z = np.array(
        [o.error / claim.noise_sd for o, claim in zip(result.outcomes, registration.statement.targets, strict=True)]
    )

    assert pytest.approx(float(np.mean(z**2))) == result.primary.f
    assert pytest.approx(SIGMA * np.sqrt((0.2**2 + 3.0**2) / 2)) == result.sigma


def test_without_replicates_and_sigma_there_is_no_verdict_but_scores(tmp_path):
    body = statement_body(targets=10, replicates=1)
    body["noise"] = {"sigma": None, "degrees_of_freedom": 0}
    registration, _, _ = registered(tmp_path, body)
    result = checked(registration, outcomes(registration, np.random.default_rng(1)))

    assert result.headline.startswith("NO VERDICT: no replicates and no registered sigma")
    assert result.sigma is None
    assert result.scores is not None


def test_the_test_sets_own_error_is_apart_from_sigma(case):
    registration, runs = case
    rng = np.random.default_rng(4)
    hits = [tuple(int(x) for x in rng.binomial(1, 0.4, 300)) for _ in runs]
    with_hits = [
        changed(run, evaluations=(Evaluation(metric=METRIC, value=sum(h) / 300, hits=h, trials=1),))
        for run, h in zip(runs, hits, strict=True)
    ]
    items = np.mean(np.array(hits), axis=0)

    assert checked(registration, runs).item_error is None
    assert np.std(items, ddof=1) / 300**0.5 == pytest.approx(checked(registration, with_hits).item_error)


def test_a_withdrawn_registration_is_named_in_the_headline(case):
    registration, runs = case
    note = Finding(level="warning", code="withdrawn", seq=2, text="registration 2 is withdrawn by entry 3")

    assert checked(registration, runs, notes=[note]).headline == "WITHDRAWN: AS GOOD AS SEED NOISE"


def test_a_check_reads_back_and_another_file_is_refused(case, tmp_path):
    registration, runs = case
    result = checked(registration, runs)
    result.save(tmp_path / "check.json")
    (tmp_path / "other.json").write_text("{}")

    assert result == Check.load(tmp_path / "check.json")
    for name in ("other.json", "none.json"):
        with pytest.raises(ForecastError):
            Check.load(tmp_path / name)


def test_the_same_seed_gives_the_same_check(case):
    registration, runs = case

    assert checked(registration, runs) == checked(registration, list(reversed(runs)))
