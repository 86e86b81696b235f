"""General scaling laws in model size N, tokens D, samples n, unique tokens U, share p: formulas, bounds, sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from forecast.laws.expression import names_in
from forecast.laws.law import Law, Parameter, Scale

__all__ = ["GENERAL"]

CHINCHILLA = "Hoffmann et al. (2022), approach 3, arXiv 2203.15556"


def _positive(name: str, low: float, high: float, start: tuple[float, float]) -> Parameter:
    return Parameter(name, low, high, *start, "log")


def _amount(name: str, scale: Scale, factor: float = 1e3) -> Parameter:
    """A positive height in the outcome's unit."""
    return _positive(name, scale.span * 1e-6, scale.span * factor, (0.1 * scale.span, 3 * scale.span))


def _bottom(name: str, scale: Scale) -> Parameter:
    """The irreducible loss: positive, below the lowest outcome."""
    low = max(scale.low, 1e-12 * scale.span)
    return _positive(name, low * 1e-4, low, (0.2 * low, 0.95 * low))


def _power(name: str = "beta", high: float = 8.0) -> Parameter:
    return _positive(name, 1e-3, high, (0.1, 1.5))


def _law(name: str, formula: str, source: str, scale: Scale, *parameters: Parameter) -> Law:
    mine = {p.name for p in parameters}
    used = names_in(formula)
    predictors = tuple(k for k in scale.ranges if k in used)
    known = {"n0": "n", "N0": "N", "D0": "D"}
    constants = {name: scale.middle(known[name]) for name in used if name in known and name not in mine}
    return Law(name, formula, source, predictors, parameters, constants, "other")


def chinchilla(scale: Scale) -> Law:
    """Loss in parameters N and tokens D, written so that no power overflows."""
    return _law(
        "chinchilla",
        "exp(logaddexp(logaddexp(log(A)-alpha*log(N), log(B)-beta*log(D)), log(E)))",
        CHINCHILLA,
        scale,
        _positive("A", 1e-6, 1e15, (1.0, 1e10)),
        _positive("B", 1e-6, 1e15, (1.0, 1e10)),
        _bottom("E", scale),
        _power("alpha", 4.0),
        _power("beta", 4.0),
    )


def data_constrained(scale: Scale) -> Law:
    """Chinchilla with repeated data: D tokens of which at most U are unique; returns decay with the epochs.

    The decay is written with expm1: as 1 - exp(-x) it is flat in floating point and has a fake optimum at once.
    """
    unique, best = "min(D, U)", "min(N, min(D, U)*(A/B)**(1/alpha))"
    tokens = f"log({unique}) + log1p(0-rd*expm1((1-D/{unique})/rd))"
    size = f"log({best}) + log1p(0-rn*expm1((1-N/({best}))/rn))"
    return _law(
        "data-constrained",
        f"exp(logaddexp(logaddexp(log(A)-alpha*({size}), log(B)-alpha*({tokens})), log(E)))",
        "Muennighoff et al. (2023), eq. 5 and 6 with alpha = beta, arXiv 2305.16264",
        scale,
        _positive("A", 1e-6, 1e15, (1.0, 1e5)),
        _positive("B", 1e-6, 1e15, (1.0, 1e5)),
        _bottom("E", scale),
        _power("alpha", 4.0),
        _positive("rd", 1e-2, 1e6, (1.0, 50.0)),
        _positive("rn", 1e-2, 1e6, (1.0, 50.0)),
    )


def power(scale: Scale) -> Law:
    """A falling power, to 0."""
    return _law(
        "power",
        "B*(n/n0)**(-beta)",
        "Hestness et al. (2017), M1 of arXiv 2209.06640",
        scale,
        _amount("B", scale, 1e4),
        _power(),
    )


def power_bottom(scale: Scale) -> Law:
    """A falling power to an irreducible loss (M2)."""
    return _law(
        "saturating-power",
        "E + B*(n/n0)**(-beta)",
        "M2 of Alabdulmohsin et al. (2022), arXiv 2209.06640",
        scale,
        _bottom("E", scale),
        _amount("B", scale),
        _power(),
    )


def power_shifted(scale: Scale) -> Law:
    """A falling power with a shift in n."""
    low, high = scale.ranges["n"]
    return _law(
        "shifted-power",
        "E + B*((n+n1)/(n0+n1))**(-beta)",
        "saturating power with a shift in n",
        scale,
        _bottom("E", scale),
        _amount("B", scale),
        _power(),
        _positive("n1", low * 1e-4, high * 1e2, (low * 0.01, high)),
    )


def power_bounded(scale: Scale) -> Law:
    """A falling power of a bounded rational function of n (M3): it levels off at B q^beta."""
    return _law(
        "bounded-power",
        "B*(n0/n + q)**beta",
        "M3 of Alabdulmohsin et al. (2022), arXiv 2209.06640",
        scale,
        _amount("B", scale, 1e4),
        _positive("q", 1e-9, 1e3, (1e-3, 1.0)),
        _power(),
    )


def power_broken(scale: Scale) -> Law:
    """A smoothly broken power with one break."""
    low, high = scale.ranges["n"]
    return _law(
        "broken-power",
        "E + B*(n/n0)**(-c0)*(1 + (n/d1)**(1/f1))**(-c1*f1)",
        "Caballero et al. (2023), BNSL with one break, arXiv 2210.14891",
        scale,
        _bottom("E", scale),
        _amount("B", scale),
        _positive("c0", 1e-4, 4.0, (0.01, 1.0)),
        _positive("c1", 1e-4, 12.0, (0.1, 6.0)),
        _positive("d1", low * 0.1, high * 10, (low, high)),
        _positive("f1", 1e-2, 4.0, (0.05, 0.6)),
    )


def mixing(scale: Scale) -> Law:
    """Loss on one domain against the share p of that domain in training: exponential."""
    return _law(
        "two-domain-mixing",
        "c + exp(k*p + b)",
        "Ye et al. (2024), eq. 1, arXiv 2403.16952",
        scale,
        Parameter("c", -10 * abs(scale.high), scale.high, scale.low - scale.span, scale.low),
        Parameter("k", -50.0, 50.0, -8.0, 3.0),
        Parameter("b", -50.0, 50.0, -5.0, 2.0),
    )


GENERAL: Mapping[str, Callable[[Scale], Law]] = {
    "chinchilla": chinchilla,
    "data-constrained": data_constrained,
    "power": power,
    "saturating-power": power_bottom,
    "shifted-power": power_shifted,
    "bounded-power": power_bounded,
    "broken-power": power_broken,
    "two-domain-mixing": mixing,
}
