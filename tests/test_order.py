"""Token time against SLURM's Submit, to the second and no finer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from forecast.records import Provenance
from prereg.order import SACCT, Submission, order_of, read_sacct
from prereg.time import Token
from prereg.witness import Witness

DIGEST = "ab" * 32
NOON = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)


def order(token: datetime, *, submits: list[datetime] | None = None, stated: str | None = None) -> Any:
    """The finding on a registration stamped at `token`, with jobs submitted then and a run that states `stated`."""
    registration = SimpleNamespace(signed=SimpleNamespace(seq=2), digest=DIGEST)
    witness = Witness({2: [Token(token, "CN=Clock Office", 1, False)]}, trusted=True)
    jobs = [Submission(f"{k}_0", f"pc-{DIGEST[:16]}-x-0", time) for k, time in enumerate(submits or [], start=1)]
    run = SimpleNamespace(run_id="r", registration=DIGEST, provenance=Provenance(submitted=stated, job_id="1_0"))
    found: Any = order_of(registration, witness, sacct=jobs or None, runs=[run])  # type: ignore[arg-type,list-item]
    return found


@pytest.mark.parametrize(
    ("seconds", "level"), [(-1, "failed"), (0, "not examined"), (1, "verified"), (3600, "verified")]
)
@pytest.mark.parametrize("fraction", [0.0, 0.4])
def test_a_submit_in_the_token_s_own_second_shows_no_order(seconds: int, level: str, fraction: float) -> None:
    found = order(NOON + timedelta(seconds=fraction), submits=[NOON + timedelta(seconds=seconds)])

    assert level == found.level


def test_the_earliest_of_several_submits_decides() -> None:
    found = order(NOON, submits=[NOON + timedelta(hours=1), NOON - timedelta(seconds=1)])

    assert "failed" == found.level
    assert "job 2_0, the earliest of 2" in found.text


@pytest.mark.parametrize(
    ("stated", "level"),
    [
        ("2026-12-01T11:59:59Z", "failed"),
        ("2026-12-01T11:59:59.999Z", "failed"),
        ("2026-12-01T12:00:00Z", "not examined"),
        ("2026-12-01T12:00:00.400Z", "not examined"),
    ],
)
def test_a_run_s_own_time_refutes_only_where_it_is_earlier_for_sure(stated: str, level: str) -> None:
    found = order(NOON, stated=stated)

    assert level == found.level


def test_the_command_for_sacct_reaches_back_beyond_today(tmp_path: Any) -> None:
    (tmp_path / "jobs").write_text("JobID|JobName|Submit\n7_[0-1]|pc-x|1796126400\n")

    assert "-S now-365days" in SACCT
    assert [Submission("7_[0-1]", "pc-x", NOON)] == read_sacct(tmp_path / "jobs")
