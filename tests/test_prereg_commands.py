"""The commands `verify`, `check` and `log`: what they print, write and return."""

import base64
import json
import re
import time

import pytest
from command_cases import register, run_all, said
from local_authority import make_authority, serving
from registration_cases import make_key

from prereg.log import Log
from prereg.signature import public_key_of
from prereg.statement import find_registration


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
