"""What is concluded from SLURM's words, without a SLURM."""

from __future__ import annotations

import pytest

from runner.slurm_queue import Patient, QueuedJob, SlurmAway, verdict


@pytest.mark.parametrize(
    ("state", "listed", "expected"),
    [
        ("PENDING", True, "waiting"),
        ("RUNNING", True, "running"),
        ("SUSPENDED", True, "running"),
        ("REQUEUED", True, "waiting"),
        ("REQUEUE_HOLD", True, "waiting"),
        ("NODE_FAIL", True, "waiting"),
        ("PREEMPTED", True, "waiting"),
        ("NODE_FAIL", False, "ended"),
        ("PREEMPTED", False, "ended"),
        ("COMPLETED", True, "ended"),
        ("CANCELLED by 0", False, "ended"),
        ("TIMEOUT", False, "ended"),
        ("RUNNING", False, "ended"),
    ],
)
def test_a_state_that_slurm_may_follow_by_a_requeue_is_not_final_while_it_lists_the_job(
    state: str, listed: bool, expected: str
) -> None:
    assert expected == verdict(QueuedJob("7_0", state, listed=listed), submitted_s_ago=1000)


def test_a_job_that_nobody_knows_has_ended_unless_it_was_just_submitted() -> None:
    assert ("unknown", "ended") == (verdict(None, submitted_s_ago=5), verdict(None, submitted_s_ago=100))


def test_slurm_is_asked_once_for_answers_that_are_still_fresh() -> None:
    asked = []
    patient = Patient(lambda tasks: asked.append(tuple(tasks)) or {})  # type: ignore[func-returns-value]
    for tasks in ([("a", 0), ("a", 1)], [("a", 0)], [("b", 0)]):
        patient(tasks)

    assert [(("a", 0), ("a", 1)), (("b", 0),)] == asked


def test_a_controller_that_is_away_is_not_asked_again_at_once() -> None:
    asked = []

    def away(tasks: object) -> dict[tuple[str, int], QueuedJob]:
        asked.append(tasks)
        raise SlurmAway("away")

    patient = Patient(away)
    for _ in range(3):
        with pytest.raises(SlurmAway):
            patient([("a", 0)])

    assert 1 == len(asked)
