"""Names: target ids from the settings that vary, and the nearest valid word for a wrong one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from forecast.records import Design, Scalar

__all__ = ["nearest", "target_ids"]


def nearest(word: str, valid: Iterable[str]) -> str:
    """What to say of an unknown `word`: the nearest valid one, or all of them."""
    words = sorted(valid)
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"valid are {', '.join(words)}"


def target_ids(designs: Sequence[Design]) -> list[str]:
    """One id a design, from the settings that differ between designs: g050-n96000.

    Ids that would be equal or too long get the start of the design hash.
    """
    names = [name for name in _all_names(designs) if len({repr(d.settings.get(name)) for d in designs}) > 1]
    if not names:
        names = [name for name in ("good_view_fraction", "n_samples") if name in designs[0].settings]
    plain = ["-".join(_part(name, design.settings.get(name)) for name in names) for design in designs]
    return [
        text if text and len(text) <= 60 and plain.count(text) == 1 else f"{text[:60]}-{design.hash[:12]}".strip("-")
        for text, design in zip(plain, designs, strict=True)
    ]


def _all_names(designs: Sequence[Design]) -> list[str]:
    names = dict.fromkeys(name for design in designs for name in design.settings)
    first = [name for name in ("good_view_fraction", "n_samples") if name in names]
    return first + [name for name in names if name not in first]


def _part(name: str, value: Scalar) -> str:
    if name == "good_view_fraction":
        percent = None if value is None else round(100 * float(value), 9)
        return "gnone" if percent is None else f"g{percent:03.0f}" if percent.is_integer() else f"g{_text(value)}"
    if name == "n_samples":
        return f"n{_text(value)}"
    short = _clean(name.rsplit(".", 1)[-1])
    return _clean(value) if isinstance(value, str) else f"{short}{_text(value)}"


def _text(value: Scalar) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "-yes", False: "-no", None: "-none"}[value]
    number = f"{value:.12g}" if isinstance(value, float) else str(value)
    return _clean(number.replace("+", "").replace("-", "m").replace(".", "p"))


def _clean(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
