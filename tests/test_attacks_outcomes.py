"""Every way to cheat with data and outcomes that we know of, performed; and what is printed."""

import json
from datetime import date

import numpy as np
import pytest
from attack_cases import AUTHOR, changed, clock_office, copied, failures, honest_case, ran, rewrite_from
from registration_cases import target_body

from forecast.errors import CheckFailed, ForecastError
from forecast.fitted import Fit
from forecast.records import Target
from prereg.check import check
from prereg.evidence import examine_outcomes
from prereg.job_files import job_files
from prereg.log import Log
from prereg.registering import refuse_known_targets
from prereg.resolving import resolve
from prereg.statement import find_registration
from prereg.verify import verify_log


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    with clock_office(tmp_path_factory.mktemp("tsa")) as found:
        yield found


@pytest.fixture(scope="module")
def honest(tmp_path_factory, authority):
    return honest_case(tmp_path_factory.mktemp("honest"), authority)


@pytest.fixture
def case(honest, tmp_path):
    return copied(honest, tmp_path)


def test_law_not_from_the_declared_data(case):
    def better(entry):
        body = json.loads(json.dumps(dict(entry.body)))
        for target in body["targets"]:
            target["point"] += 0.003
        return changed(entry, body=body)

    rewrite_from(case, 2, better)
    texts = failures(verify_log(case.log, data=case.data, today=date(2026, 12, 2)))
    assert any("is not in this log" in text for text in texts)
    for name in list(case.log.iterdir()):
        if name.name[:4] in ("0003", "0004", "0005", "0006"):
            name.unlink()
    assert failures(verify_log(case.log, data=case.data)) == ["entry 2: predictions do not follow (max diff 0.003)"]


def test_other_data_than_declared(case):
    moved = [changed(case.data[0], seed=999), *case.data[1:]]

    assert any("data differ: hash" in text for text in failures(case.verify(data=moved)))
    assert any("1 of 53 fitted runs are not in the data" in text for text in failures(case.verify(data=case.data[1:])))


def test_targets_in_the_fit(case):
    fitted = Fit.load(case.base / "fit.json")
    inside = Target(target="seen", design=case.data[0].design)

    with pytest.raises(ForecastError, match="1 targets are in the fit data"):
        refuse_known_targets([inside], fitted)


def test_seeds_picked(case):
    extra = [changed(one, run_id=f"x{i}", replicate=2 + i) for i, one in enumerate(case.runs[:3])]
    texts = failures(case.verify(runs=[*case.runs[5:], *extra]))

    assert any("5 of 18 missing, 3 unregistered" in text for text in texts)


def test_exclusions_after_the_fact(case):
    with pytest.raises(ForecastError, match="was not registered"):
        check(
            case.registration,
            case.runs,
            rng=np.random.default_rng(0),
            as_of=date(2026, 12, 2),
            exclusions={case.runs[0].run_id: "looked-odd"},
        )


def test_peeking(case):
    report = case.verify(runs=case.runs[:11])

    assert "entry 2: INTERIM 11 of 18" in [finding.text for finding in report.findings]
    result = check(case.registration, case.runs[:11], rng=np.random.default_rng(0), as_of=date(2026, 12, 2))
    assert result.headline.startswith("INTERIM 11 of 18: ")


def test_outcome_switched(case):
    one = case.runs[0]
    evaluation = one.evaluations[0]
    other = changed(evaluation, metric=evaluation.metric.model_copy(update={"items_hash": "99" * 32}))
    runs = [changed(one, evaluations=(other,)), *case.runs[1:]]

    assert any("OUTCOME SWITCHED" in text for text in failures(case.verify(runs=runs)))


def test_another_checkpoint_is_an_outcome_switched(case):
    one = case.runs[0]
    best = changed(one.evaluations[0], checkpoint="best on the test set")
    runs = [changed(one, evaluations=(best,)), *case.runs[1:]]
    said = failures(case.verify(runs=runs))

    assert any(
        "OUTCOME SWITCHED" in text and "checkpoint 'best on the test set' instead of 'last'" in text for text in said
    )


def test_a_run_that_was_stopped_early_is_an_outcome_switched(case):
    counters = {"samples_planned": 24_000, "samples_seen": 20_000}
    runs = [changed(case.runs[0], counters=counters), *case.runs[1:]]

    assert any("20000 samples of 24000 planned" in text for text in failures(case.verify(runs=runs)))


def test_other_evaluation_code_is_an_outcome_switched(case, tmp_path):
    registration, key = case.registration, case.key
    body = dict(registration.signed.body)
    body["metric"] = body["metric"] | {"evaluation_code_hash": "ab" * 32}
    log = Log.create(tmp_path / "other", author=AUTHOR, key=key)
    log.append("register", body, key=key)
    again = find_registration(log.folder / "0002-register.json")
    runs = ran(again)
    texts = []
    for code in ("ab" * 32, "cd" * 32):
        evaluated = changed(runs[0].evaluations[0], code_hash=code)
        found = examine_outcomes(again, [changed(runs[0], evaluations=(evaluated,)), *runs[1:]])
        texts.append([finding.text for finding in found if finding.level == "failed"])

    assert [] == texts[0]
    assert "evaluation code cdcdcdcdcdcd instead of abababababab" in texts[1][0]


