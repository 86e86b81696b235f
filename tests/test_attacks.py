"""Every way to cheat with a log that we know of, performed; and what is printed."""

import json
import os
import shutil
from datetime import date

import pytest
from attack_cases import AUTHOR, changed, failures, rewrite_from
from registration_cases import make_key

from forecast.errors import ForecastError
from forecast.fitted import Fit
from forecast.records import Target
from prereg.log import Log, signature_path
from prereg.registering import refuse_known_targets
from prereg.signature import public_key_of, sign
from prereg.verify import verify_log


def test_the_honest_log_verifies_in_everything_that_was_given(honest):
    report = honest.verify(runs=honest.runs, data=honest.data, sacct=honest.sacct(), jobs=honest.jobs)
    levels = {finding.code: finding.level for finding in report.findings}

    assert failures(report) == []
    for code in ("chain", "time", "key", "head", "outcomes", "resolve", "refit", "order", "jobs"):
        assert levels[code] == "verified"
    assert [f.code for f in report.findings if f.level == "not examined"] == ["second log", "values"]


def test_nothing_is_called_verified_that_was_not_examined(honest):
    report = verify_log(honest.log)

    assert [finding.code for finding in report.findings if finding.level == "verified"] == ["chain"]
    texts = " ".join(finding.text for finding in report.findings if finding.level == "not examined")
    for words in ("key not checked", "tail not provable", "not given", "a second log under another key", "rehearsal"):
        assert words in texts


def test_edit(cheat):
    path = cheat.log / "0002-register.json"
    body = json.loads(path.read_text())
    body["body"]["targets"][0]["point"] += 0.001
    path.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n")
    first = failures(cheat.verify())

    assert "0002-register.json: TAMPERED: signature does not match the bytes" in first
    signature_path(path).write_bytes(sign(path.read_bytes(), cheat.key))
    again = failures(cheat.verify())
    assert any("0003-stamp.json: TAMPERED: does not hold the hash of the entry before" in text for text in again)


def test_edit_and_sign_everything_again(cheat):
    def edit(entry):
        body = json.loads(json.dumps(dict(entry.body)))
        body["targets"][0]["point"] += 0.001
        return changed(entry, body=body)

    rewrite_from(cheat, 2, edit)
    with_head = cheat.verify()

    assert any("head differs" in text for text in failures(with_head))
    assert any("time owed" in finding.text for finding in with_head.findings if finding.code == "time")


def test_back_date(cheat, honest):
    rewrite_from(cheat, 2, lambda entry: changed(entry, written="2020-01-01T00:00:00Z"))
    report = cheat.verify(head=None)
    times = [finding.text for finding in report.findings if finding.code == "time"]

    assert "entry 2: time owed; the file's own date 2020-01-01T00:00:00Z is a claim" in times
    assert not any("registered by 2020" in finding.text for finding in report.findings)


def test_entry_dropped(cheat):
    for name in ("0003-stamp.json", "0003-stamp.json.sig"):
        (cheat.log / name).unlink()

    assert "MISSING entry 3" in failures(cheat.verify())


def test_a_name_that_claims_a_huge_number_does_not_keep_the_verifier_busy(cheat):
    (cheat.log / "999999999999-amend.json").write_text("{}")
    texts = failures(cheat.verify())

    assert any(text.endswith("to 999999999998") for text in texts)
    assert len(texts) < 40


@pytest.mark.parametrize("name", ["0007-amend.json", "0002-register.json.office.tsr"])
def test_a_pipe_or_a_device_in_the_log_does_not_keep_the_verifier(cheat, name):
    (cheat.log / name).unlink(missing_ok=True)
    os.mkfifo(cheat.log / name)
    assert any("is no regular file" in text for text in failures(cheat.verify()))

    (cheat.log / "0002-register.json").unlink()
    (cheat.log / "0002-register.json").symlink_to("/dev/zero")
    assert any("0002-register.json: is no regular file" in text for text in failures(cheat.verify()))


def test_two_entries_with_one_number(cheat):
    for suffix in ("", ".sig"):
        shutil.copy(cheat.log / f"0005-resolve.json{suffix}", cheat.log / f"0005-amend.json{suffix}")
    texts = failures(cheat.verify())

    assert "TAMPERED: two entries have the number 5" in texts
    assert any("states number 5 and kind resolve, its name says 0005-amend.json" in text for text in texts)


