"""A study file: designs, seeds, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forecast.errors import ForecastError
from runner.cli import main
from runner.study import Study, load_study

PILOT = """
name = "glyphs-pilot"
[design]
world = "glyphs"
encoder = { width = 64, layers = 2 }
[grid]
good_view_fraction = [0.0, 0.25, 1.0]
n_samples = [8000, 1.6e4]
[seeds]
default = [0]
[[seeds.more]]
where = { n_samples = [8000] }
seeds = [0, 1, 2]
[replicates]
default = 3
"""


def study(tmp_path: Path, text: str) -> Study:
    path = tmp_path / "study.toml"
    path.write_text(text if "entry" in text else f'entry = "toy:run"\n{text}')
    return load_study(path)


def test_a_grid_is_the_product_of_its_values_with_flat_names(tmp_path: Path) -> None:
    designs = study(tmp_path, PILOT).all_designs()

    assert len(designs) == 6
    assert dict(designs[0].settings) == {
        "world": "glyphs",
        "encoder.width": 64,
        "encoder.layers": 2,
        "good_view_fraction": 0.0,
        "n_samples": 8000,
    }
    assert int is type(designs[1].settings["n_samples"])


def test_seeds_of_matching_designs_are_joined_without_doubles(tmp_path: Path) -> None:
    specs = study(tmp_path, PILOT).job_specs(threads=2)
    seeds: dict[int, list[int]] = {}
    for spec in specs:
        seeds.setdefault(int(spec.size), []).append(spec.seed)

    assert seeds == {8000: [0, 1, 2] * 3, 16000: [0] * 3}
    assert {2} == {spec.threads for spec in specs}
    assert 12 == len({spec.run_id for spec in specs}) == len({spec.hash for spec in specs})


def test_a_list_of_designs_follows_the_grid(tmp_path: Path) -> None:
    text = 'name = "a"\n[design]\nworld = "w"\n[grid]\nn_samples = [1]\n[[designs]]\nn_samples = 2\nworld = "v"\n'

    assert [(d.settings["world"], d.settings["n_samples"]) for d in study(tmp_path, text).all_designs()] == [
        ("w", 1),
        ("v", 2),
    ]


def test_target_ids_come_from_what_varies(tmp_path: Path) -> None:
    targets = study(tmp_path, PILOT).targets()

    assert [target.target for target in targets] == [
        "g000-n8000",
        "g000-n16000",
        "g025-n8000",
        "g025-n16000",
        "g100-n8000",
        "g100-n16000",
    ]
    assert {3} == {target.replicates for target in targets}


def test_the_last_rule_that_matches_says_a_targets_replicates(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(
        """
