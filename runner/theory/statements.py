"""The theorem's statements, each computed on finite worlds: what is claimed, whether it held, and the numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forecast.errors import ForecastError
from runner.theory.nuisance import DetailWorld, Share, share_of_good_views
from runner.theory.search import Worst, least_favourable
from runner.theory.worlds import (
    Bound,
    PairLaw,
    bound,
    learned_code,
    misalignment,
    random_law,
    random_pair,
    symmetric_law,
)

__all__ = ["Statement", "Theory", "examine", "fitting_rotations", "tied_law"]

Array = np.ndarray[Any, Any]
EXACT = 1e-5
ROUNDING = 1e-8
SHARES = np.round(np.linspace(0, 1, 41), 4)


@dataclass(frozen=True)
class Statement:
    """One claim, whether the computation bore it out, and what it found, in words with numbers."""

    name: str
    claim: str
    holds: bool
    found: str


@dataclass
class Theory:
    """Everything that one examination computed: statements, and the data that the page draws."""

    seed: int
    worlds: int
    statements: list[Statement] = field(default_factory=list)
    bounds: list[Bound] = field(default_factory=list)
    worst: Worst | None = None
    gaps: list[dict[str, float]] = field(default_factory=list)
    pairs: list[dict[str, Any]] = field(default_factory=list)
    shares: list[Share] = field(default_factory=list)
    switches: list[float] = field(default_factory=list)
    mixtures: list[dict[str, float]] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether every statement held."""
        return all(statement.holds for statement in self.statements)


def examine(*, worlds: int = 300, seed: int, progress: Callable[[int, int], None] = lambda done, total: None) -> Theory:
    """Compute every statement. worlds: how many random worlds the bound is tried on."""
    if worlds < 1:
        raise ForecastError(f"the bound needs at least one random world, got {worlds}")
    theory = Theory(seed=seed, worlds=worlds)
    steps: Sequence[Callable[[Theory, np.random.Generator], Statement]] = (
        _optimum, _gap, _random_worlds, _plain_is_broken, _pairs, _moments, _nuisance, _mixtures,
    )  # fmt: skip
    for done, (step, child) in enumerate(zip(steps, np.random.SeedSequence(seed).spawn(len(steps)), strict=True)):
        progress(done, len(steps))
        theory.statements.append(step(theory, np.random.default_rng(child)))
    progress(len(steps), len(steps))
    return theory


def _optimum(theory: Theory, rng: np.random.Generator) -> Statement:
    off: list[float] = []
    excess: list[float] = []
    while len(off) < 6:
        law, k = random_law(int(rng.integers(6, 12)), rng), int(rng.integers(1, 4))
        if law.gap(k) < 0.02:
            continue
        code = learned_code(law, k, rng=rng)
        space = np.sqrt(law.prior)[:, None] * code
        off.append(misalignment(np.linalg.qr(space)[0], law.basis(k)))
        excess.append(abs(float(np.trace(code.T @ law.joint @ code)) - float(law.spectrum()[:k].sum())))
    return Statement(
        "optimum",
        "The best code is the space of the k first eigenvectors of the pair law.",
        max(off) < 1e-3 and max(excess) < EXACT,
        f"a general optimiser ended within an angle of sine {max(off):.1g} of it on {len(off)} random worlds, "
        f"its agreement within {max(excess):.1g} of the sum of k eigenvalues",
    )


def tied_law(gap: float) -> PairLaw:
    """A law over 8 equally likely states whose eigenvalues 2 and 3 differ by `gap`."""
    basis = np.linalg.qr(np.column_stack([np.ones(8), np.vander(np.linspace(-1, 1, 8), 5, increasing=True)[:, 1:]]))[0]
    return symmetric_law(np.array([0.3, 0.2, 0.2 - gap, 0.05]), basis[:, 1:])


