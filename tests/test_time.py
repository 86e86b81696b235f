"""Time tokens from a real local authority, `openssl ts`."""

import subprocess
from datetime import UTC, datetime

import pytest
from local_authority import make_authority, serving
from registration_cases import new_log, registered

from forecast.errors import CheckFailed, ForecastError
from prereg.log import Log, signature_path
from prereg.stamping import owed, stamp, token_files
from prereg.time import Authority, AuthorityAway, load_certificates, read_authorities, read_token, request_token
from prereg.verify import verify_log


@pytest.fixture(scope="module")
def practice_authority(tmp_path_factory):
    folder = make_authority(tmp_path_factory.mktemp("tsa") / "test")
    with serving(folder) as url:
        yield Authority("local", url, (folder / "ca.pem").read_bytes())


@pytest.fixture(scope="module")
def real_authority(tmp_path_factory):
    """One whose certificates do not call themselves a test, as a verifier's own choice would be."""
    folder = make_authority(tmp_path_factory.mktemp("tsa") / "real", name="Clock Office")
    with serving(folder) as url:
        yield Authority("office", url, (folder / "ca.pem").read_bytes())


def texts(report, code, level=None):
    return [f.text for f in report.findings if f.code == code and level in (None, f.level)]


def test_a_token_is_over_the_data_and_verifies_with_openssl(practice_authority, tmp_path):
    before = datetime.now(UTC).replace(microsecond=0)
    response = request_token(b"data", practice_authority)
    token = read_token(response, b"data", load_certificates(practice_authority.certificates))
    (tmp_path / "t.tsr").write_bytes(response)
    (tmp_path / "data").write_bytes(b"data")
    (tmp_path / "ca.pem").write_bytes(practice_authority.certificates)
    command = ["openssl", "ts", "-verify", "-data", "data", "-in", "t.tsr", "-CAfile", "ca.pem"]

    assert before <= token.time <= datetime.now(UTC)
    assert token.test
    assert b"OK" in subprocess.run(command, cwd=tmp_path, check=True, capture_output=True).stdout
    with pytest.raises(CheckFailed, match="Mismatch"):
        read_token(response, b"other", load_certificates(practice_authority.certificates))


def test_a_token_of_another_authority_is_refused(practice_authority, real_authority):
    response = request_token(b"data", practice_authority)

    with pytest.raises(CheckFailed, match="does not verify"):
        read_token(response, b"data", load_certificates(real_authority.certificates))


@pytest.mark.parametrize("response", [b"", b"\x30", b"\x30\x80" * 40, b"<html>", bytes(range(256)) * 8])
def test_what_is_no_token_is_a_verification_error(response, practice_authority):
    with pytest.raises(CheckFailed):
        read_token(response, b"data", load_certificates(practice_authority.certificates))


def test_a_test_authority_is_printed_as_no_evidence_even_when_it_is_trusted(practice_authority, tmp_path):
    _, log, key = registered(tmp_path)
    signed, away = stamp(log, [practice_authority], key=key)
    ca = tmp_path / "ca.pem"
    ca.write_bytes(practice_authority.certificates)

    assert away == []
    assert len(signed.body["tokens"]) == 2
    for options in ({}, {"authority_ca": ca}):
        report = verify_log(log, **options)
        assert report.ok
        assert "TEST, no evidence" in texts(report, "time", "not examined")[0]
        assert texts(report, "time", "verified") == []


def test_only_token_time_is_registered_by_and_the_files_date_is_a_claim(real_authority, tmp_path):
    registration, log, key = registered(tmp_path)
    ca = tmp_path / "ca.pem"
    ca.write_bytes(real_authority.certificates)
    owing = verify_log(log, authority_ca=ca)
    stamp(log, [real_authority], key=key)
    untrusted = verify_log(log)
    trusted = verify_log(log, authority_ca=ca)

    assert f"entry 2: time owed; the file's own date {registration.signed.entry.written} is a claim" in texts(
        owing, "time"
    )
    assert "whose CA is the log's own" in texts(untrusted, "time", "not examined")[0]
    assert "entry 2: registered by 20" in texts(trusted, "time", "verified")[0]
    for report in (owing, untrusted):
        assert not any("registered by" in text for text in texts(report, "time"))


def test_the_authority_that_the_log_carries_does_not_replace_mine(practice_authority, real_authority, tmp_path):
    _, log, key = registered(tmp_path)
    stamp(log, [practice_authority], key=key)
    ca = tmp_path / "ca.pem"
    ca.write_bytes(real_authority.certificates)
    report = verify_log(log, authority_ca=ca)

    assert "which is no authority of yours; it is not counted" in texts(report, "token", "warning")[0]
    assert "time owed" in texts(report, "time")[0]