name = "a"
entry = "own:train"
[grid]
n_samples = [1000, 4000, 16000]
[replicates]
default = 2
[[replicates.more]]
where = { n_samples = [4000, 16000] }
replicates = 3
[[replicates.more]]
where = { n_samples = 16000 }
replicates = 5
"""
    )

    targets = load_study(study).targets()

    assert [2, 3, 5] == [target.replicates for target in targets]


def test_a_rule_of_no_replicates_is_refused(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text('name = "a"\n[grid]\nn_samples = [1]\n[[replicates.more]]\nwhere = {}\nreplicates = 0\n')

    with pytest.raises(ForecastError, match=r"replicates\.more\.0\.replicates"):
        load_study(study)


@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        ("good_view_fraction = [0.125, 0.5]", ["g0p125", "g050"]),
        ("rate = [0.001, 1e-5]", ["rate0p001", "rate1em05"]),
        ("objective = ['jepa', 'next token']", ["jepa", "next-token"]),
        ("encoder.wide = [true, false]", ["wide-yes", "wide-no"]),
    ],
)
def test_target_ids_of_other_kinds_of_values(tmp_path: Path, grid: str, expected: list[str]) -> None:
    targets = study(tmp_path, f'name = "a"\n[grid]\n{grid}\n').targets()

    assert expected == [target.target for target in targets]


def test_equal_target_ids_are_told_apart_by_the_design_hash(tmp_path: Path) -> None:
    targets = study(tmp_path, 'name = "a"\n[grid]\nobjective = ["a b", "a-b"]\n').targets()

    assert [f"a-b-{target.design.hash[:12]}" for target in targets] == [target.target for target in targets]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('name = "a"\n[desing]\nx = 1', ["desing", "unknown key", "'design'"]),
        ('name = "a"\n[design]\nx = 1\n[seeds]\ndefualt = [1]', ["seeds.defualt", "'default'"]),
        ('name = "a"\n[design]\nx = 1\n[[seeds.more]]\nwhere = {}\nsead = [1]', ["seeds.more.0.sead", "'seeds'"]),
        ('name = "a"\n[design]\nx = 1\n[presets.gpu]\npartitoin = "g"', ["presets.gpu.partitoin", "'partition'"]),
        ('name = "a"\n[design]\nx = 1\n[executor]\npreset = "gpu"', ["'gpu'", "valid are debug, local"]),
        ('name = "a"\n[design]\ngood_view_fraction = 1.5', ["good_view_fraction", "[0, 1]", "1.5"]),
        ('name = "a"\n[design]\nn_samples = 0', ["n_samples", "> 0"]),
        ('name = "a"\n[design]\nx = nan', ["design.x", "finite number"]),
        ('name = "a"\n[design]\nx = [1, 2]', ["design.x", "one value", "[grid]"]),
        ('name = "a"\n[grid]\nx = 1', ["grid.x", "list", "1"]),
        ('name = "a"\n[grid]\nx = []', ["grid.x", "at least one"]),
        ('name = "a"\n[grid]\nx = [1, 1]', ["design 2 repeats design 1"]),
        ('name = "a"', ["no design"]),
        ('name = "a"\n[design]\nx = 1\n[seeds]\ndefault = []', ["no seed"]),
        ('name = "a"\n[design]\n"x.y" = 1\nx = { y = 2 }', ["x.y", "twice"]),
        ('name = "a b"\n[design]\nx = 1', ["name", "a b"]),
        ("name = ", ["not a TOML file"]),
        ('name = "a"\nentry = "nonsense"\n[design]\nx = 1', ["entry", "nonsense"]),
    ],
)
def test_a_bad_study_is_refused_with_the_key_and_the_fix(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(ForecastError) as refused:
        study(tmp_path, text).job_specs()

    for word in words:
        assert word in str(refused.value)


def test_the_command_writes_targets_that_can_be_read_back(tmp_path: Path) -> None:
    study(tmp_path, PILOT)
    with pytest.raises(SystemExit) as ended:
        main(["targets", str(tmp_path / "study.toml"), "--out", str(tmp_path / "targets.json"), "--json"])

    targets = json.loads((tmp_path / "targets.json").read_text())
    assert ended.value.code == 0
    assert targets[3]["target"] == "g025-n16000"
    assert targets[3]["design"]["settings"]["n_samples"] == 16000


def test_our_own_training_s_designs_are_completed_with_its_defaults(tmp_path: Path) -> None:
    text = (
        'name = "a"\nentry = "runner.experiment:run_experiment"\n[design]\ngood_view_fraction = 0.5\nn_samples = 1e4\n'
    )
    (design,) = study(tmp_path, text).all_designs()

    assert {"good_view_fraction", "n_samples", "encoder.width", "world.hash"} <= set(design.settings)


def test_a_misspelt_setting_of_our_own_training_is_refused_at_once(tmp_path: Path) -> None:
    text = 'name = "a"\nentry = "runner.experiment:run_experiment"\n[design]\ngood_view_fraction = 0.5\nn_sample = 1\n'
    with pytest.raises(ForecastError, match=r"study a: .*n_sample"):
        study(tmp_path, text).all_designs()
