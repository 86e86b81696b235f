"""Every way to cheat with data and outcomes that we know of, performed; and what is printed."""

import json
from datetime import date

import numpy as np
import pytest
from attack_cases import AUTHOR, changed, failures, ran, rewrite_from
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


def test_law_not_from_the_declared_data(cheat):
    def better(entry):
        body = json.loads(json.dumps(dict(entry.body)))
        for target in body["targets"]:
            target["point"] += 0.003
        return changed(entry, body=body)

    rewrite_from(cheat, 2, better)
    texts = failures(verify_log(cheat.log, data=cheat.data, today=date(2026, 12, 2)))
    assert any("is not in this log" in text for text in texts)
    for name in list(cheat.log.iterdir()):
        if name.name[:4] in ("0003", "0004", "0005", "0006"):
            name.unlink()
    assert failures(verify_log(cheat.log, data=cheat.data)) == ["entry 2: predictions do not follow (max diff 0.003)"]


def test_other_data_than_declared(cheat):
    moved = [changed(cheat.data[0], seed=999), *cheat.data[1:]]

    assert any("data differ: hash" in text for text in failures(cheat.verify(data=moved)))
    assert any(
        "1 of 53 fitted runs are not in the data" in text for text in failures(cheat.verify(data=cheat.data[1:]))
    )


def test_targets_in_the_fit(cheat):
    fitted = Fit.load(cheat.base / "fit.json")
    inside = Target(target="seen", design=cheat.data[0].design)

    with pytest.raises(ForecastError, match="1 targets are in the fit data"):
        refuse_known_targets([inside], fitted)


def test_seeds_picked(cheat):
    extra = [changed(one, run_id=f"x{i}", replicate=2 + i) for i, one in enumerate(cheat.runs[:3])]
    texts = failures(cheat.verify(runs=[*cheat.runs[5:], *extra]))

    assert any("5 of 18 missing, 3 unregistered" in text for text in texts)


def test_exclusions_after_the_fact(cheat):
    with pytest.raises(ForecastError, match="was not registered"):
        check(
            cheat.registration,
            cheat.runs,
            rng=np.random.default_rng(0),
            as_of=date(2026, 12, 2),
            exclusions={cheat.runs[0].run_id: "looked-odd"},
        )


def test_peeking(cheat):
    report = cheat.verify(runs=cheat.runs[:11])

    assert "entry 2: INTERIM 11 of 18" in [finding.text for finding in report.findings]
    result = check(cheat.registration, cheat.runs[:11], rng=np.random.default_rng(0), as_of=date(2026, 12, 2))
    assert result.headline.startswith("INTERIM 11 of 18: ")


def test_outcome_switched(cheat):
    one = cheat.runs[0]
    evaluation = one.evaluations[0]
    other = changed(evaluation, metric=evaluation.metric.model_copy(update={"items_hash": "99" * 32}))
    runs = [changed(one, evaluations=(other,)), *cheat.runs[1:]]

    assert any("OUTCOME SWITCHED" in text for text in failures(cheat.verify(runs=runs)))


def test_another_checkpoint_is_an_outcome_switched(cheat):
    one = cheat.runs[0]
    best = changed(one.evaluations[0], checkpoint="best on the test set")
    runs = [changed(one, evaluations=(best,)), *cheat.runs[1:]]
    said = failures(cheat.verify(runs=runs))

    assert any(
        "OUTCOME SWITCHED" in text and "checkpoint 'best on the test set' instead of 'last'" in text for text in said
    )


def test_a_run_that_was_stopped_early_is_an_outcome_switched(cheat):
    counters = {"samples_planned": 24_000, "samples_seen": 20_000}
    runs = [changed(cheat.runs[0], counters=counters), *cheat.runs[1:]]

    assert any("20000 samples of 24000 planned" in text for text in failures(cheat.verify(runs=runs)))


def test_other_evaluation_code_is_an_outcome_switched(cheat, tmp_path):
    registration, key = cheat.registration, cheat.key
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


def test_a_result_that_the_runs_do_not_give(cheat, tmp_path):
    """The author signs a verdict of his own over the true outcomes."""
    honest_result = check(
        cheat.registration, cheat.runs, rng=np.random.default_rng(0), as_of=date(2026, 12, 2), final=True
    )
    resolved = next(name.seq for name in Log(cheat.log).names() if name.kind == "resolve")
    for path in cheat.log.glob("0*"):
        if int(path.name[:4]) >= resolved:
            path.unlink()
    pretty = honest_result.model_copy(update={"headline": "AS GOOD AS SEED NOISE, AND BEAUTIFUL"})
    resolve(cheat.log, pretty, ledger=cheat.base / "runs.jsonl", key=cheat.key)
    said = failures(cheat.verify(runs=cheat.runs, head=None))

    assert any("RESULT NOT REPRODUCED: signed is 'AS GOOD AS SEED NOISE, AND BEAUTIFUL'" in text for text in said)


