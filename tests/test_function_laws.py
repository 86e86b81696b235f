"""A law as a Python function: the same fit as its formula, an exact gradient, and no code run unasked."""

import numpy as np
import pytest
from worlds_of_runs import simulated_runs

from forecast.errors import ForecastError
from forecast.fitted import Fit
from forecast.fitting import fit
from forecast.laws import function
from forecast.laws.alignment import ALIGNMENT
from forecast.laws.function import FunctionSolver, code_hash, load_function, use_function
from forecast.laws.law import Scale
from forecast.ledger import append_runs
from forecast.prediction import predict
from forecast.records import Design, Target
from runner.cli import main

BOUNDS = {"A": (0.0, 1.0), "n50": (1.0, 1e9), "kappa": (1e-6, 1.0), "b": (0.01, 8.0)}
PLACE = [Target(target="t", design=Design(settings={"n_samples": 1e6, "good_view_fraction": 0.5}))]
SOURCE = """
def curve(n, g, *, A, n50, b, kappa, c):
    return c + (A - c) / (1 + (n50 / (n * (g + kappa * (1 - g)))) ** b)
"""


def curve(n, g, *, A, n50, b, kappa, c):
    return c + (A - c) / (1 + (n50 / (n * (g + kappa * (1 - g)))) ** b)


def folded(n, g, *, A, n50, b, kappa, c):
    return c + np.abs(A - c) / (1 + (n50 / (n * (g + kappa * (1 - g)))) ** b)


def real_only(n, g, *, A, n50, b, kappa, c):
    return c + np.heaviside(1.0, 1.0) * np.hypot(A - c, 0.0) / (1 + (n50 / (n * (g + kappa * (1 - g)))) ** b)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module `ownlaws` in the working folder, unknown to the process."""
    (tmp_path / "ownlaws.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(function, "_KNOWN", {})
    yield tmp_path
    import sys

    sys.modules.pop("ownlaws", None)


def fitted(law, **options) -> Fit:
    return fit(simulated_runs(), metric="mutual_knn", law=law, rng=np.random.default_rng(0), **options)


def test_a_function_is_fitted_and_predicted_as_the_law_of_the_same_form():
    own, ours = fitted(curve, bounds=BOUNDS), fitted("hill")
    points = [predict(f, PLACE, rng=np.random.default_rng(0))[0] for f in (own, ours)]

    assert ours.chosen.loss == pytest.approx(own.chosen.loss, rel=1e-3)
    assert {"A", "n50", "b", "kappa"} == {e.name for e in own.parameters}
    assert points[1].point == pytest.approx(points[0].point, rel=1e-2)
    assert points[1].quantiles["0.975"] == pytest.approx(points[0].quantiles["0.975"], rel=0.05)


@pytest.mark.parametrize(
    ("law", "exact", "close"), [(curve, True, 1e-12), (folded, False, 1e-6), (real_only, False, 1e-6)]
)
def test_the_gradient_is_the_analytic_one_by_complex_step_or_else_by_differences(law, exact, close):
    scale = Scale(0.03, 0.12, 0.033, 0.0, 1.0, True, {"n": (8e3, 5e5), "g": (0, 1)})
    hill = ALIGNMENT["hill"](scale)
    columns = {"n": np.geomspace(8e3, 5e5, 9), "g": np.linspace(0, 1, 9)}
    outer = np.array([[0.15, 1e5, 0.9, 0.1], [0.2, 3e5, 1.3, 0.5]])
    value, jacobian = hill.value_and_jacobian(columns, hill.inner(outer))
    solver = FunctionSolver(law, ("n", "g"))
    mine, gradient = solver(columns, {k: outer[:, i, None] for i, k in enumerate(hill.names)}, {"c": scale.floor})
    walked = [1.0, outer[:, 1, None], outer[:, 2, None], outer[:, 3, None]]

    assert exact == solver.exact
    assert value == pytest.approx(mine, rel=1e-13)
    for i, name in enumerate(hill.names):
        assert jacobian[..., i] == pytest.approx(
            gradient[name] * walked[i], rel=close, abs=close * np.abs(jacobian).max()
        )


def test_the_command_takes_module_and_function_from_the_working_folder(module, capsys, monkeypatch):
    append_runs(module / "runs.jsonl", simulated_runs())
    bounds = [f"--bounds={k}={low}:{high}" for k, (low, high) in BOUNDS.items()]
    with pytest.raises(SystemExit) as done:
        main(["fit", "runs.jsonl", "--metric", "mutual_knn", "--law", "ownlaws:curve", "--out", "fit.json", *bounds])
    shown = capsys.readouterr().out

    assert 0 == done.value.code
    assert "curve(n, g; A, n50, b, kappa, c)" in shown
    assert code_hash(load_function("ownlaws:curve")) == Fit.load("fit.json").chosen.code_hash


def test_a_file_alone_makes_no_code_run_and_changed_code_is_refused(module, monkeypatch):
    import sys

    fitted("ownlaws:curve", bounds=BOUNDS).save("fit.json")
    monkeypatch.setattr(function, "_KNOWN", {})
    sys.modules.pop("ownlaws")
    with pytest.raises(ForecastError, match="PLATOCAST_CODE=ownlaws:curve"):
        predict(Fit.load("fit.json"), PLACE, rng=np.random.default_rng(0))
    assert "ownlaws" not in sys.modules

    monkeypatch.setenv("PLATOCAST_CODE", "ownlaws:curve")
    assert 0 < predict(Fit.load("fit.json"), PLACE, rng=np.random.default_rng(0))[0].point < 1

    monkeypatch.setattr(function, "_KNOWN", {})
    sys.modules.pop("ownlaws")
    (module / "ownlaws.py").write_text(SOURCE.replace("c + (A", "c + 1e-9 + (A"))
    with pytest.raises(ForecastError, match="its source differs"):
        predict(Fit.load("fit.json"), PLACE, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("law", "match"),
    [
        ("absent_module:curve", "cannot be imported"),
        ("ownlaws:absent", "cannot be imported"),
        ("ownlaws:SIZE", "no function"),
        ("ownlaws:flat", "takes its columns first"),
        ("ownlaws:other", "has the setting.s. tokens"),
        ("ownlaws:broken", "failed: wrong"),
    ],
)
def test_what_is_no_law_is_refused(module, law, match):
    more = (
        "\nSIZE = 3\n\ndef flat(n, g, A):\n    return A\n\n\ndef other(tokens, *, A):\n    return A * tokens\n"
        "\n\ndef broken(n, *, A):\n    raise ValueError('wrong')\n"
    )
    (module / "ownlaws.py").write_text(SOURCE + more)

    with pytest.raises(ForecastError, match=match):
        fitted(law)


def test_bounds_of_no_parameter_are_refused():
    with pytest.raises(ForecastError, match="'Q', which is no parameter"):
        fitted(use_function(curve), bounds={"Q": (0.0, 1.0)})
