"""Laws without a closed form: solved by Newton's method, differentiated through the equation that they solve."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from forecast.laws.law import Columns, Law, Parameter, Scale

__all__ = ["IMPLICIT", "SOLVERS"]

Array = npt.NDArray[np.float64]


def _log_sigmoid(x: Array) -> Array:
    return np.asarray(-np.logaddexp(0.0, -x))


def _solve(alpha: Array, right: Array) -> tuple[Array, Array]:
    """z with log s(z) - alpha log s(-z) = right, s the logistic function, and the slope there.

    The left side rises in z with a slope between min(1, alpha) and max(1, alpha), so Newton's method from the
    asymptote cannot stray.
    """
    alpha, right = np.broadcast_arrays(alpha, right)
    z = np.where(right < (alpha - 1) * np.log(2), right, right / alpha)
    for _ in range(60):
        s = 0.5 * (1 + np.tanh(0.5 * z))
        step = (_log_sigmoid(z) - alpha * _log_sigmoid(-z) - right) / ((1 - s) + alpha * s)
        z = z - step
        if np.all(np.abs(step) <= 1e-13 * (1 + np.abs(z))):
            break
    s = 0.5 * (1 + np.tanh(0.5 * z))
    return np.asarray(z), np.asarray((1 - s) + alpha * s)


def _m4(columns: Columns, parameters: Mapping[str, Array], constants: Mapping[str, float]) -> tuple[Array, list[Array]]:
    """Value and gradient of M4 by E, e0, alpha, B, c."""
    low, high, alpha = parameters["E"], parameters["e0"], parameters["alpha"]
    logarithm = np.log(columns["n"] / constants["n0"])
    with np.errstate(all="ignore"):
        z, slope = _solve(alpha, parameters["B"] - parameters["c"] * logarithm)
        s = 0.5 * (1 + np.tanh(0.5 * z))
        along = (high - low) * s * (1 - s) / slope
        value = low + (high - low) * s
        gradient = [1 - s, s, along * _log_sigmoid(-z), along, -along * logarithm]
    return value, gradient


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
