"""The commands `register`, `verify`, `log` and `check`: what they print, write and return."""

import base64
import json
import re
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from local_authority import make_authority, serving
from registration_cases import make_key
from worlds_of_runs import hill_truth, run, simulated_runs

from forecast.code import code_hash, evaluation_code_hash, own_root
from forecast.fitting import fit
from forecast.ledger import append_runs
from forecast.records import Design, Target
from prereg.commands_register import _with_evaluation
from prereg.log import Log
from prereg.seeds import derived_seed
from prereg.signature import public_key_of
from prereg.statement import find_registration
from prereg.terms import Terms
from runner.cli import main

AUTHOR = "Ada <ada@example.org>"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A fit, targets, a key and a log with one registration."""
    folder = tmp_path_factory.mktemp("base")
    data = simulated_runs()
    append_runs(folder / "data.jsonl", data)
    fit(data, metric="mutual_knn", law="hill", rng=np.random.default_rng(7), seed=7).save(folder / "fit.json")
    targets = [
        {"target": f"g{int(100 * g):03d}-n{n}", "design": run("x", n, g, 0.1).design.model_dump(), "replicates": 3}
        for g in (0.1, 0.6, 0.9)
        for n in (24_000, 96_000)
    ]
    (folder / "targets.json").write_text(json.dumps(targets))
    make_key(folder / "key")
    (folder / "allowed").write_text(f'"{AUTHOR}" {public_key_of(folder / "key").line}\n')
    return folder


@pytest.fixture
def place(base, tmp_path, monkeypatch):
    shutil.copytree(base, tmp_path / "place")
    monkeypatch.chdir(tmp_path / "place")
    return tmp_path / "place"


@pytest.fixture(scope="module")
def registered_base(base, tmp_path_factory):
    """As `base`, with one registration in log/0002 and its outcomes in runs.jsonl."""
    folder = tmp_path_factory.mktemp("registered") / "place"
    shutil.copytree(base, folder)
    words = ["register", folder / "fit.json", folder / "targets.json", "--log", folder / "log", "--key", folder / "key"]
    words += ["--author", AUTHOR, "--yes", "--claim", "hill holds", "--exclude", "node-failure=the node died"]
    with pytest.raises(SystemExit):
        main([str(word) for word in words])
    run_all(folder)
    return folder


@pytest.fixture
def ready(registered_base, tmp_path, monkeypatch):
    shutil.copytree(registered_base, tmp_path / "ready")
    monkeypatch.chdir(tmp_path / "ready")
    return tmp_path / "ready"


def said(capsys, *words):
    """Exit code, standard output and standard error of one command."""
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    printed = capsys.readouterr()
    return stopped.value.code, printed.out, printed.err


def register(capsys, *more, log="log"):
    words = ["register", "fit.json", "targets.json", "--log", log, "--key", "key", "--author", AUTHOR, "--yes"]
    return said(capsys, *words, "--claim", "hill holds", "--exclude", "node-failure=the node died", *more)


def run_all(place, *, bias=0.0, skip=0):
    """Outcomes of the registration in log/0002, in runs.jsonl."""
    registration, rng = find_registration(place / "log" / "0002-register.json"), np.random.default_rng(3)
    rows = []
    for claim in registration.statement.targets:
        n, g = claim.design.settings["n_samples"], claim.design.settings["good_view_fraction"]
        for k in range(claim.replicates):
            one = run(f"{claim.target}-{k}", n, g, hill_truth(n, g) + bias + rng.normal(0, 0.002))
            fields = {"registration": registration.digest, "target": claim.target, "replicate": k}
            seed = derived_seed(registration.digest, claim.target, k)
            rows.append(type(one).model_validate(one.model_dump() | fields | {"seed": seed}))
    append_runs(place / "runs.jsonl", rows[skip:])


def test_register_starts_a_log_and_says_the_power_and_what_is_owed(place, capsys):
    code, out, err = register(capsys, "--json")
    found = json.loads(out)

    assert code == 0
    assert found["entry"] == "log/0002-register.json"
    assert find_registration(place / found["entry"]).digest == found["digest"]
    assert "power: chance of AS GOOD" in err
    assert "time owed" in err
    assert [entry.seq for entry in Log("log").entries()] == [1, 2]


def test_a_dry_run_prints_what_would_be_signed_and_writes_nothing(place, capsys):
    code, out, err = register(capsys, "--dry-run", "--deadline", "2999-01-01")
    document = json.loads(out)

    assert code == 0
    assert "nothing was signed" in err
    assert not (place / "log").exists()
    register(capsys, "--deadline", "2999-01-01")
    assert document == json.loads((place / "log" / "0002-register.json").read_text())["body"]


def test_the_code_that_scores_our_own_worlds_is_stated_and_that_of_others_is_not(place, capsys):
    terms = Terms(claim="c", deadline="2999-01-01")
    theirs = [Target(target="a", design=run("x", 1000, 0.5, 0.1).design)]
    ours = [Target(target="a", design=Design(settings={"n_samples": 1000, "world.hash": "00" * 32}))]

    assert _with_evaluation(terms, theirs).evaluation_code_hash is None
    assert evaluation_code_hash(own_root()) == _with_evaluation(terms, ours).evaluation_code_hash
    given = terms.model_copy(update={"evaluation_code_hash": "ab" * 32})
    assert given == _with_evaluation(given, ours)


def test_without_a_terminal_or_yes_nothing_is_signed(place, capsys):
    words = ["register", "fit.json", "targets.json", "--log", "log", "--key", "key", "--author", "A", "--claim", "c"]
    code, out, err = said(capsys, *words)

    assert code == 2
    assert "give --yes" in err
    assert json.loads(out)["claim"] == "c"
    assert not (place / "log").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--deadline", "soon"], "deadline"),
        (["--access", "some"], "access.level"),
        (["--exclude", "no rule"], "ID=RULE"),
        (["--known", "data.jsonl", "--delta", "-1"], "delta"),
        (["--code-hash", "xyz"], "code_hash"),
        (["--key", "none"], "ssh-keygen -t ed25519"),
        (["--claim", ""], "claim"),
    ],
)
def test_bad_words_are_refused_before_anything_is_written(place, capsys, words, message):
    code, _, err = register(capsys, *words)

    assert code == 2
    assert message in err
    assert not list(Path("log").glob("*.json"))


def test_terms_come_from_a_file_and_options_before_it(place, capsys):
    (place / "terms.toml").write_text(
        """claim = "from the file"
        deadline = "2999-01-01"
        looks = 2
        divergence = "a diverged run is counted as a failure of the law"
        preprocessing = "none"
        exploratory = ["trend in g"]
        access = { level = "pilot", seen = ["glyphs-pilot"] }
        [[exclusions]]
        id = "disk-full"
        rule = "the disk was full"
        """
    )
    words = ["register", "fit.json", "targets.json", "--log", "log", "--terms", "terms.toml", "--dry-run"]
    body = json.loads(said(capsys, *words)[1])
    other = json.loads(said(capsys, *words, "--claim", "from the option")[1])

    assert (body["claim"], other["claim"]) == ("from the file", "from the option")
    assert body["rules"]["looks"] == 2
    assert body["rules"]["exclusions"] == [{"id": "disk-full", "rule": "the disk was full"}]
    assert body["metric"]["preprocessing"] == "none"
    assert body["access"] == {"level": "pilot", "seen": ["glyphs-pilot"]}
    assert body["launch"]["code_hash"] == code_hash(own_root())
    (place / "terms.toml").write_text("clame = 1")
    assert said(capsys, *words)[0] == 2


def test_an_empty_list_of_targets_and_one_with_outcomes_are_refused(place, capsys):
    targets = json.loads((place / "targets.json").read_text())
    (place / "targets.json").write_text("[]")
    assert "no targets" in register(capsys)[2]
    (place / "targets.json").write_text(json.dumps(targets))
    register(capsys)
    run_all(place)

    code, _, err = register(capsys, "--known", "runs.jsonl", log="second")
    assert (code, "6 targets already have outcomes" in err) == (2, True)


def test_a_mean_of_k_is_registered_as_such_and_is_narrower(place, capsys):
    targets = json.loads((place / "targets.json").read_text())
    targets[0]["quantity"] = "mean of 3"
    (place / "targets.json").write_text(json.dumps({"targets": targets}))
    register(capsys)
    first, second = find_registration(place / "log" / "0002-register.json").statement.targets[:2]

    assert (first.quantity, second.quantity) == ("mean of 3", "one new run")
    assert first.runs_in_quantity == 3
    targets[0]["quantity"] = "mean of 9"
    (place / "targets.json").write_text(json.dumps({"targets": targets}))
    assert "needs as many replicates" in register(capsys)[2]


def test_targets_in_toml_are_the_same_targets(place, capsys):
    rows = json.loads((place / "targets.json").read_text())
    lines = []
    for row in rows:
        lines += ["[[targets]]", f'target = "{row["target"]}"', f"replicates = {row['replicates']}"]
        lines += ["[targets.design.settings]"]
        lines += [f"{name} = {json.dumps(value)}" for name, value in row["design"]["settings"].items()]
    (place / "targets.toml").write_text("\n".join(lines))
    words = ["register", "fit.json", "--log", "log", "--claim", "c", "--deadline", "2999-01-01", "--dry-run"]
    one, other = (said(capsys, *words[:2], name, *words[2:]) for name in ("targets.json", "targets.toml"))

    assert one[:2] == other[:2]


def test_verify_says_what_was_examined_and_exits_1_on_a_changed_byte(ready, capsys):
    head = Log("log").head().digest
    code, out, _ = said(capsys, "verify", "log", "--allowed-signers", "allowed", "--head", head, "--json")
    levels = {(row["result"], row["what"][:20]) for row in json.loads(out)}

    assert code == 0
    assert ("verified", "entry 2 is the given head"[:20]) in levels
    path = ready / "log" / "0002-register.json"
    path.write_bytes(path.read_bytes().replace(b"hill holds", b"hill Holds"))
    code, out, err = said(capsys, "verify", "log")
    assert code == 1
    assert "TAMPERED" in out
    assert "0002-register.json: TAMPERED: signature does not match the bytes" in err


def test_verify_refits_the_declared_data(ready, capsys):
    code, out, _ = said(capsys, "verify", "log", "--data", "data.jsonl", "--json")

    assert code == 0
    assert any("predictions follow from the declared data" in row["what"] for row in json.loads(out))


def test_a_folder_without_a_log_is_bad_input(place, capsys):
    for words in (["verify", "none"], ["log", "none"], ["log", "list", "none"]):
        code, _, err = said(capsys, *words)
        assert (code, "holds no log" in err) == (2, True)


def test_check_prints_a_verdict_saves_it_and_resolves_once(ready, capsys):
    words = ["check", "log/0002-register.json", "--ledger", "runs.jsonl", "--out", "check.json"]
    code, out, err = said(capsys, *words, "--json", "--resolve", "--key", "key")
    result = json.loads(out)

    assert code == 0
    assert result == json.loads((ready / "check.json").read_text())
    assert result["headline"].startswith(("AS GOOD", "INCONCLUSIVE", "WORSE"))
    assert "rehearsal: cannot be excluded" in result["order"]
    assert "signed the result: log/0003-resolve.json" in err
    assert said(capsys, "verify", "log", "--ledger", "runs.jsonl")[0] == 0
    code, _, err = said(capsys, *words, "--resolve", "--key", "key")
    assert (code, "has resolved this registration already" in err) == (2, True)
    _, out, _ = said(capsys, "log", "log", "--ledger", "runs.jsonl", "--json")
    assert [(row["state"], row["outcomes"]) for row in json.loads(out)] == [("resolved", "18 of 18")]


def test_check_compares_with_what_was_resolved_before(ready, capsys):
    words = ["check", "log/0002-register.json", "--ledger", "runs.jsonl"]
    first = said(capsys, *words, "--resolve", "--key", "key")
    (ready / "runs.jsonl").unlink()
    run_all(ready, bias=0.01)
    code, _, err = said(capsys, *words)

    assert first[0] == 0
    assert code == 1
    assert re.search(r"EDITED: \d+ outcomes are not those\s+that were signed", err)


def test_a_verdict_of_worse_is_a_result_and_a_switched_seed_a_failure(ready, capsys):
    (ready / "runs.jsonl").unlink()
    run_all(ready, bias=0.03)
    words = ["check", "log/0002-register.json", "--ledger", "runs.jsonl"]
    code, out, _ = said(capsys, *words)
    assert code == 0
    assert "WORSE THAN SEED NOISE" in out

    lines = (ready / "runs.jsonl").read_text().splitlines()
    lines[0] = json.dumps(json.loads(lines[0]) | {"seed": 5})
    (ready / "runs.jsonl").write_text("\n".join(lines) + "\n")
    code, out, err = said(capsys, *words)
    assert code == 1
    assert "VERIFICATION FAILED" in out
    assert "seed not derived: 5" in err


def test_check_refuses_a_broken_log_before_it_looks_at_outcomes(ready, capsys):
    (ready / "log" / "0001-key.json").write_bytes(b"{}")
    code, out, err = said(capsys, "check", "log/0002-register.json", "--ledger", "runs.jsonl")

    assert (code, out) == (1, "")
    assert "0001-key.json: TAMPERED" in err


def test_check_takes_only_declared_exclusions(ready, capsys):
    words = ["check", "log/0002-register.json", "--ledger", "runs.jsonl", "--json", "--exclude"]
    first = find_registration(ready / "log" / "0002-register.json").statement.targets[0].target

    assert said(capsys, *words, f"{first}-0=looked-odd")[0] == 2
    assert said(capsys, *words, "nonsense")[0] == 2
    code, out, _ = said(capsys, *words, f"{first}-0=node-failure")
    assert code == 0
    assert json.loads(out)["headline"].startswith("INCOMPLETE (17 of 18)")


def test_an_interim_look_is_named(ready, capsys):
    (ready / "runs.jsonl").unlink()
    run_all(ready, skip=7)
    code, out, _ = said(capsys, "check", "log/0002-register.json", "--ledger", "runs.jsonl", "--json")

    assert code == 0
    assert json.loads(out)["headline"].startswith("INTERIM 11 of 18: ")


def test_second_thoughts_are_entries_and_show_in_the_list(place, capsys):
    register(capsys, "--deadline", "2026-01-01")
    _, out, _ = said(capsys, "log", "log", "--json")
    assert json.loads(out)[0]["state"] == "OVERDUE"

    said(capsys, "log", "amend", "log", "2", "--text", "two weeks more", "--deadline", "2999-01-01", "--key", "key")
    _, out, _ = said(capsys, "log", "log", "--json")
    assert (json.loads(out)[0]["state"], json.loads(out)[0]["deadline"]) == ("open", "2999-01-01")
    _, out, _ = said(capsys, "verify", "log")
    assert "amended by entries 3" in " ".join(out.split())

    assert said(capsys, "log", "withdraw", "log", "2", "--reason", "wrong data", "--key", "key")[0] == 0
    _, out, _ = said(capsys, "log", "log", "--json")
    assert json.loads(out)[0]["state"] == "withdrawn"
    assert said(capsys, "log", "amend", "log", "2", "--text", "again", "--key", "key")[0] == 2
    assert said(capsys, "log", "withdraw", "log", "2", "--reason", " ", "--key", "key")[0] == 2
    assert said(capsys, "verify", "log")[0] == 0


def test_a_key_is_rotated(ready, capsys):
    make_key(ready / "new")

    assert said(capsys, "log", "rotate", "log", "--key", "key", "--new-key", "new")[0] == 0
    assert said(capsys, "log", "withdraw", "log", "2", "--reason", "x", "--key", "key")[0] == 2
    assert said(capsys, "log", "withdraw", "log", "2", "--reason", "x", "--key", "new")[0] == 0


def test_time_is_paid_at_once_or_later(place, capsys):
    folder = make_authority(place / "tsa", name="Clock Office")
    toml = '[[authority]]\nname = "office"\nurl = "{}"\nca = "tsa/ca.pem"\n'
    (place / "authorities.toml").write_text(toml.format("http://127.0.0.1:1/"))
    code, _, err = register(capsys, "--authorities", "authorities.toml")
    assert (code, "time owed" in err) == (0, True)
    assert said(capsys, "log", "stamp", "log", "--authorities", "authorities.toml", "--key", "key")[0] == 2

    with serving(folder) as url:
        (place / "authorities.toml").write_text(toml.format(url))
        words = ["log", "stamp", "log", "--authorities", "authorities.toml", "--key", "key", "--json"]
        code, out, _ = said(capsys, *words)
        register(capsys, "--authorities", "authorities.toml")
    assert (code, json.loads(out)) == (0, {"entry": "log/0003-stamp.json", "tokens": 2, "still owed": 0})
    _, out, _ = said(capsys, "verify", "log", "--authority-ca", "tsa/ca.pem", "--json")
    times = [row["what"] for row in json.loads(out) if "registered by" in row["what"]]
    assert times[0].startswith("entry 2: registered by 20")
    assert times[1].startswith("entry 4: registered by 20")


def test_sacct_shows_the_order_or_refutes_it(place, capsys):
    folder = make_authority(place / "tsa", name="Clock Office")
    with serving(folder) as url:
        toml = f'[[authority]]\nname = "office"\nurl = "{url}"\nca = "tsa/ca.pem"\n'
        (place / "authorities.toml").write_text(toml)
        register(capsys, "--authorities", "authorities.toml")
    run_all(place)
    digest = find_registration(place / "log" / "0002-register.json").digest
    words = ["verify", "log", "--authority-ca", "tsa/ca.pem", "--sacct", "sacct.txt"]

    soon = str(int(time.time()) + 100)
    for submit, expected in ((soon, 0), ("4102444800", 1), ("1000000000", 1), ("9" * 30, 2), ("2026-12-01T10:00", 2)):
        (place / "sacct.txt").write_text(f"JobID|JobName|Submit\n3|pc-{digest[:16]}|{submit}\n")
        assert said(capsys, *words)[0] == expected
    (place / "sacct.txt").write_text("nonsense")
    assert "SLURM_TIME_FORMAT=%s" in said(capsys, *words)[2]


def test_an_exported_envelope_verifies_with_securesystemslib(ready, capsys):
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import VerificationError
    from securesystemslib.signer import SSlibKey

    words = ["log", "export", "log", "2", "--key", "key", "--out", "envelope.json"]
    assert said(capsys, *words)[0] == 0
    written = json.loads((ready / "envelope.json").read_text())
    public = load_ssh_public_key((ready / "key.pub").read_bytes())
    key = SSlibKey.from_crypto(public, keyid=public_key_of(ready / "key").fingerprint)
    statement = json.loads(base64.b64decode(written["payload"]))

    assert Envelope.from_dict(json.loads(json.dumps(written))).verify([key], 1)
    digest = find_registration(ready / "log" / "0002-register.json").digest
    assert statement["subject"] == [{"name": "0002-register.json", "digest": {"sha256": digest}}]
    written["payload"] = base64.b64encode(base64.b64decode(written["payload"]) + b" ").decode()
    with pytest.raises(VerificationError):
        Envelope.from_dict(written).verify([key], 1)


def test_an_export_says_which_keys_it_takes(ready, capsys):
    make_key(ready / "ecdsa", kind="ecdsa")
    for key, message in (("ecdsa", "Ed25519"), ("none", "cannot|No such file")):
        code, _, err = said(capsys, "log", "export", "log", "2", "--key", key, "--out", "envelope.json")
        assert code == 2
        assert any(word in err for word in message.split("|"))
