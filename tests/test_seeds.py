"""Derived seeds."""

import subprocess

import pytest

from forecast.errors import ForecastError
from prereg.seeds import derived_seed

DIGEST = "0123456789abcdef" * 4


def test_a_seed_is_what_sha256sum_gives():
    text = f"{DIGEST}/g050-n96000/7"
    printed = subprocess.run(["sha256sum"], input=text.encode(), capture_output=True, check=True).stdout

    assert int(printed[:8], 16) >> 1 == derived_seed(DIGEST, "g050-n96000", 7)


def test_seeds_fit_in_31_bits_and_differ():
    seeds = [derived_seed(DIGEST, "t", replicate) for replicate in range(1000)]

    assert max(seeds) < 2**31
    assert min(seeds) >= 0
    assert len(set(seeds)) > 995


@pytest.mark.parametrize(
    ("digest", "target", "replicate"),
    [(DIGEST[:-1], "t", 0), (DIGEST.upper(), "t", 0), (DIGEST, "T", 0), (DIGEST, "", 0), (DIGEST, "t", -1)],
)
def test_what_is_no_digest_target_or_replicate_is_refused(digest, target, replicate):
    with pytest.raises(ForecastError):
        derived_seed(digest, target, replicate)
