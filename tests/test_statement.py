"""The registration's record refuses what would leave room."""

import copy

import pytest
from registration_cases import registered, statement, statement_body, target_body

from forecast.errors import CheckFailed, ForecastError
from forecast.records import Design
from prereg.registering import body_of
from prereg.statement import Registration, find_registration


def broken(**changes):
    body = statement_body()
    for path, value in changes.items():
        place = body
        *parents, last = path.split("__")
        for name in parents:
            place = place[int(name)] if isinstance(place, list) else place[name]
        if value is KeyError:
            del place[last]
        else:
            place[last] = value
    return body


def test_a_registration_reads_back_from_its_signed_file(tmp_path):
    registration, _, _ = registered(tmp_path)

    assert statement() == registration.statement
    assert registration == find_registration(registration.signed.path)
    assert registration == find_registration(registration.digest[:12], log=registration.signed.path.parent)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": []}, "at least 1"),
        ({"targets__0__target": "T 1"}, "pattern"),
        ({"targets__0__target": "t-seed-4"}, "no seed"),
        ({"targets__0__design_hash": "00" * 32}, "design_hash"),
        ({"targets__0__quantiles__0.025": "nan"}, "finite decimal"),
        ({"targets__0__quantiles__0.025": "0.9"}, "must not decrease"),
        ({"targets__0__quantiles__0.5": KeyError}, "quantile levels"),
        ({"targets__0__point": float("nan")}, "finite"),
        ({f"targets__{i}__replicates": 1 for i in range(9)}, "2 targets with at least 2 replicates"),
        ({"targets__0__quantity": "mean of 0"}, "pattern"),
        ({"targets__0__curve_factor": [0.1, 0.2]}, "one length"),
        ({"noise__sigma": 0.0}, "greater than 0"),
        ({"baselines__mean__t000": KeyError}, "exactly the registered targets"),
        ({"rules__deadline": "2026-02-30"}, "day"),
        ({"rules__primary__test": "other"}, "single runs"),
        ({"launch__job_name": "pc-{target}"}, "digest16"),
        ({"access__level": "some"}, "pilot"),
        ({"extra": 1}, "Extra"),
        ({"seed_rule": "any"}, "pattern"),
    ],
)
def test_what_leaves_room_is_refused(changes, message):
    assert Registration.model_validate(statement_body())
    with pytest.raises(ValueError, match=message):
        Registration.model_validate(broken(**changes))


def test_one_design_is_one_target():
    body = statement_body()
    twin = copy.deepcopy(body["targets"][0]) | {"target": "twin"}
    body["targets"].append(twin)
    body["baselines"]["mean"]["twin"] = 0.0

    with pytest.raises(ValueError, match="two targets have one design"):
        Registration.model_validate(body)


def test_a_seed_in_a_design_is_refused():
    body = statement_body()
    claim = target_body("t", 0.3, replicates=3)
    claim["design"]["settings"]["training.seed"] = 4
    claim["design_hash"] = Design(settings=claim["design"]["settings"]).hash
    body["targets"] = [claim]

    with pytest.raises(ValueError, match="no seed"):
        Registration.model_validate(body)


def test_the_job_name_holds_the_digest():
    name = statement().launch.name("0123456789abcdef" * 4, "{replicate}", 3)

    assert name == "pc-0123456789abcdef-{replicate}-3"


def test_an_entry_of_another_kind_is_no_registration(tmp_path):
    registration, log, _ = registered(tmp_path)

    assert body_of(registration.statement) == dict(registration.signed.body)
    with pytest.raises(CheckFailed, match="not a registration"):
        find_registration(log / "0001-key.json")
    with pytest.raises(ForecastError, match="names 0 entries"):
        find_registration("7", log=log)


@pytest.mark.parametrize(("setting", "is_seed"), [("seed", True), ("init.seed", True), ("evaluation.seed", False)])
def test_a_runs_seed_is_no_setting_of_a_target_but_the_draw_of_test_items_is(setting, is_seed):
    from prereg.statement import _is_run_seed

    assert is_seed == _is_run_seed(setting)
