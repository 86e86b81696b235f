"""The lines that a stranger types, run as they stand, against a good log and against each attack on it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from local_authority import make_authority, serving
from registration_cases import make_key, registered

from forecast.files import sha256_hex
from prereg.log import Log, signature_path
from prereg.seeds import derived_seed
from prereg.signature import public_key_of, sign
from prereg.stamping import stamp
from prereg.time import Authority

AUTHOR = "Ada <ada@example.org>"
TEXT = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8").partition("## Verify a log with none")[2]
SETTINGS, CHAIN, SIGNATURES, TIME, SEEDS = re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    base = tmp_path_factory.mktemp("good")
    folder = make_authority(base / "tsa", name="Clock Office")
    _, log, key = registered(base)
    with serving(folder) as url:
        authority = Authority("office", url, (folder / "ca.pem").read_bytes())
        stamp(log, [authority], key=key)
    Log(log).append("launch", {"x": 1}, key=key)
    (base / "allowed_signers").write_text(f'"{AUTHOR}" {public_key_of(key).line}\n')
    shutil.copy(folder / "ca.pem", base / "ca.pem")
    return base


@pytest.fixture
def place(good, tmp_path):
    return Path(shutil.copytree(good, tmp_path / "copy"))


def run(place, *blocks, head=""):
    """Exit code and output of the blocks in one bash."""
    script = SETTINGS.replace("HEAD= ", f"HEAD={head} ") + "".join(blocks)
    done = subprocess.run(["bash", "-c", script], cwd=place, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def everything(place, head=""):
    return run(place, CHAIN, SIGNATURES, TIME, SEEDS, head=head)


def test_a_good_log_passes_every_line(place):
    log = Log(place / "log")
    register = log.folder / "0002-register.json"
    digest = sha256_hex(register.read_bytes())
    code, printed = everything(place, head=log.head().digest)

    assert code == 0
    assert 4 == printed.count('Good "platocast-registration-1" signature for Ada <ada@example.org>')
    assert 2 == printed.count("Time stamp:")
    assert f"seed of g050-n96000/0: {derived_seed(digest, 'g050-n96000', 0)}" in printed


def edit(place):
    path = place / "log" / "0002-register.json"
    path.write_bytes(path.read_bytes().replace(b"rerun would", b"rerun might"))
    return path


def test_an_edit_breaks_the_signature_and_the_chain(place):
    edit(place)

    assert run(place, CHAIN)[0] == 1
    assert run(place, CHAIN.replace("exit 1", "true"), SIGNATURES)[0] == 1


def test_an_edit_that_is_signed_again_breaks_the_chain_and_the_time(place):
    path = edit(place)
    signature_path(path).write_bytes(sign(path.read_bytes(), place / "key"))

    assert run(place, CHAIN) == (1, "BROKEN at 0003-stamp.json\n")
    assert run(place, "cd log\n", TIME)[0] == 1


def test_a_dropped_entry_breaks_the_chain(place):
    for name in ("0003-stamp.json", "0003-stamp.json.sig"):
        (place / "log" / name).unlink()

    assert run(place, CHAIN) == (1, "BROKEN at 0004-launch.json\n")


def test_a_cut_tail_needs_the_head(place):
    head = Log(place / "log").head().digest
    for name in ("0004-launch.json", "0004-launch.json.sig"):
        (place / "log" / name).unlink()

    assert everything(place)[0] == 0
    assert run(place, CHAIN, head=head) == (1, "the head differs: the tail was cut, or this is another log\n")


def test_another_key_is_not_the_published_one(place):
    other = make_key(place / "other")
    for path in (place / "log").glob("*.json"):
        signature_path(path).write_bytes(sign(path.read_bytes(), other))

    assert run(place, "cd log\n", SIGNATURES)[0] != 0


def test_a_changed_or_foreign_token_is_no_time(place):
    token = place / "log" / "0002-register.json.office.tsr"
    good = token.read_bytes()
    token.write_bytes(good[:-3] + bytes([good[-3] ^ 1]) + good[-2:])
    assert run(place, "cd log\n", TIME)[0] == 1

    token.write_bytes(good)
    assert run(place, "cd log\n", TIME)[0] == 0
    foreign = make_authority(place / "foreign", name="Other Office")
    shutil.copy(foreign / "ca.pem", place / "ca.pem")
    assert run(place, "cd log\n", TIME)[0] == 1


def test_a_token_that_is_chained_nowhere_is_named(place):
    for name in ("0003-stamp.json", "0003-stamp.json.sig"):
        (place / "log" / name).unlink()
    code, printed = run(place, "cd log\n", TIME)

    assert code == 1
    assert "0001-key.json.office.tsr is in no stamp entry" in printed
