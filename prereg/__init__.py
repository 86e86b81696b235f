"""From a forecast to a signed commitment and back."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prereg.check import Check
    from prereg.log import Log, SignedEntry, find_entry
    from prereg.seeds import derived_seed
    from prereg.statement import Registration, SignedRegistration, find_registration
    from prereg.terms import Terms
    from prereg.verify import verify_log

_HOMES = {
    "Check": "check",
    "Log": "log",
    "Registration": "statement",
    "SignedEntry": "log",
    "SignedRegistration": "statement",
    "Terms": "terms",
    "derived_seed": "seeds",
    "find_entry": "log",
    "find_registration": "statement",
    "verify_log": "verify",
}
__all__ = [
    "Check",
    "Log",
    "Registration",
    "SignedEntry",
    "SignedRegistration",
    "Terms",
    "derived_seed",
    "find_entry",
    "find_registration",
    "verify_log",
]


def __getattr__(name: str) -> Any:
    """The public name, imported from its home on first use: the command stays fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'prereg' has no attribute {name!r}")
    return getattr(import_module(f"prereg.{_HOMES[name]}"), name)
