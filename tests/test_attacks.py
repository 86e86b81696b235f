"""Every way to cheat that we know of, performed; and what is printed."""

import json
import shutil
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest
from local_authority import make_authority, serving
from registration_cases import make_key, target_body
from worlds_of_runs import hill_truth, run, simulated_runs

from forecast.errors import CheckFailed, ForecastError
from forecast.fitted import Fit
from forecast.fitting import fit
from forecast.ledger import append_runs
from forecast.prediction import baseline_predictions, predict_joint
from forecast.reading import read_runs
from forecast.records import Run, Target
from prereg.check import check
from prereg.entry import encode, read_entry
from prereg.log import Log, signature_path
from prereg.order import read_sacct
from prereg.registering import body_of, forecast_targets, refuse_known_targets, state
from prereg.resolving import resolve
from prereg.seeds import derived_seed
from prereg.signature import public_key_of, sign
from prereg.stamping import stamp, token_files
from prereg.statement import find_registration
from prereg.terms import Terms
from prereg.time import Authority
from prereg.verify import verify_log

AUTHOR = "Ada <ada@example.org>"
SACCT_HEADER = "JobID|JobName|Submit\n"


@dataclass
class Case:
    """An honest log with everything that a verifier needs."""

    base: Path
    data: list[Run]

    @property
    def log(self):
        return self.base / "log"

    @property
    def key(self):
        return self.base / "key"

    @property
    def registration(self):
        return find_registration(self.log / "0002-register.json")

    @property
    def runs(self):
        return read_runs(self.base / "runs.jsonl")

    def sacct(self, seconds_after=1000):
        """SLURM's accounting if the jobs were submitted so long after the registration was stamped."""
        moment = int(datetime.now(UTC).timestamp()) + seconds_after
        path = self.base / "sacct.txt"
        path.write_text(SACCT_HEADER + f"7|pc-{self.registration.digest[:16]}-array|{moment}\n8|other|5\n")
        return read_sacct(path)

    def verify(self, **options):
        given = {
            "allowed_signers": self.base / "allowed_signers",
            "authority_ca": self.base / "ca.pem",
            "head": (self.base / "head").read_text(),
            "today": date(2026, 12, 2),
        }
        return verify_log(self.log, **(given | options))


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    folder = make_authority(tmp_path_factory.mktemp("tsa") / "office", name="Clock Office")
    with serving(folder) as url:
        yield Authority("office", url, (folder / "ca.pem").read_bytes())


@pytest.fixture(scope="module")
def honest(tmp_path_factory, authority):
    base = tmp_path_factory.mktemp("honest")
    key = make_key(base / "key")
    data = simulated_runs()
    fitted = fit(data, metric="mutual_knn", law="hill", rng=np.random.default_rng(7), seed=7)
    fitted.save(base / "fit.json")
    (base / "ca.pem").write_bytes(authority.certificates)
    (base / "allowed_signers").write_text(f'"{AUTHOR}" {public_key_of(key).line}\n')
    log = Log.create(base / "log", author=AUTHOR, key=key)
    signed = log.append("register", body_of(stated(fitted, base)), key=key)
    stamp(log.folder, [authority], key=key)
    registration = find_registration(signed.path)
    jobs = [
        {"target": c.target, "replicate": k, "seed": derived_seed(signed.digest, c.target, k), "spec_sha256": "0" * 64}
        for c in registration.statement.targets
        for k in range(c.replicates)
    ]
    log.append("launch", {"registration": signed.digest, "jobs": jobs, "code_hash": "23" * 32}, key=key)
    append_runs(base / "runs.jsonl", ran(registration))
    result = check(
        registration, read_runs(base / "runs.jsonl"), rng=np.random.default_rng(0), as_of=date(2026, 12, 2), final=True
    )
    last = resolve(log.folder, result, ledger=base / "runs.jsonl", key=key)
    stamp(log.folder, [authority], key=key)
    (base / "head").write_text(last.digest)
    return Case(base, data)


def stated(fitted, base, **terms):
    targets = [
        Target(target=f"g{int(100 * g):03d}-n{n}", design=run("x", n, g, 0.1).design, replicates=2)
        for g in (0.1, 0.6, 0.9)
        for n in (24_000, 96_000, 700_000)
    ]
    rng = np.random.default_rng(1)
    return state(
        fitted,
        (base / "fit.json").read_bytes(),
        forecast_targets(fitted, targets, {}, rng),
        joint=predict_joint(fitted, targets, rng, 1000),
        baselines=baseline_predictions(fitted, targets),
        terms=Terms(claim="it holds", deadline="2999-12-31", code_hash="23" * 32, **terms),
        rng=rng,
    )