def _gap(theory: Theory, rng: np.random.Generator) -> Statement:
    for gap in (0.0, 0.01, 0.02, 0.05, 0.1, 0.15):
        law = tied_law(gap)
        codes = [np.linalg.qr(learned_code(law, 2, rng=rng))[0] for _ in range(6)]
        apart = max(misalignment(codes[0], code) for code in codes[1:])
        theory.gaps.append({"gap": gap, "misalignment": apart})
    without, with_gap = theory.gaps[0]["misalignment"], max(row["misalignment"] for row in theory.gaps[1:])
    return Statement(
        "gap",
        "Two modalities with one pair law agree up to rotation if and only if eigenvalue k exceeds eigenvalue k + 1.",
        without > 0.1 and with_gap < 1e-3,
        f"of 6 independent optima the two farthest apart differ by {without:.2g} without a gap and by "
        f"{with_gap:.1g} with gaps of 0.01 to 0.15",
    )


def _random_worlds(theory: Theory, rng: np.random.Generator) -> Statement:
    theory.bounds = [bound(*random_pair(rng)) for _ in range(theory.worlds)]
    ratios = [found.misalignment / found.safe for found in theory.bounds]
    silent = sum(found.says_nothing for found in theory.bounds)
    broken = sum(found.misalignment > found.plain + ROUNDING for found in theory.bounds)
    return Statement(
        "bound",
        "Misalignment is at most 2 |K1 - K2| / gap(K1).",
        max(ratios) <= 1 + ROUNDING,
        f"all of {theory.worlds} random worlds lie within, at most at {max(ratios):.0%} of it; for {silent} the bound "
        f"is 1 or more and says nothing; {broken} break the bound without the factor 2",
    )


def _plain_is_broken(theory: Theory, rng: np.random.Generator) -> Statement:
    worst = theory.worst = least_favourable(rng)
    found = worst.found
    return Statement(
        "adversary",
        "Without the factor 2 the bound is false, which random worlds hardly show; with it, it holds.",
        worst.ratio > 1.5 and found.misalignment <= found.safe + ROUNDING,
        f"a world of three states has misalignment {found.misalignment:.4f} where |K1 - K2| / gap = {found.plain:.4f}: "
        f"broken by a factor {worst.ratio:.4f}; with the factor 2 it is at {found.misalignment / found.safe:.2%} "
        "of the bound",
    )


def fitting_rotations(source: Array, target: Array) -> list[Array]:
    """Every orthogonal matrix that carries the given pairs (pairs, k) into each other, if they are few, else [].

    k independent pairs leave one, k - 1 leave two (one a reflection of the other), fewer leave infinitely many.
    """
    k = source.shape[1]
    left, values, right = np.linalg.svd(source.T @ target)
    lost = k - int((values > EXACT * max(1.0, float(values.max(initial=0)))).sum())
    if lost > 1:
        return []
    if lost == 0:
        return [left @ right]
    return [left @ np.diag([*np.ones(k - 1), sign]) @ right for sign in (1.0, -1.0)]


def _pairs(theory: Theory, rng: np.random.Generator) -> Statement:
    counts: dict[int, tuple[set[int], set[int]]] = {}
    wrong = 0.0
    for k in (2, 3, 5, 8):
        true = np.linalg.qr(rng.standard_normal((k, k)))[0]
        true[:, 0] *= np.sign(np.linalg.det(true))
        for short in (0, 1, 2):
            if k - short < 1:
                continue
            seen = rng.standard_normal((k - short, k))
            all_of_them = fitting_rotations(seen, seen @ true)
            proper = [matrix for matrix in all_of_them if np.linalg.det(matrix) > 0]
            many = not all_of_them
            kinds = counts.setdefault(short, (set(), set()))
            kinds[0].add(-1 if many else len(all_of_them))
            kinds[1].add(-1 if many else len(proper))
            wrong = max([wrong, *(float(np.abs(seen @ q - seen @ true).max()) for q in all_of_them)])
            if len(proper) == 1:
                wrong = max(wrong, float(np.abs(proper[0] - true).max()))
    names = {-1: "infinitely many"}
    for short, (every, proper_only) in sorted(counts.items()):
        label = "k" if not short else f"k - {short}"
        for group, found in (("O(k), reflections allowed", every), ("SO(k), rotations only", proper_only)):
            theory.pairs.append({"pairs": label, "group": group, "matrices": names.get(min(found), str(max(found)))})
    return Statement(
        "pairs",
        "k generic pairs fix the orthogonal matrix and k - 1 do not; inside SO(k), where reflections are excluded, "
        "k - 1 suffice.",
        counts == {0: ({1}, {1}), 1: ({2}, {1}), 2: ({-1}, {-1})} and wrong < ROUNDING,
        f"for k = 2, 3, 5, 8: one matrix fits k pairs, two fit k - 1 (one of them a rotation), infinitely many fit "
        f"k - 2 (largest error {wrong:.1g})",
    )


