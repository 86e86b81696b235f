"""Reading and writing the bytes of an entry."""

import json

import pytest

from forecast.errors import CheckFailed, ForecastError
from prereg.entry import Entry, EntryName, encode, parse_strictly, read_entry


def entry(**changes):
    fields = {
        "seq": 1,
        "kind": "launch",
        "previous": None,
        "previous_signature": None,
        "written": "2026-01-01T00:00:00Z",
    }
    return Entry.model_validate(fields | {"author": "Ada", "body": {"x": 0.1}} | changes)


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": 1, "a": 2}',
        b'{"a": {"b": 1, "b": 1}}',
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": 1e999}',
        b'{"a": 9007199254740993}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": "\xff"}',
        b"\xef\xbb\xbf{}",
        b"[1]",
        b"",
        b'{"a": 1} x',
        b'{"a":' + b"[" * 100_000,
    ],
)
def test_what_two_readers_could_read_differently_is_refused(text):
    with pytest.raises(CheckFailed):
        parse_strictly(text)


def test_what_is_written_reads_back_with_any_unicode():
    written = entry(author="Zoë 🦊 'quoted' \"twice\"", body={"claim": "line\nbreak \u2028 \x7f", "n": 2**53})

    assert written == read_entry(encode(written))


@pytest.mark.parametrize("author", ["", "  ", "a\nb", "a\x00b", "x" * 201])
def test_an_author_is_one_line(author):
    with pytest.raises(ValueError, match="author"):
        entry(author=author)


@pytest.mark.parametrize("body", [{"x": float("nan")}, {"x": 2**53 + 1}, {"x": {1, 2}}, {"x": "\ud800"}])
def test_a_body_that_has_no_strict_json_is_not_written(body):
    with pytest.raises(ForecastError) as error:
        encode(entry(body=body))
    assert error.value.exit_code == 2


def test_a_field_too_many_or_too_few_is_refused():
    value = json.loads(encode(entry()))

    assert entry() == read_entry(json.dumps(value).encode())
    for changed in (value | {"extra": 1}, {k: v for k, v in value.items() if k != "author"}, value | {"kind": "other"}):
        with pytest.raises(CheckFailed, match="not an entry"):
            read_entry(json.dumps(changed).encode())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("0002-register.json", (2, "register")),
        ("10000-stamp.json", (10000, "stamp")),
        ("00002-register.json", None),
        ("2-register.json", None),
        ("0002-other.json", None),
        ("0002-register.json.sig", None),
        ("٠٠٠٢-register.json", None),
    ],
)
def test_an_entry_has_exactly_one_name(name, expected):
    parsed = EntryName.parse(name)

    assert expected == (parsed and (parsed.seq, parsed.kind))