def ran(registration, rng=None):
    """Runs that follow the truth, with the seeds that the registration gives."""
    rng = rng or np.random.default_rng(11)
    rows = []
    for claim in registration.statement.targets:
        settings = claim.design.settings
        for replicate in range(claim.replicates):
            value = hill_truth(settings["n_samples"], settings["good_view_fraction"]) + rng.normal(0, 0.002)
            plain = run("x", settings["n_samples"], settings["good_view_fraction"], value)
            rows.append(
                changed(
                    plain,
                    run_id=f"{claim.target}-{replicate}",
                    registration=registration.digest,
                    target=claim.target,
                    replicate=replicate,
                    seed=derived_seed(registration.digest, claim.target, replicate),
                    provenance={"code_hash": "23" * 32},
                )
            )
    return rows


def changed(one, **fields):
    return type(one).model_validate(one.model_dump() | fields)


@pytest.fixture
def case(honest, tmp_path):
    shutil.copytree(honest.base, tmp_path / "copy")
    return Case(tmp_path / "copy", honest.data)


def failures(report):
    return [finding.text for finding in report.findings if finding.level == "failed"]


def rewrite_from(case, number, change, *, key=None, author=None):
    """What the author can always do: change an entry and sign it and all later ones again, tokens dropped."""
    log, key = Log(case.log), key or case.key
    for token in token_files(case.log):
        token.path.unlink()
    entries = [(name, read_entry((case.log / name.text).read_bytes())) for name in log.names()]
    head = None
    for name, entry in entries:
        path = case.log / name.text
        if name.kind == "stamp":
            entry = changed(entry, body={"tokens": []})
        if name.seq == number:
            entry = change(entry)
        if name.seq >= number:
            entry = changed(
                entry,
                previous=head and head.digest,
                previous_signature=head and head.signature_digest,
                author=author or entry.author,
            )
            path.write_bytes(encode(entry))
            signature_path(path).write_bytes(sign(path.read_bytes(), key))
        head = log.read(name)


def test_the_honest_log_verifies_in_everything_that_was_given(honest):
    report = honest.verify(runs=honest.runs, data=honest.data, sacct=honest.sacct())
    levels = {finding.code: finding.level for finding in report.findings}

    assert failures(report) == []
    for code in ("chain", "time", "key", "head", "outcomes", "resolve", "refit", "order"):
        assert levels[code] == "verified"
    assert [f.code for f in report.findings if f.level == "not examined"] == ["second log"]


def test_nothing_is_called_verified_that_was_not_examined(honest):
    report = verify_log(honest.log)

    assert [finding.code for finding in report.findings if finding.level == "verified"] == ["chain"]
    texts = " ".join(finding.text for finding in report.findings if finding.level == "not examined")
    for words in ("key not checked", "tail not provable", "not given", "a second log under another key", "rehearsal"):
        assert words in texts


def test_edit(case):
    path = case.log / "0002-register.json"
    body = json.loads(path.read_text())
    body["body"]["targets"][0]["point"] += 0.001
    path.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n")
    first = failures(case.verify())

    assert "0002-register.json: TAMPERED: signature does not match the bytes" in first
    signature_path(path).write_bytes(sign(path.read_bytes(), case.key))
    again = failures(case.verify())
    assert any("0003-stamp.json: TAMPERED: does not hold the hash of the entry before" in text for text in again)


def test_edit_and_sign_everything_again(case):
    def edit(entry):
        body = json.loads(json.dumps(dict(entry.body)))
        body["targets"][0]["point"] += 0.001
        return changed(entry, body=body)

    rewrite_from(case, 2, edit)
    with_head = case.verify()

    assert any("head differs" in text for text in failures(with_head))
    assert any("time owed" in finding.text for finding in with_head.findings if finding.code == "time")


def test_back_date(case, honest):
    rewrite_from(case, 2, lambda entry: changed(entry, written="2020-01-01T00:00:00Z"))
    report = case.verify(head=None)
    times = [finding.text for finding in report.findings if finding.code == "time"]

    assert "entry 2: time owed; the file's own date 2020-01-01T00:00:00Z is a claim" in times
    assert not any("registered by 2020" in finding.text for finding in report.findings)


def test_entry_dropped(case):
    for name in ("0003-stamp.json", "0003-stamp.json.sig"):
        (case.log / name).unlink()

    assert "MISSING entry 3" in failures(case.verify())


def test_two_entries_with_one_number(case):
    for suffix in ("", ".sig"):
        shutil.copy(case.log / f"0005-resolve.json{suffix}", case.log / f"0005-amend.json{suffix}")
    texts = failures(case.verify())

    assert "TAMPERED: two entries have the number 5" in texts
    assert any("states number 5 and kind resolve, its name says 0005-amend.json" in text for text in texts)


def test_an_entry_before_the_key_or_a_first_key_that_did_not_sign(case, tmp_path):
    other = public_key_of(make_key(tmp_path / "other")).line
    rewrite_from(case, 1, lambda entry: changed(entry, body={"action": "open", "public_key": other}))
    assert any("entry 1: signed by SHA256" in text for text in failures(case.verify(head=None)))

    rewrite_from(case, 1, lambda entry: changed(entry, body={"action": "open", "public_key": "none"}))
    assert any("does not begin with its key" in text for text in failures(case.verify(head=None)))


