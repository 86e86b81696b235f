"""More laws of alignment in effective samples: M4, bounded rational, repeated samples, one break."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from forecast.laws.alignment import (
    EFFECTIVE,
    amount_of,
    floor_of,
    kappa_of,
    law_of,
    level_of,
    rate_of,
    size_of,
)
from forecast.laws.implicit import log_sigmoid, solve
from forecast.laws.law import Columns, Law, Parameter, Scale

__all__ = ["AVERAGED_ONLY", "EFFECTIVE_LAWS", "EFFECTIVE_SOLVERS"]

Array = npt.NDArray[np.float64]

M_FAMILY = "Alabdulmohsin et al. (2022), arXiv 2209.06640"
REPEATED = "min(n, U)*(1 - r*expm1((1 - n/min(n, U))/r))"


def _rising_m4(
    columns: Columns, parameters: Mapping[str, Array], constants: Mapping[str, float]
) -> tuple[Array, dict[str, Array]]:
    """Value and gradient: with s = (y-c)/(A-c), log(1-s) - alpha log s = (alpha-1) log 2 + b log(n50/n_eff)."""
    known = {name: np.asarray(value) for name, value in {**constants, **parameters}.items()}
    top, bottom, alpha, rate, kappa = known["A"], known["c"], known["alpha"], known["b"], known["kappa"]
    worth = columns["g"] + kappa * (1 - columns["g"])
    behind = np.log(known["n50"]) - np.log(columns["n"] * worth)
    with np.errstate(all="ignore"):
        z, slope = solve(alpha, np.asarray((alpha - 1) * np.log(2) + rate * behind))
        share = 0.5 * (1 - np.tanh(0.5 * z))
        along = -(top - bottom) * share * (1 - share) / slope
    gradient = {
        "A": share,
        "n50": along * rate / known["n50"],
        "b": along * behind,
        "alpha": along * (np.log(2) + log_sigmoid(-z)),
        "kappa": -along * rate * (1 - columns["g"]) / worth,
    }
    return np.asarray(bottom + (top - bottom) * share), gradient


def m4_effective(scale: Scale) -> Law:
    """L6: M4, a curve in effective samples whose approaches to chance and to the ceiling differ; alpha 1 is Hill's."""
    return Law(
        "m4-effective",
        "(1-s)/s**alpha = 2**(alpha-1)*(n50/(n*(g + kappa*(1-g))))**b, y = c + (A-c)*s",
        f"{M_FAMILY}, M4, as a rise from chance in effective samples",
        ("n", "g"),
        (
            level_of("A", scale),
            size_of("n50", scale),
            rate_of("b"),
            Parameter("alpha", 0.02, 50.0, 0.3, 3.0, "log"),
            kappa_of(),
        ),
        {"c": scale.floor},
        "shift",
        _rising_m4,
    )


def bounded_rational(scale: Scale) -> Law:
    """L6: M3, a power of a bounded rational function of the effective samples, short of the metric's upper end u."""
    law = law_of(
        "bounded-rational",
        f"max(c, u - B*(n0/({EFFECTIVE}) + q)**beta)",
        "shift",
        f"{M_FAMILY}, M3: beta (1/x + gamma)^c, of what is missing to the metric's upper end",
        scale,
        Parameter("B", 0.0, 4.0 * (scale.top - scale.floor), 0.2 * (scale.top - scale.high), scale.top - scale.floor),
        Parameter("q", 1e-6, 1e3, 1e-2, 1.0, "log"),
        rate_of("beta", 1e-3),
        kappa_of(),
    )
    return law.with_constants({"u": scale.top})


def repeated_samples(scale: Scale) -> Law:
    """L7: Hill curve in effective samples of which at most U are unique; a repeat is worth less each time."""
    return law_of(
        "repeated-samples",
        f"f + (A-f)*sigmoid(b*(log({REPEATED}*(g + kappa*(1-g))) - log(n50)))",
        "shift",
        "Muennighoff et al. (2023), eq. 5, arXiv 2305.16264: U + U r (1-exp(-(n/U-1)/r)) samples, in a Hill curve",
        scale,
        floor_of(scale),
        level_of("A", scale),
        size_of("n50", scale),
        rate_of("b"),
        kappa_of(),
        Parameter("r", 1e-2, 1e4, 1.0, 50.0, "log"),
    )


def broken_effective(scale: Scale) -> Law:
    """L8: a power of effective samples with one smooth break. Seven parameters: averaged, never chosen."""
    low, high = scale.ranges["n"]
    return law_of(
        "broken-effective",
        f"max(c, a_inf - B*exp(-c0*log({EFFECTIVE}/n0) - c1*f1*logaddexp(0, log({EFFECTIVE}/d1)/f1)))",
        "shift",
        "Caballero et al. (2023), BNSL with one break, arXiv 2210.14891, in effective samples",
        scale,
        level_of("a_inf", scale),
        amount_of("B", scale),
        Parameter("c0", 1e-4, 4.0, 0.01, 1.0, "log"),
        Parameter("c1", 1e-4, 8.0, 0.05, 3.0, "log"),
        Parameter("d1", low * 0.1, high * 10, low, high, "log"),
        Parameter("f1", 2e-2, 4.0, 0.05, 1.0, "log"),
        kappa_of(),
    )


EFFECTIVE_LAWS: Mapping[str, Callable[[Scale], Law]] = {
    "m4-effective": m4_effective,
    "bounded-rational": bounded_rational,
    "repeated-samples": repeated_samples,
    "broken-effective": broken_effective,
}
EFFECTIVE_SOLVERS = {"m4-effective": _rising_m4}
AVERAGED_ONLY = frozenset({"broken-effective"})