def test_an_entry_before_the_key_or_a_first_key_that_did_not_sign(cheat, tmp_path):
    other = public_key_of(make_key(tmp_path / "other")).line
    rewrite_from(cheat, 1, lambda entry: changed(entry, body={"action": "open", "public_key": other}))
    assert any("entry 1: signed by SHA256" in text for text in failures(cheat.verify(head=None)))

    rewrite_from(cheat, 1, lambda entry: changed(entry, body={"action": "open", "public_key": "none"}))
    assert any("does not begin with its key" in text for text in failures(cheat.verify(head=None)))


def test_tail_cut(cheat):
    for name in list(cheat.log.iterdir()):
        if name.name[:4] in ("0005", "0006"):
            name.unlink()
    with_head, without = cheat.verify(), cheat.verify(head=None)

    assert any("head differs" in text for text in failures(with_head))
    assert failures(without) == []
    assert any("tail not provable" in finding.text for finding in without.findings)


def test_key_swapped(cheat):
    other = make_key(cheat.base / "other")

    def swap(entry):
        return changed(entry, body={"action": "open", "public_key": public_key_of(other).line})

    rewrite_from(cheat, 1, swap, key=other)
    report = cheat.verify(head=None)

    assert any("key NOT the published one" in text for text in failures(report))
    assert failures(verify_log(cheat.log, today=date(2026, 12, 2)))[0].count("is not in this log before it") == 1


def test_registered_after_the_results_jobs_submitted_before(cheat):
    report = cheat.verify(sacct=cheat.sacct(seconds_after=-1000))

    assert any("jobs submitted before the registration" in text for text in failures(report))


def test_registered_after_the_results_runs_say_so_themselves(cheat):
    early = {"code_hash": "23" * 32, "submitted": "2026-01-01T00:00:00+00:00"}
    runs = [changed(cheat.runs[0], provenance=early), *cheat.runs[1:]]

    assert any("1 runs say they were submitted before" in text for text in failures(cheat.verify(runs=runs)))


def orders(report):
    return [(finding.level, finding.text) for finding in report.findings if finding.code == "order"]


def test_one_dummy_job_under_the_digest_does_not_show_when_the_runs_were_made(cheat):
    early = [changed(run, provenance=changed(run.provenance, job_id=f"5_{i}")) for i, run in enumerate(cheat.runs)]
    ((level, text),) = orders(cheat.verify(sacct=cheat.sacct(), runs=early))
    assert "not examined" == level
    assert "18 of 18 runs have no job under this digest in the accounting" in text
    assert "rehearsal: cannot be excluded" in text

    some = [*cheat.runs[:17], early[17]]
    assert "1 of 18 runs have no job" in orders(cheat.verify(sacct=cheat.sacct(), runs=some))[0][1]
    ((level, text),) = orders(cheat.verify(sacct=cheat.sacct()))
    assert "not examined" == level
    assert "which jobs made the runs was not examined" in text


def test_accounting_from_the_future_and_runs_that_began_earlier_are_caught(cheat):
    far = cheat.sacct(seconds_after=10**9)
    assert "failed" == orders(cheat.verify(sacct=far, runs=cheat.runs))[0][0]
    for name in ("started", "ended"):
        liar = changed(cheat.runs[0], provenance=changed(cheat.runs[0].provenance, submitted="2999-01-01T00:00:00Z"))
        liar = changed(liar, provenance=changed(liar.provenance, **{name: "2020-01-01T00:00:00Z"}))
        ((level, text),) = orders(cheat.verify(sacct=cheat.sacct(), runs=[liar, *cheat.runs[1:]]))
        assert "failed" == level
        assert liar.run_id in text