def test_a_lenient_test_is_named(tmp_path, cheat):
    log = Log.create(tmp_path / "other", author=AUTHOR, key=cheat.key)
    body = dict(cheat.registration.signed.body) | {"baselines": {}}
    body["rules"] = body["rules"] | {"primary": {"test": "single runs", "delta": 3.0, "alpha": 0.3}}
    log.append("register", body, key=cheat.key)
    warned = [f.text for f in verify_log(log.folder, today=date(2026, 12, 2)).findings if f.code == "lenient"]

    assert [] == [f for f in cheat.verify().findings if f.code == "lenient"]
    for word in ("margin is 3 x", "alpha is 0.3", "no baseline", "takes the registered seed noise at its word"):
        assert any(word in text for text in warned)


def test_a_job_that_was_changed_after_it_was_signed(cheat):
    spec = sorted((cheat.base / "launched" / "runs").iterdir())[0] / "spec.json"
    spec.write_text(spec.read_text().replace('"seed": ', '"seed":  '))

    assert any("JOB CHANGED: its spec.json is not the one" in text for text in failures(cheat.verify(jobs=cheat.jobs)))


def test_a_folder_without_jobs_is_refused_and_one_of_other_jobs_shows_nothing(cheat, tmp_path):
    with pytest.raises(ForecastError, match="holds no runs"):
        job_files(tmp_path)
    for path in (cheat.base / "launched" / "runs").glob("*/spec.json"):
        path.write_text("{}")
    levels = [finding.level for finding in cheat.verify(jobs=cheat.jobs).findings if finding.code == "jobs"]

    assert ["not examined"] == levels


def test_many_overlapping_registrations(cheat):
    log = Log(cheat.log)
    for i in range(3):
        log.append("register", dict(cheat.registration.signed.body) | {"claim": f"version {i}"}, key=cheat.key)
    texts = [finding.text for finding in cheat.verify().findings]

    assert "registration 2 of 4 on shared designs, 3 unresolved" in texts


def test_never_resolved(cheat):
    body = dict(cheat.registration.signed.body)
    Log(cheat.log).append("register", body | {"rules": body["rules"] | {"deadline": "2026-11-30"}}, key=cheat.key)
    texts = [finding.text for finding in cheat.verify().findings if finding.code == "OVERDUE"]

    assert texts == ["registration 7 is OVERDUE: its deadline was 2026-11-30, it is not resolved"]


def test_intervals_too_wide_to_fail(cheat):
    body = dict(cheat.registration.signed.body)
    sigma = body["noise"]["sigma"]
    claims = [target_body(f"w{i}", 0.5, replicates=2, width=9 * sigma / 0.01, n=i + 1) for i in range(3)]
    body |= {"targets": claims, "baselines": {}}
    Log(cheat.log).append("register", body, key=cheat.key)

    assert any("intervals are 9.0 times as wide as seed noise" in f.text for f in cheat.verify().findings)


def test_edited_store_rows(cheat):
    one = cheat.runs[0]
    evaluation = one.evaluations[0]
    runs = [changed(one, evaluations=(changed(evaluation, value=evaluation.value + 0.001),)), *cheat.runs[1:]]

    assert any(
        "EDITED: 1 outcomes are not those that were signed" in text for text in failures(cheat.verify(runs=runs))
    )


def test_a_launch_of_other_seeds_or_other_code(cheat):
    log, digest = Log(cheat.log), cheat.registration.digest
    target = cheat.registration.statement.targets[0].target
    jobs = [{"target": target, "replicate": 0, "seed": 1}, {"target": target, "replicate": 9, "seed": 1}]
    log.append("launch", {"registration": digest, "jobs": jobs, "code_hash": "99" * 32}, key=cheat.key)
    texts = failures(cheat.verify())

    assert any("seed not derived: 1" in text for text in texts)
    assert any("/9 is not registered" in text for text in texts)
    assert any("CODE CHANGED" in text for text in texts)


def test_a_second_log_is_beyond_any_local_tool_and_that_is_said(honest):
    assert any("a second log under another key" in finding.text for finding in honest.verify().findings)


def test_a_broken_log_ends_the_examination_of_outcomes(cheat):
    (cheat.log / "0002-register.json").write_bytes(b"{}")
    report = cheat.verify(runs=cheat.runs, data=cheat.data)

    assert any("not examined, since the log does not verify" in finding.text for finding in report.findings)
    with pytest.raises(CheckFailed, match="verification failed"):
        report.raise_if_failed()
