"""Text of unknown origin made safe to show: nothing in it can move a cursor, hide itself or begin a line of its own."""

from __future__ import annotations

import re

__all__ = ["one_line", "plain"]

_CONTROL = "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1, but tab and newline
_ORDER = "\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"  # bidi marks, line ends, half pairs
_UNSEEN = re.compile(f"[{_CONTROL}{_ORDER}]")
_UNSEEN_OR_LINE = re.compile(f"[{_CONTROL}{_ORDER}\n\t]")


def plain(text: str) -> str:
    r"""`text` with control characters, bidirectional marks and half surrogates written as \xNN or \uNNNN."""
    return _UNSEEN.sub(_written, text)


def one_line(text: str) -> str:
    r"""The same with \n and \t written out too, so that it stays on its line."""
    return _UNSEEN_OR_LINE.sub(_written, text)


def _written(match: re.Match[str]) -> str:
    code = ord(match[0])
    named = {9: "\\t", 10: "\\n", 13: "\\r"}
    return named.get(code) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
