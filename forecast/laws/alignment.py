"""Laws of alignment in samples n and good-view fraction g: formulas, bounds and sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from forecast.laws.expression import names_in
from forecast.laws.law import Law, Parameter, Scale

__all__ = [
    "ALIGNMENT",
    "EFFECTIVE",
    "NULLS",
    "SIZE_ONLY",
    "amount_of",
    "floor_of",
    "kappa_of",
    "law_of",
    "level_of",
    "rate_of",
    "shift_and_ceiling",
    "size_of",
]

PAPER = "Balestriero & LeCun (2026), arXiv 2610.39302"
EFFECTIVE = "n*(g + kappa*(1-g))"
EFFECTIVE_CURVED = "n*(kappa + (1-kappa)*g**gamma)"
CEILING = "(a0 + (a1-a0)*(1-(1-g)**eta))"


def level_of(name: str, scale: Scale) -> Parameter:
    """A ceiling: between the lowest outcome and the metric's top."""
    return Parameter(name, scale.floor, scale.top, scale.high, min(scale.top, scale.high + 2 * scale.span))


def floor_of(scale: Scale) -> Parameter:
    """Where the curve starts: at chance or above, at most at the highest outcome."""
    low = scale.floor - (0.0 if scale.chance is not None else scale.span)
    return Parameter("f", low, scale.high, scale.floor, scale.low)


def amount_of(name: str, scale: Scale) -> Parameter:
    """A non-negative height in metric units."""
    return Parameter(name, 0.0, 40.0 * scale.span, 0.1 * scale.span, 2.0 * scale.span)


def rate_of(name: str, low: float = 0.01, high: float = 8.0) -> Parameter:
    """An exponent."""
    return Parameter(name, low, high, 0.1, 2.0, "log")


def kappa_of() -> Parameter:
    """What a bad pair counts of a good one."""
    return Parameter("kappa", 1e-6, 1.0, 0.01, 0.9, "log")


def size_of(name: str, scale: Scale) -> Parameter:
    """A number of samples: within a factor 10,000 of the data."""
    low, high = scale.ranges["n"]
    return Parameter(name, low / 1e4, high * 1e4, low, high * 10, "log")


def _constants(scale: Scale) -> dict[str, float]:
    """What a law's formula may use without fitting it: chance c, and a middle size n0."""
    return {"c": scale.floor, "n0": scale.middle("n")}


def law_of(name: str, formula: str, family: str, source: str, scale: Scale, *parameters: Parameter) -> Law:
    """A law in n, g and, where its formula names it, U."""
    used = names_in(formula)
    constants = {k: v for k, v in _constants(scale).items() if k in used}
    predictors = tuple(k for k in ("n", "g", "U") if k in used)
    return Law(name, formula, source, predictors, parameters, constants, family)


def effective_samples(scale: Scale) -> Law:
    """L1: a power of the effective samples; a bad pair counts kappa of a good one."""
    return law_of(
        "effective-samples",
        f"max(c, a_inf - B*({EFFECTIVE}/n0)**(-beta))",
        "shift",
        f"{PAPER}; saturating power in effective samples",
        scale,
        level_of("a_inf", scale),
        amount_of("B", scale),
        rate_of("beta"),
        kappa_of(),
    )


def effective_samples_curved(scale: Scale) -> Law:
    """L2: effective samples with a curved exchange between bad and good pairs."""
    return law_of(
        "effective-samples-curved",
        f"max(c, a_inf - B*({EFFECTIVE_CURVED}/n0)**(-beta))",
        "shift",
        f"{PAPER}; n_eff = n (kappa + (1-kappa) g^gamma)",
        scale,
        level_of("a_inf", scale),
        amount_of("B", scale),
        rate_of("beta"),
        kappa_of(),
        rate_of("gamma", 0.05, 20.0),
    )


def effective_samples_shifted(scale: Scale) -> Law:
    """L1 with a shifted power, which starts at chance where there are no effective samples."""
    return law_of(
        "effective-samples-shifted",
        f"c + (a_inf-c)*(1-(1 + {EFFECTIVE}/n1)**(-beta))",
        "shift",
        f"{PAPER}; power with a shift in the effective samples",
        scale,
        level_of("a_inf", scale),
        size_of("n1", scale),
        rate_of("beta"),
        kappa_of(),
    )