def test_time_is_owed_while_the_authority_is_away_and_paid_later(practice_authority, tmp_path):
    log, key = new_log(tmp_path)
    nowhere = Authority("local", "http://127.0.0.1:1/", practice_authority.certificates)
    signed, away = stamp(log, [nowhere], key=key)

    assert signed is None
    assert "is away" in str(away[0])
    assert len(owed(log)) == 1
    stamp(log, [practice_authority], key=key)
    assert owed(log) == []
    assert verify_log(log).ok


def test_two_authorities_each_leave_a_token(practice_authority, real_authority, tmp_path):
    log, key = new_log(tmp_path)
    stamp(log, [practice_authority, real_authority], key=key)

    assert [token.authority for token in token_files(log)] == ["local", "office"]
    assert verify_log(log).ok
    assert stamp(log, [practice_authority, real_authority], key=key) == (None, [])


def test_a_stamp_entry_chains_every_token(practice_authority, tmp_path):
    log, key = new_log(tmp_path)
    stamp(log, [practice_authority], key=key)
    path = token_files(log)[0].path
    good = path.read_bytes()
    path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))

    assert "holds another hash of it" in texts(verify_log(log), "token", "failed")[0]
    path.unlink()
    assert "MISSING token" in texts(verify_log(log), "token", "failed")[0]
    path.write_bytes(good)
    assert verify_log(log).ok
    (log / "authorities" / "local.pem").write_bytes(b"")
    assert "another hash of the CA" in texts(verify_log(log), "token", "failed")[0]


def test_a_token_that_no_entry_chains_yet_is_named(practice_authority, tmp_path):
    log, key = new_log(tmp_path)
    stamp(log, [practice_authority], key=key)
    entry = Log(log).append("launch", {"x": 1}, key=key)
    path = entry.path.with_name(entry.path.name + ".local.tsr")
    path.write_bytes(request_token(signature_path(entry.path).read_bytes(), practice_authority))

    assert "not yet chained" in texts(verify_log(log), "token", "warning")[0]
    stamp(log, [practice_authority], key=key)
    assert texts(verify_log(log), "token") == []


def test_the_last_tokens_signed_content_cannot_change(practice_authority, tmp_path):
    """Not yet chained, so only what the authority signed is protected: bytes that pass are outside of it."""
    log, _ = new_log(tmp_path)
    data = (log / "0001-key.json.sig").read_bytes()
    certificates = load_certificates(practice_authority.certificates)
    response = request_token(data, practice_authority)
    expected = read_token(response, data, certificates)
    passed = 0
    for i in range(len(response)):
        changed = response[:i] + bytes([response[i] ^ 1]) + response[i + 1 :]
        try:
            found = read_token(changed, data, certificates)
        except CheckFailed:
            continue
        passed += 1
        assert expected == found

    assert passed < 20


def test_another_authority_under_a_known_name_is_refused(practice_authority, real_authority, tmp_path):
    log, key = new_log(tmp_path)
    stamp(log, [practice_authority], key=key)
    impostor = Authority("local", real_authority.url, real_authority.certificates)

    with pytest.raises(ForecastError, match="another CA"):
        stamp(log, [impostor], key=key)


def test_an_answer_to_another_question_is_refused(practice_authority, monkeypatch):
    response = request_token(b"data", practice_authority)
    monkeypatch.setattr("urllib.request.urlopen", lambda *a, **k: Replay(response))

    with pytest.raises(AuthorityAway, match="Nonce"):
        request_token(b"data", practice_authority)


class Replay:
    def __init__(self, data):
        self.data = data

    def __enter__(self):
        return self

    def __exit__(self, *rest):
        return None

    def read(self, limit):
        return self.data[:limit]


def test_authorities_are_read_from_toml(practice_authority, tmp_path):
    (tmp_path / "ca.pem").write_bytes(practice_authority.certificates)
    path = tmp_path / "authorities.toml"
    path.write_text(f'[[authority]]\nname = "local"\nurl = "{practice_authority.url}"\nca = "ca.pem"\n')

    assert [practice_authority] == read_authorities(path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "[[authority]]\nname = 'a'\n",
        "[[authority]]\nname = 'A b'\nurl = 'https://x'\nca = 'ca.pem'\n",
        "[[authority]]\nname = 'a'\nurl = 'file:///etc'\nca = 'ca.pem'\n",
        "[[authority]]\nname = 'a'\nurl = 'https://x'\nca = 'none.pem'\n",
    ],
)
def test_bad_lists_of_authorities_are_refused(text, tmp_path):
    path = tmp_path / "authorities.toml"
    path.write_text(text)

    with pytest.raises(ForecastError, match=r"authorities\.toml"):
        read_authorities(path)
