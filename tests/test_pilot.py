"""The shipped ledgers are runs of this code: their smallest runs repeat, and nobody wrote a number by hand."""

import pytest

from forecast.content import content_path
from forecast.ledger import read_ledger
from forecast.records import Run
from runner.evaluation import PRIMARY
from runner.experiment import Outcome, run_experiment
from runner.study import load_study

STUDIES = ("glyphs-quick", "glyphs-pilot")
COUNTED = (
    "samples_planned",
    "samples_seen",
    "steps",
    "scenes",
    "unique_texts",
    "good_pairs",
    "bad_pairs",
    "tokens_unique",
    "tokens_processed",
    "tokens_padded",
    "flops",
)
LESS_THAN_SEED_NOISE = 0.002


def shipped(study: str) -> list[Run]:
    return read_ledger(content_path(f"runs/{study}.jsonl"))


def repeated(run: Run, seed: int) -> Outcome:
    return run_experiment(run.design.settings, seed=seed, threads=1, progress=lambda done, planned: None)


@pytest.mark.parametrize("study", STUDIES)
def test_a_ledger_holds_every_run_of_its_study_and_no_other(study):
    planned = {spec.run_id for spec in load_study(content_path(f"studies/{study}.toml")).job_specs()}
    runs = shipped(study)

    assert planned == {run.run_id for run in runs}
    assert {"finished"} == {run.status for run in runs}
    assert all(run.provenance.code_commit and not run.provenance.code_dirty for run in runs)


@pytest.mark.parametrize("study", STUDIES)
def test_the_grid_is_as_wide_as_promised(study):
    runs = shipped(study)
    shares = {run.design.settings["good_view_fraction"] for run in runs}
    sizes = {run.design.settings["n_samples"] for run in runs}
    seeds: dict[str, set[int]] = {}
    for run in runs:
        seeds.setdefault(run.design.hash, set()).add(run.seed)

    assert len(shares) >= 5
    assert {0.0, 1.0} <= shares
    assert len(sizes) >= 6
    assert max(sizes) / min(sizes) >= 10**1.5
    assert 3 * sum(len(s) >= 2 for s in seeds.values()) >= len(seeds)


@pytest.mark.parametrize("study", STUDIES)
def test_the_smallest_run_repeats(study):
    run = min(shipped(study), key=lambda r: (r.design.settings["n_samples"], -r.design.settings["good_view_fraction"]))
    outcome = repeated(run, run.seed)
    again = next(e for e in outcome.evaluations if e.metric.name == PRIMARY)

    assert {k: getattr(run.counters, k) for k in COUNTED} == {k: getattr(outcome.counters, k) for k in COUNTED}
    assert run.evaluation(PRIMARY).metric == again.metric
    assert run.evaluation(PRIMARY).value == pytest.approx(again.value, abs=LESS_THAN_SEED_NOISE)


def test_the_comparison_of_a_repeated_run_can_fail():
    run = next(r for r in shipped("glyphs-quick") if r.design.settings["n_samples"] == 4000)
    other = repeated(run, run.seed + 1)

    assert run.counters.unique_texts != other.counters.unique_texts
    assert run.evaluation(PRIMARY).hits != other.evaluations[0].hits