def test_a_result_that_the_runs_do_not_give(case, tmp_path):
    """The author signs a verdict of his own over the true outcomes."""
    honest_result = check(
        case.registration, case.runs, rng=np.random.default_rng(0), as_of=date(2026, 12, 2), final=True
    )
    resolved = next(name.seq for name in Log(case.log).names() if name.kind == "resolve")
    for path in case.log.glob("0*"):
        if int(path.name[:4]) >= resolved:
            path.unlink()
    pretty = honest_result.model_copy(update={"headline": "AS GOOD AS SEED NOISE, AND BEAUTIFUL"})
    resolve(case.log, pretty, ledger=case.base / "runs.jsonl", key=case.key)
    said = failures(case.verify(runs=case.runs, head=None))

    assert any("RESULT NOT REPRODUCED: signed is 'AS GOOD AS SEED NOISE, AND BEAUTIFUL'" in text for text in said)


def test_a_lenient_test_is_named(tmp_path, case):
    log = Log.create(tmp_path / "other", author=AUTHOR, key=case.key)
    body = dict(case.registration.signed.body) | {"baselines": {}}
    body["rules"] = body["rules"] | {"primary": {"test": "single runs", "delta": 3.0, "alpha": 0.3}}
    log.append("register", body, key=case.key)
    warned = [f.text for f in verify_log(log.folder, today=date(2026, 12, 2)).findings if f.code == "lenient"]

    assert [] == [f for f in case.verify().findings if f.code == "lenient"]
    for word in ("margin is 3 x", "alpha is 0.3", "no baseline", "takes the registered seed noise at its word"):
        assert any(word in text for text in warned)


def test_a_job_that_was_changed_after_it_was_signed(case):
    spec = sorted((case.base / "launched" / "runs").iterdir())[0] / "spec.json"
    spec.write_text(spec.read_text().replace('"seed": ', '"seed":  '))

    assert any("JOB CHANGED: its spec.json is not the one" in text for text in failures(case.verify(jobs=case.jobs)))


def test_a_folder_without_jobs_is_refused_and_one_of_other_jobs_shows_nothing(case, tmp_path):
    with pytest.raises(ForecastError, match="holds no runs"):
        job_files(tmp_path)
    for path in (case.base / "launched" / "runs").glob("*/spec.json"):
        path.write_text("{}")
    levels = [finding.level for finding in case.verify(jobs=case.jobs).findings if finding.code == "jobs"]

    assert ["not examined"] == levels


def test_many_overlapping_registrations(case):
    log = Log(case.log)
    for i in range(3):
        log.append("register", dict(case.registration.signed.body) | {"claim": f"version {i}"}, key=case.key)
    texts = [finding.text for finding in case.verify().findings]

    assert "registration 2 of 4 on shared designs, 3 unresolved" in texts


def test_never_resolved(case):
    body = dict(case.registration.signed.body)
    Log(case.log).append("register", body | {"rules": body["rules"] | {"deadline": "2026-11-30"}}, key=case.key)
    texts = [finding.text for finding in case.verify().findings if finding.code == "OVERDUE"]

    assert texts == ["registration 7 is OVERDUE: its deadline was 2026-11-30, it is not resolved"]


def test_intervals_too_wide_to_fail(case):
    body = dict(case.registration.signed.body)
    sigma = body["noise"]["sigma"]
    claims = [target_body(f"w{i}", 0.5, replicates=2, width=9 * sigma / 0.01, n=i + 1) for i in range(3)]
    body |= {"targets": claims, "baselines": {}}
    Log(case.log).append("register", body, key=case.key)

    assert any("intervals are 9.0 times as wide as seed noise" in f.text for f in case.verify().findings)


def test_edited_store_rows(case):
    one = case.runs[0]
    evaluation = one.evaluations[0]
    runs = [changed(one, evaluations=(changed(evaluation, value=evaluation.value + 0.001),)), *case.runs[1:]]

    assert any("EDITED: 1 outcomes are not those that were signed" in text for text in failures(case.verify(runs=runs)))


def test_a_launch_of_other_seeds_or_other_code(case):
    log, digest = Log(case.log), case.registration.digest
    target = case.registration.statement.targets[0].target
    jobs = [{"target": target, "replicate": 0, "seed": 1}, {"target": target, "replicate": 9, "seed": 1}]
    log.append("launch", {"registration": digest, "jobs": jobs, "code_hash": "99" * 32}, key=case.key)
    texts = failures(case.verify())

    assert any("seed not derived: 1" in text for text in texts)
    assert any("/9 is not registered" in text for text in texts)
    assert any("CODE CHANGED" in text for text in texts)


def test_a_second_log_is_beyond_any_local_tool_and_that_is_said(honest):
    assert any("a second log under another key" in finding.text for finding in honest.verify().findings)


def test_a_broken_log_ends_the_examination_of_outcomes(case):
    (case.log / "0002-register.json").write_bytes(b"{}")
    report = case.verify(runs=case.runs, data=case.data)

    assert any("not examined, since the log does not verify" in finding.text for finding in report.findings)
    with pytest.raises(CheckFailed, match="verification failed"):
        report.raise_if_failed()
