"""Laws without a closed form: solved by Newton's method, differentiated through the equation that they solve."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from forecast.laws.law import Columns, Law, Parameter, Scale

__all__ = ["IMPLICIT", "SOLVERS", "log_sigmoid", "solve"]

Array = npt.NDArray[np.float64]


def log_sigmoid(x: Array) -> Array:
    """log s(x), s the logistic function."""
    return np.asarray(-np.logaddexp(0.0, -x))


def solve(alpha: Array, right: Array) -> tuple[Array, Array]:
    """z with log s(z) - alpha log s(-z) = right, s the logistic function, and the slope there.

    The left side rises in z with a slope between min(1, alpha) and max(1, alpha), so Newton's method from the
    asymptote cannot stray.
    """
    alpha, right = np.broadcast_arrays(alpha, right)
    z = np.where(right < (alpha - 1) * np.log(2), right, right / alpha)
    for _ in range(60):
        s = 0.5 * (1 + np.tanh(0.5 * z))
        step = (log_sigmoid(z) - alpha * log_sigmoid(-z) - right) / ((1 - s) + alpha * s)
        z = z - step
        if np.all(np.abs(step) <= 1e-13 * (1 + np.abs(z))):
            break
    s = 0.5 * (1 + np.tanh(0.5 * z))
    return np.asarray(z), np.asarray((1 - s) + alpha * s)


def _m4(
    columns: Columns, parameters: Mapping[str, Array], constants: Mapping[str, float]
) -> tuple[Array, dict[str, Array]]:
    """Value and gradient of M4. A parameter may be held, and is then a constant."""
    known = {name: np.asarray(value) for name, value in {**constants, **parameters}.items()}
    low, high, alpha = known["E"], known["e0"], known["alpha"]
    logarithm = np.log(columns["n"] / known["n0"])
    with np.errstate(all="ignore"):
        z, slope = solve(alpha, np.asarray(known["B"] - known["c"] * logarithm))
        s = 0.5 * (1 + np.tanh(0.5 * z))
        along = (high - low) * s * (1 - s) / slope
        value = low + (high - low) * s
        gradient = {"E": 1 - s, "e0": s, "alpha": along * log_sigmoid(-z), "B": along, "c": -along * logarithm}
    return np.asarray(value), gradient


def m4(scale: Scale) -> Law:
    """M4: sigmoid-like, from the value of chance e0 to the irreducible loss E."""
    low = max(scale.low, 1e-12 * scale.span)
    return Law(
        "m4",
        "(y - E)/(e0 - y)**alpha = exp(B)*(e0-E)**(1-alpha)*(n/n0)**(-c)",
        "Alabdulmohsin et al. (2022), M4, arXiv 2209.06640",
        ("n",),
        (
            Parameter("E", low * 1e-4, low, 0.2 * low, 0.95 * low, "log"),
            Parameter(
                "e0",
                scale.high,
                scale.high + 40 * scale.span,
                scale.high + 0.01 * scale.span,
                scale.high + 3 * scale.span,
            ),
            Parameter("alpha", 1e-2, 20.0, 0.1, 3.0, "log"),
            Parameter("B", -30.0, 60.0, -2.0, 4.0),
            Parameter("c", 1e-3, 8.0, 0.1, 1.5, "log"),
        ),
        {"n0": scale.middle("n")},
        "other",
        _m4,
    )


IMPLICIT: Mapping[str, Callable[[Scale], Law]] = {"m4": m4}
SOLVERS = {"m4": _m4}
