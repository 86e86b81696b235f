"""The simulated studies in which coverage is measured: additive and Hill truths, near 0 and 1, with lack of fit."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from forecast.calibration import World
from forecast.laws.law import Law, Parameter, Scale
from forecast.laws.registry import build_law

RANGES = {"n": (8e3, 512e3), "g": (0.0, 1.0)}


def low_scale(top: float) -> Scale:
    """A metric near 0, such as mutual 10-NN over 300 scenes."""
    return Scale(0.034, top, 0.033, 0.0, 1.0, True, RANGES)


def power_law(scale: Scale) -> Law:
    """Saturating power in n alone."""
    span = scale.span
    return Law(
        "power",
        "a_inf - B*(n/n0)**(-beta)",
        "simulation",
        ("n",),
        (
            Parameter("a_inf", scale.floor, scale.top, scale.high, min(scale.top, scale.high + 2 * span)),
            Parameter("B", 0.0, 40 * span, 0.1 * span, 2 * span),
            Parameter("beta", 0.01, 8.0, 0.1, 2.0, "log"),
        ),
        {"n0": scale.middle("n")},
    )


def hill_law(scale: Scale) -> Law:
    """Hill in n alone, from chance."""
    low, high = scale.ranges["n"]
    return Law(
        "hill-n",
        "c + (A-c)*sigmoid(b*(log(n)-log(n50)))",
        "simulation",
        ("n",),
        (
            Parameter("A", scale.floor, scale.top, scale.high, min(scale.top, scale.high + 2 * scale.span)),
            Parameter("n50", low / 1e4, high * 1e4, low, 10 * high, "log"),
            Parameter("b", 0.01, 8.0, 0.1, 2.0, "log"),
        ),
        {"c": scale.floor},
    )


def world_of(
    name: str, law: Law, truth: dict[str, float], columns: dict[str, np.ndarray], sigma: float, tau: float = 0.0
) -> World:
    """A world whose truth is the law at these parameters, with targets at 4 and 10 times the data."""
    inner = law.inner(np.array([[truth[p] for p in law.names]]))
    shares = sorted(set(columns["g"])) if "g" in law.predictors else [1.0]
    asked = list(itertools.product((4, 10), {shares[0], shares[-1]}))
    targets = {"n": np.array([columns["n"].max() * f for f, _ in asked]), "g": np.array([g for _, g in asked])}
    return World(
        name=name,
        law=law,
        columns=columns,
        counts=np.full(len(columns["n"]), 3.0),
        truth=law.value(columns, inner)[0],
        targets=targets,
        target_truth=law.value(targets, inner)[0],
        labels=[f"{f}x" + (f", g={g:g}" if "g" in law.predictors else "") for f, g in asked],
        sigma=sigma,
        tau=tau,
        low=0.0,
        high=1.0,
    )


def line(designs: int) -> dict[str, np.ndarray]:
    """So many sizes over a factor 64, g = 1."""
    return {"n": 8e3 * np.geomspace(1, 64, designs), "g": np.ones(designs)}


def grid(sizes: int, shares: tuple[float, ...]) -> dict[str, np.ndarray]:
    """Sizes over a factor 64 times good-view fractions."""
    n, g = np.meshgrid(8e3 * np.geomspace(1, 64, sizes), shares, indexing="ij")
    return {"n": n.ravel(), "g": g.ravel()}


def worlds() -> list[World]:
    """Additive and Hill truths, 6 to 10 designs of 3 seeds, near 0 and near 1, with and without lack of fit."""
    out: list[World] = []
    near_one = Scale(0.5, 0.97, 0.033, 0.0, 1.0, True, RANGES)
    makers: dict[str, tuple[Callable[[Scale], Law], dict[str, float], float]] = {
        "hill": (hill_law, {"A": 0.12, "n50": 3e5, "b": 0.9}, 0.07),
        "hill, saturating": (hill_law, {"A": 0.12, "n50": 6e4, "b": 1.0}, 0.11),
        "power": (power_law, {"a_inf": 0.15, "B": 0.06, "beta": 0.3}, 0.12),
        "power, saturating": (power_law, {"a_inf": 0.12, "B": 0.02, "beta": 0.8}, 0.12),
    }
    for (name, (make, truth, top)), designs in itertools.product(makers.items(), (6, 8, 10)):
        for tau in (0.0, 0.003):
            label = f"{name}, {designs} designs" + (", lack of fit" if tau else "")
            out.append(world_of(label, make(low_scale(top)), truth, line(designs), 0.002, tau))
    out.append(world_of("hill near 1, 8 designs", hill_law(near_one), {"A": 0.97, "n50": 6e4, "b": 1.0}, line(8), 0.01))
    out.append(
        world_of("power near 1, 8 designs", power_law(near_one), {"a_inf": 0.98, "B": 0.14, "beta": 0.5}, line(8), 0.01)
    )
    two = {"hill": {"A": 0.12, "n50": 3e5, "b": 0.9, "kappa": 0.1}}
    two["effective-samples"] = {"a_inf": 0.15, "B": 0.05, "beta": 0.3, "kappa": 0.2}
    two["additive"] = {"a_inf": 0.15, "B": 0.04, "beta": 0.3, "C": 0.02, "delta": 1.0, "D": 0.01}
    for name, truth in two.items():
        law = build_law(name, low_scale(0.1))
        columns = grid(4, (0.0, 0.5, 1.0)) if name == "additive" else grid(5, (0.0, 1.0))
        out.append(world_of(f"{name} in n and g, {len(columns['n'])} designs", law, truth, columns, 0.002))
    return out