def ceiling(scale: Scale) -> Law:
    """L3: the good-view fraction sets the ceiling, the samples how much of it is reached."""
    return law_of(
        "ceiling",
        f"c + ({CEILING}-c)*sigmoid(b*(log(n)-log(n50)))",
        "ceiling",
        "ceiling a0 + (a1-a0)(1-(1-g)^eta), Hill curve in n",
        scale,
        level_of("a0", scale),
        level_of("a1", scale),
        rate_of("eta", 0.05, 20.0),
        size_of("n50", scale),
        rate_of("b"),
    )


def ceiling_exponential(scale: Scale) -> Law:
    """L3 with the exponential of data-mixing laws."""
    return law_of(
        "ceiling-exponential",
        "c + (a1-c)*exp(-k*(1-g))*sigmoid(b*(log(n)-log(n50)))",
        "ceiling",
        "Ye et al. (2024), data mixing laws, arXiv 2403.16952: exponential in the mixture, Hill curve in n",
        scale,
        level_of("a1", scale),
        Parameter("k", 0.0, 30.0, 0.1, 3.0),
        size_of("n50", scale),
        rate_of("b"),
    )


def shift_and_ceiling(scale: Scale) -> Law:
    """L3 and L5 in one: g sets the ceiling a0 + rise (1-(1-g)^eta) and shifts the curve along log n."""
    return law_of(
        "shift-and-ceiling",
        f"f + (a0 + rise*(1-(1-g)**eta) - f)*sigmoid(b*(log({EFFECTIVE_CURVED})-log(n50)))",
        "other",
        "the law in which L3 and L5 are nested, from a floor of its own",
        scale,
        floor_of(scale),
        level_of("a0", scale),
        Parameter("rise", 0.0, max(scale.top - scale.floor, scale.span), 0.0, 2 * scale.span),
        rate_of("eta", 0.05, 20.0),
        size_of("n50", scale),
        rate_of("b"),
        kappa_of(),
        rate_of("gamma", 0.05, 20.0),
    )


def additive(scale: Scale) -> Law:
    """L4: separate costs of few samples and of bad pairs, and their product."""
    return law_of(
        "additive",
        "a_inf - B*(n/n0)**(-beta) - C*(1-g)**delta - D*(n/n0)**(-beta)*(1-g)",
        "ceiling",
        "additive law in n and 1-g with an interaction",
        scale,
        level_of("a_inf", scale),
        amount_of("B", scale),
        rate_of("beta"),
        amount_of("C", scale),
        rate_of("delta", 0.05, 20.0),
        Parameter("D", -40.0 * scale.span, 40.0 * scale.span, -scale.span, scale.span),
    )


def hill(scale: Scale) -> Law:
    """L5: Hill curve in log n from chance to a ceiling, bad pairs at a discount."""
    return law_of(
        "hill",
        f"c + (A-c)*sigmoid(b*(log({EFFECTIVE})-log(n50)))",
        "shift",
        "Hill (1910) in effective samples: n50(g) = n50/(g + kappa(1-g))",
        scale,
        level_of("A", scale),
        size_of("n50", scale),
        rate_of("b"),
        kappa_of(),
    )


def hill_floor(scale: Scale) -> Law:
    """L5 from a floor of its own: an untrained encoder may score above chance."""
    return law_of(
        "hill-floor",
        f"f + (A-f)*sigmoid(b*(log({EFFECTIVE})-log(n50)))",
        "shift",
        "Hill (1910) in effective samples, with a free floor",
        scale,
        floor_of(scale),
        level_of("A", scale),
        size_of("n50", scale),
        rate_of("b"),
        kappa_of(),
    )


def hill_curved(scale: Scale) -> Law:
    """L5 with the curved exchange of L2."""
    return law_of(
        "hill-curved",
        f"c + (A-c)*sigmoid(b*(log({EFFECTIVE_CURVED})-log(n50)))",
        "shift",
        "Hill (1910), n_eff = n (kappa + (1-kappa) g^gamma)",
        scale,
        level_of("A", scale),
        size_of("n50", scale),
        rate_of("b"),
        kappa_of(),
        rate_of("gamma", 0.05, 20.0),
    )


def hill_floor_curved(scale: Scale) -> Law:
    """L5 from a floor of its own, with the curved exchange of L2."""
    return law_of(
        "hill-floor-curved",
        f"f + (A-f)*sigmoid(b*(log({EFFECTIVE_CURVED})-log(n50)))",
        "shift",
        "Hill (1910), free floor, n_eff = n (kappa + (1-kappa) g^gamma)",
        scale,
        floor_of(scale),
        level_of("A", scale),
        size_of("n50", scale),
        rate_of("b"),
        kappa_of(),
        rate_of("gamma", 0.05, 20.0),
    )