def _moments(theory: Theory, rng: np.random.Generator) -> Statement:
    law, k = random_law(12, rng), 3
    code = law.basis(k) / np.sqrt(law.prior)[:, None]
    moved, third = 0.0, []
    for _ in range(100):
        turned = code @ np.linalg.qr(rng.standard_normal((k, k)))[0]
        mean, second = (turned.T @ law.prior - code.T @ law.prior, _second(turned, law) - _second(code, law))
        moved = max(moved, float(np.abs(mean).max()), float(np.abs(second).max()))
        third.append(float(np.abs(law.prior @ turned**3 - law.prior @ code**3).max()))
    return Statement(
        "moments",
        "The first and second moments of unpaired codes never fix the rotation.",
        moved < ROUNDING and min(third) > 1e-4,
        f"100 random rotations move mean and covariance by at most {moved:.1g}; they move third moments by "
        f"{min(third):.2g} to {max(third):.2g}, so higher moments can tell",
    )


def _second(code: Array, law: PairLaw) -> Array:
    second: Array = code.T @ (law.prior[:, None] * code)
    return second


def _nuisance(theory: Theory, rng: np.random.Generator) -> Statement:
    world = DetailWorld()
    theory.shares = [share_of_good_views(world, float(g)) for g in SHARES]
    theory.switches = world.switches()
    last = theory.switches[-1]
    below = [s for s in theory.shares if s.g < last - 0.01]
    above = [s for s in theory.shares if s.g > last + 0.01]
    clean = share_of_good_views(DetailWorld(detail=0.05), 0.0)
    return Statement(
        "nuisance",
        "Where a view keeps more of the observation's own detail than of world direction k, code dimensions go to "
        "detail, and no rotation aligns them.",
        all(s.world_dimensions < 2 + EXACT and s.agreement[-1] < EXACT for s in below)
        and all(s.world_dimensions > 3 - EXACT and s.agreement[-1] > 1 - EXACT for s in above)
        and clean.agreement[-1] > 1 - EXACT,
        f"bad views that keep {world.detail:g} of a detail and {world.bad[-1]:g} of direction 3: below g = {last:.3f} "
        "one code dimension of 3 holds detail and correlates 0 with the other modality after any rotation; above, "
        "all three agree; with bad views that keep 0.05 of the detail all agree at g = 0",
    )


def _mixtures(theory: Theory, rng: np.random.Generator) -> Statement:
    good = random_law(10, rng)
    bad = [random_law(10, rng, prior=good.prior) for _ in range(2)]
    k = max(range(1, 6), key=good.gap)
    for g in SHARES:
        first, second = (PairLaw(g * good.joint + (1 - g) * law.joint) for law in bad)
        found = bound(first, second, k)
        row = {"g": float(g), "misalignment": found.misalignment, "bound": found.safe}
        theory.mixtures.append({**row, "distance": found.distance, "gap": found.gap})
    rows, whole = theory.mixtures, theory.mixtures[0]["distance"]
    linear = max(abs(row["distance"] - (1 - row["g"]) * whole) for row in rows)
    return Statement(
        "good views",
        "Two modalities with the same good and different bad views: |K1 - K2| falls as 1 - g, and the bound with it "
        "over the gap at g.",
        linear < ROUNDING and all(r["misalignment"] <= r["bound"] + ROUNDING for r in rows),
        f"|K1 - K2| = {whole:.3f} (1 - g) to within {linear:.1g}; misalignment {rows[0]['misalignment']:.3f} at g = 0, "
        f"{rows[20]['misalignment']:.3f} at g = 0.5, {rows[-1]['misalignment']:.1g} at g = 1, everywhere within the "
        "bound",
    )