def test_tail_cut(case):
    for name in list(case.log.iterdir()):
        if name.name[:4] in ("0005", "0006"):
            name.unlink()
    with_head, without = case.verify(), case.verify(head=None)

    assert any("head differs" in text for text in failures(with_head))
    assert failures(without) == []
    assert any("tail not provable" in finding.text for finding in without.findings)


def test_key_swapped(case):
    other = make_key(case.base / "other")

    def swap(entry):
        return changed(entry, body={"action": "open", "public_key": public_key_of(other).line})

    rewrite_from(case, 1, swap, key=other)
    report = case.verify(head=None)

    assert any("key NOT the published one" in text for text in failures(report))
    assert failures(verify_log(case.log, today=date(2026, 12, 2)))[0].count("is not in this log before it") == 1


def test_registered_after_the_results_jobs_submitted_before(case):
    report = case.verify(sacct=case.sacct(seconds_after=-1000))

    assert any("jobs submitted before the registration" in text for text in failures(report))


def test_registered_after_the_results_runs_say_so_themselves(case):
    early = {"code_hash": "23" * 32, "submitted": "2026-01-01T00:00:00+00:00"}
    runs = [changed(case.runs[0], provenance=early), *case.runs[1:]]

    assert any("1 runs say they were submitted before" in text for text in failures(case.verify(runs=runs)))


def test_registered_after_the_results_targets_have_outcomes(case):
    fitted = Fit.load(case.base / "fit.json")
    targets = [Target(target=c.target, design=c.design) for c in case.registration.statement.targets]

    refuse_known_targets(targets, fitted, case.data)
    with pytest.raises(ForecastError, match="9 targets already have outcomes"):
        refuse_known_targets(targets, fitted, case.runs)


def test_registered_after_the_results_seeds_are_not_derived(case):
    runs = [changed(one, seed=i) for i, one in enumerate(case.runs)]
    texts = failures(case.verify(runs=runs))

    assert len(runs) == sum("seed not derived" in text for text in texts)


def test_rehearsal_an_edit_after_the_runs_changes_every_seed(case):
    """Write the bytes, run all, edit a word, sign: caught, since the digest and so the seeds are others."""
    rewrite_from(case, 2, lambda entry: changed(entry, body=dict(entry.body) | {"claim": "it holds, nearly"}))
    runs = [changed(one, registration=case.registration.digest) for one in case.runs]
    shutil.rmtree(case.base / "log" / "authorities")
    for name in list(case.log.iterdir()):
        if name.name[:4] in ("0003", "0004", "0005", "0006"):
            name.unlink()

    assert any("seed not derived" in text for text in failures(case.verify(head=None, runs=runs)))


def test_rehearsal_without_a_word_changed_cannot_be_excluded_and_is_named(honest):
    report = honest.verify(runs=honest.runs)
    order = next(finding for finding in report.findings if finding.code == "order")

    assert order.level == "not examined"
    assert order.text.endswith("rehearsal: cannot be excluded")
    assert "the order rests on the derived seeds alone" in order.text


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


def test_a_rotated_key_signs_and_the_old_one_no_longer(case):
    new = make_key(case.base / "new")
    Log(case.log).rotate(key=case.key, new_key=new)
    Log(case.log).append("withdraw", {"registration": case.registration.digest, "reason": "x"}, key=new)
    allowed = case.base / "allowed_signers"
    assert any("key NOT the published one" in text for text in failures(case.verify()))
    allowed.write_text(allowed.read_text() + f'"{AUTHOR}" {public_key_of(new).line}\n')
    assert failures(case.verify()) == []

    path = case.log / "0008-withdraw.json"
    signature_path(path).write_bytes(sign(path.read_bytes(), case.key))
    assert any("entry 8: signed by SHA256" in text for text in failures(case.verify()))


def test_valid_before_is_checked_at_token_time(case):
    line = (case.base / "allowed_signers").read_text().split('" ')[1]
    allowed = case.base / "allowed_signers"
    allowed.write_text(f'"{AUTHOR}" valid-before="20200101" {line}')
    assert any("key NOT the published one" in text for text in failures(case.verify()))

    allowed.write_text(f'"{AUTHOR}" valid-before="29990101" {line}')
    assert failures(case.verify()) == []


def test_a_broken_log_ends_the_examination_of_outcomes(case):
    (case.log / "0002-register.json").write_bytes(b"{}")
    report = case.verify(runs=case.runs, data=case.data)

    assert any("not examined, since the log does not verify" in finding.text for finding in report.findings)
    with pytest.raises(CheckFailed, match="verification failed"):
        report.raise_if_failed()
