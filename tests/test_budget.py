"""What runs cost, which are chosen, and where they may go."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forecast.errors import ForecastError
from runner.budget import Pace, gpu_hours_used, pace_of, refuse_beyond_budget
from runner.choosing import choose
from runner.launch import Placing, deal
from runner.presets import ExecutorChoice, Preset
from runner.spec import JobSpec


def spec(size: int, seed: int = 0, **settings: object) -> JobSpec:
    content = {"run_id": f"r{size}-{seed}", "study": "s", "design": {"settings": {"n_samples": size, **settings}}}
    return JobSpec.model_validate(content | {"seed": seed})


def test_the_pace_is_the_median_over_finished_runs_that_counted_their_time() -> None:
    runs = []
    for size, wall in ((10, 1.0), (10, 2.0), (10, 9.0), (10, None)):
        run = spec(size).failed("-").model_dump() | {"status": "finished", "failure": None}
        runs.append(type(spec(size).failed("-")).model_validate(run | {"counters": {"wall_s": wall}}))

    assert Pace(0.2, 3) == pace_of([*runs, spec(10).failed("no number")])
    assert pace_of([]) is None


def test_gpu_hours_count_every_attempt_and_none_without_gpus(tmp_path: Path) -> None:
    times = {"started": "2026-01-01T00:00:00.000Z", "ended": "2026-01-01T00:30:00.000Z", "status": "failed"}
    for number, gpus in enumerate((4, 2, 0), 1):
        path = tmp_path / f"runs/a/attempts/{number:03d}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(times | {"gpus": gpus}))

    assert 3.0 == gpu_hours_used(tmp_path)


@pytest.mark.parametrize(("pace", "fits"), [(Pace(1.0, 5), True), (Pace(200.0, 5), False), (None, False)])
def test_a_launch_beyond_the_budget_is_refused(tmp_path: Path, pace: Pace | None, fits: bool) -> None:
    choice, preset = ExecutorChoice(budget_gpu_hours=1.0), Preset(gpus_per_node=2, time_min=60)
    words = {"choice": choice, "preset": preset, "pace": pace}
    if fits:
        refuse_beyond_budget([spec(10)], tmp_path, **words)  # type: ignore[arg-type]
        return
    with pytest.raises(ForecastError, match="budget_gpu_hours is 1"):
        refuse_beyond_budget([spec(10)], tmp_path, **words)  # type: ignore[arg-type]


def test_a_budget_in_gpu_hours_does_not_concern_cpu_jobs(tmp_path: Path) -> None:
    choice = ExecutorChoice(budget_gpu_hours=0.001)
    refuse_beyond_budget([spec(10)] * 100, tmp_path, choice=choice, preset=Preset(), pace=None)

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        (["n_samples=1e1"], ["r10-0", "r10-1"]),
        (["n_samples=10", "seed=1"], ["r10-1"]),
        (["kind=A"], ["r20-0"]),
        (["r20-0"], ["r20-0"]),
    ],
)
def test_runs_are_chosen_by_setting_seed_or_id(only: list[str], expected: list[str]) -> None:
    specs = [spec(10), spec(10, 1), spec(20, kind="a")]

    assert expected == [one.run_id for one in choose(specs, only, None)]


@pytest.mark.parametrize(
    ("word", "message"),
    [("n_sample=1", "did you mean 'n_samples'"), ("n_samples=x", "is a number"), ("seed=9", "no run matches")],
)
def test_a_choice_of_nothing_is_refused(word: str, message: str) -> None:
    with pytest.raises(ForecastError, match=message):
        choose([spec(10)], [word], None)


def test_a_shuffled_order_is_the_seed_s_and_kept() -> None:
    specs = [spec(size) for size in range(1, 9)]
    order = choose(specs, [], 7)
    (jobs,) = deal(order, Placing(ExecutorChoice(), Preset(kind="local"), keep_order=True), {})

    assert order == choose(specs, [], 7) == list(jobs)
    assert specs != order
    assert specs == sorted(order, key=lambda one: one.size)


def test_a_time_limit_under_the_signal_and_a_minute_is_refused() -> None:
    with pytest.raises(ValueError, match="must be more than signal_delay_s"):
        Preset(time_min=2, signal_delay_s=90)

    assert 3 == Preset(time_min=3, signal_delay_s=90).time_min
