"""The command `register`: what it prints, writes and refuses."""

import json
from pathlib import Path

import pytest
from command_cases import register, run_all, said
from worlds_of_runs import run

from forecast.code import code_hash, evaluation_code_hash, own_root
from forecast.records import Design, Target
from prereg.commands_register import _with_evaluation
from prereg.log import Log
from prereg.statement import find_registration
from prereg.terms import Terms


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
