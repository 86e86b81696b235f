"""Seeds that nobody could know before the registration's bytes existed."""

from __future__ import annotations

import hashlib
import re

from forecast.errors import ForecastError

__all__ = ["SEED_RULE", "derived_seed"]

SEED_RULE = "first 4 bytes, big-endian, >> 1, of SHA256 of the ASCII text DIGEST/TARGET/REPLICATE"


def derived_seed(digest: str, target: str, replicate: int) -> int:
    """The seed, in [0, 2^31), of replicate 0, 1, ... of `target` under the registration `digest`.

    digest: lower-case hex sha256 of the registration's .json bytes.
    """
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise ForecastError(f"a digest is 64 lower-case hex digits, got {digest!r}")
    if not re.fullmatch(r"[a-z0-9-]+", target):
        raise ForecastError(f"a target id is made of a-z, 0-9 and -, got {target!r}")
    if isinstance(replicate, bool) or replicate < 0:
        raise ForecastError(f"replicates are counted from 0, got {replicate!r}")
    text = f"{digest}/{target}/{replicate}".encode("ascii")
    return int.from_bytes(hashlib.sha256(text).digest()[:4], "big") >> 1
