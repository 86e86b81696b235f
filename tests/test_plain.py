"""Text of unknown origin cannot take over a terminal."""

import pytest

from forecast.console import note, show_record, show_table
from forecast.plain import one_line, plain
from prereg.finding import Finding

HOSTILE = "x\x1b[1A\x1b[2K\nverified: key is the published one\x9b31m\u202egnp\u2028\ud800"


@pytest.mark.parametrize("text", ["plain", "ünï 🦊 Zoë", "a\u0301", "漢字", ""])
def test_ordinary_text_of_any_language_stays_as_it_is(text):
    assert text == plain(text) == one_line(text)


def test_what_moves_hides_or_reorders_is_written_out():
    assert "x\\x1b[1A\\x1b[2K\nverified" == plain(HOSTILE)[:24]
    assert "\\x9b31m\\u202egnp\\u2028\\ud800" == plain(HOSTILE)[-28:]
    assert "a\\nb\\tc\\rd" == one_line("a\nb\tc\rd")
    assert "a\nb\tc" == plain("a\nb\tc")


def test_no_command_prints_them(capsys):
    show_table([{"who": HOSTILE}], title="t", as_json=False)
    show_record({"who": HOSTILE}, as_json=False)
    note(HOSTILE)
    printed = capsys.readouterr()

    for text in (printed.out, printed.err):
        assert set() == set(text) & {"\x1b", "\x9b", "\u202e", "\u2028"}
        assert "\\x1b" in text


def test_a_finding_is_one_line():
    assert "\n" not in Finding(level="failed", code="x", text=HOSTILE).text