def test_a_second_resolution_and_one_whose_headline_is_not_its_checks(cheat):
    log = Log(cheat.log)
    resolved = next(log.read(name) for name in log.names() if name.kind == "resolve")
    log.append("resolve", dict(resolved.body), key=cheat.key)
    assert any("again, which entry" in text for text in failures(cheat.verify(head=None)))

    for path in cheat.log.glob("0*"):
        if int(path.name[:4]) >= resolved.seq:
            path.unlink()
    log.append("resolve", {**resolved.body, "headline": "AS GOOD AS SEED NOISE, TRULY"}, key=cheat.key)
    said = failures(cheat.verify(runs=cheat.runs, head=None))
    assert any("the entry's headline is 'AS GOOD AS SEED NOISE, TRULY'" in text for text in said)


def test_a_deadline_that_is_moved_after_it_passed_and_a_late_withdrawal_are_told(cheat):
    log, digest = Log(cheat.log), cheat.registration.digest
    log.append("amend", {"registration": digest, "text": "more time", "deadline": "9999-12-30"}, key=cheat.key)
    log.append("withdraw", {"registration": digest, "text": "never mind"}, key=cheat.key)
    texts = [finding.text for finding in cheat.verify(head=None).findings]

    assert any("deadline moved from 2999-12-31 to 9999-12-30 by entry" in text for text in texts)
    assert not any("after it had passed" in text for text in texts)
    assert any("had resolved it (" in text for text in texts if "is withdrawn by entry" in text)


def test_registered_after_the_results_targets_have_outcomes(cheat):
    fitted = Fit.load(cheat.base / "fit.json")
    targets = [Target(target=c.target, design=c.design) for c in cheat.registration.statement.targets]

    refuse_known_targets(targets, fitted, cheat.data)
    with pytest.raises(ForecastError, match="9 targets already have outcomes"):
        refuse_known_targets(targets, fitted, cheat.runs)


def test_registered_after_the_results_seeds_are_not_derived(cheat):
    runs = [changed(one, seed=i) for i, one in enumerate(cheat.runs)]
    texts = failures(cheat.verify(runs=runs))

    assert len(runs) == sum("seed not derived" in text for text in texts)


def test_rehearsal_an_edit_after_the_runs_changes_every_seed(cheat):
    """Write the bytes, run all, edit a word, sign: caught, since the digest and so the seeds are others."""
    rewrite_from(cheat, 2, lambda entry: changed(entry, body=dict(entry.body) | {"claim": "it holds, nearly"}))
    runs = [changed(one, registration=cheat.registration.digest) for one in cheat.runs]
    shutil.rmtree(cheat.base / "log" / "authorities")
    for name in list(cheat.log.iterdir()):
        if name.name[:4] in ("0003", "0004", "0005", "0006"):
            name.unlink()

    assert any("seed not derived" in text for text in failures(cheat.verify(head=None, runs=runs)))


def test_rehearsal_without_a_word_changed_cannot_be_excluded_and_is_named(honest):
    report = honest.verify(runs=honest.runs)
    order = next(finding for finding in report.findings if finding.code == "order")

    assert order.level == "not examined"
    assert order.text.endswith("rehearsal: cannot be excluded")
    assert "the order rests on the derived seeds alone" in order.text


def test_a_rotated_key_signs_and_the_old_one_no_longer(cheat):
    new = make_key(cheat.base / "new")
    Log(cheat.log).rotate(key=cheat.key, new_key=new)
    Log(cheat.log).append("withdraw", {"registration": cheat.registration.digest, "reason": "x"}, key=new)
    allowed = cheat.base / "allowed_signers"
    assert any("key NOT the published one" in text for text in failures(cheat.verify()))
    allowed.write_text(allowed.read_text() + f'"{AUTHOR}" {public_key_of(new).line}\n')
    assert failures(cheat.verify()) == []

    path = cheat.log / "0008-withdraw.json"
    signature_path(path).write_bytes(sign(path.read_bytes(), cheat.key))
    assert any("entry 8: signed by SHA256" in text for text in failures(cheat.verify()))


def test_valid_before_is_checked_at_token_time(cheat):
    line = (cheat.base / "allowed_signers").read_text().split('" ')[1]
    allowed = cheat.base / "allowed_signers"
    allowed.write_text(f'"{AUTHOR}" valid-before="20200101" {line}')
    assert any("key NOT the published one" in text for text in failures(cheat.verify()))

    allowed.write_text(f'"{AUTHOR}" valid-before="29990101" {line}')
    assert failures(cheat.verify()) == []