def hill_floor_ceiling(scale: Scale) -> Law:
    """L3 and L5 from a floor of their own: g sets the ceiling and shifts the curve."""
    return law_of(
        "hill-floor-ceiling",
        f"f + ({CEILING}-f)*sigmoid(b*(log({EFFECTIVE})-log(n50)))",
        "other",
        "Hill (1910), free floor, ceiling a0 + (a1-a0)(1-(1-g)^eta), effective samples",
        scale,
        floor_of(scale),
        level_of("a0", scale),
        level_of("a1", scale),
        rate_of("eta", 0.05, 20.0),
        size_of("n50", scale),
        rate_of("b"),
        kappa_of(),
    )


def theorem(scale: Scale) -> Law:
    """The bound's form: misalignment from mixed pair laws and from finite samples, over a stand-in spectral gap."""
    return law_of(
        "theorem",
        "a_max - ((1-g)*D + C*(n/n0)**(-0.5))/(1 + d*g)",
        "ceiling",
        f"{PAPER}: [(1-g) D + C n^-1/2]/(d0 + d1 g), d0 = 1",
        scale,
        level_of("a_max", scale),
        amount_of("D", scale),
        amount_of("C", scale),
        Parameter("d", 0.0, 100.0, 0.0, 2.0),
    )


def rising_power(scale: Scale) -> Law:
    """A rising power in n alone."""
    return Law(
        "rising-power",
        "a_inf - B*(n/n0)**(-beta)",
        "saturating power in n",
        ("n",),
        (level_of("a_inf", scale), amount_of("B", scale), rate_of("beta")),
        {"n0": scale.middle("n")},
    )


def rising_hill(scale: Scale) -> Law:
    """A Hill curve in n alone, from chance."""
    return Law(
        "rising-hill",
        "c + (A-c)*sigmoid(b*(log(n)-log(n50)))",
        "Hill (1910)",
        ("n",),
        (level_of("A", scale), size_of("n50", scale), rate_of("b")),
        {"c": scale.floor},
    )


def no_g(scale: Scale) -> Law:
    """Null: good views are worth as much as bad ones (kappa = 1)."""
    return Law(
        "no-g",
        "max(c, a_inf - B*(n/n0)**(-beta))",
        "null: saturating power in n, g ignored",
        ("n",),
        (level_of("a_inf", scale), amount_of("B", scale), rate_of("beta")),
        _constants(scale),
        "null",
    )


def linear_log(scale: Scale) -> Law:
    """Null: linear in log n, with an intercept and a slope linear in g."""
    wide = 1e3 * scale.span + 10 * max(abs(scale.low), abs(scale.high))
    if "g" not in scale.ranges:
        line = tuple(Parameter(name, -wide, wide, -scale.span, scale.span) for name in ("intercept", "slope"))
        source = "null: linear in log n"
        return Law(
            "linear-log-n", "intercept + slope*log(n/n0)", source, ("n",), line, {"n0": scale.middle("n")}, "null"
        )
    parameters = tuple(
        Parameter(name, -wide, wide, -scale.span, scale.span)
        for name in ("intercept", "slope", "g_intercept", "g_slope")
    )
    return Law(
        "linear-log-n",
        "intercept + slope*log(n/n0) + g*(g_intercept + g_slope*log(n/n0))",
        "null: linear in log n and g",
        ("n", "g"),
        parameters,
        {"n0": scale.middle("n")},
        "null",
    )


ALIGNMENT: Mapping[str, Callable[[Scale], Law]] = {
    "effective-samples": effective_samples,
    "effective-samples-curved": effective_samples_curved,
    "effective-samples-shifted": effective_samples_shifted,
    "ceiling": ceiling,
    "ceiling-exponential": ceiling_exponential,
    "additive": additive,
    "hill": hill,
    "hill-floor": hill_floor,
    "hill-curved": hill_curved,
    "hill-floor-curved": hill_floor_curved,
    "hill-floor-ceiling": hill_floor_ceiling,
    "theorem": theorem,
}
SIZE_ONLY: Mapping[str, Callable[[Scale], Law]] = {"rising-power": rising_power, "rising-hill": rising_hill}
NULLS: Mapping[str, Callable[[Scale], Law]] = {"no-g": no_g, "linear-log-n": linear_log}
