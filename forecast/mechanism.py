"""Does a lower good-view fraction shift the curve along log n, or lower its ceiling? Or can the data not tell?"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from forecast.dataset import Dataset
from forecast.engine import Loss, minimise
from forecast.estimation import screened
from forecast.fitted import Mechanism
from forecast.intervals import noise_about
from forecast.laws.alignment import shift_and_ceiling
from forecast.noise import Noise

__all__ = ["mechanism_of"]

Array = npt.NDArray[np.float64]


def mechanism_of(
    data: Dataset, noise: Noise, loss: Loss, rng: np.random.Generator, *, alpha: float = 0.05
) -> Mechanism | None:
    """The two tests, or None where g does not vary or fewer than 3 designs are spare.

    Each restriction takes 2 parameters away from the law that does both: rise = 0 (and with it eta), or kappa = 1
    (and with it gamma). Under either, a parameter is not identified, so the tests are if anything too careful.
    """
    if not {"n", "g"} <= set(data.columns) or len(np.unique(data.columns["g"])) < 2 or data.link != "identity":
        return None
    law = shift_and_ceiling(data.scale)
    names = law.names
    spare = len(data.means) - len(names)
    if spare < 3:
        return None
    counts = data.counts
    random = screened(law, data, loss, rng)
    ceiling_start, shift_start = random.copy(), random.copy()
    where = {name: i for i, name in enumerate(names)}
    ceiling_start[:, [where["kappa"], where["gamma"]]] = 0.0  # logarithms: kappa = gamma = 1
    held = np.array([name in ("kappa", "gamma") for name in names])
    ceiling = minimise(law, data.columns, data.means, counts, ceiling_start, loss=loss, fixed=held)
    shift_start[:, where["rise"]] = 0.0
    shift_start[:, where["eta"]] = 0.0
    held = np.array([name in ("rise", "eta") for name in names])
    shift = minimise(law, data.columns, data.means, counts, shift_start, loss=loss, fixed=held)
    begin = np.concatenate([random, ceiling.inner[[ceiling.best]], shift.inner[[shift.best]]])
    # a restricted optimum is a saddle of the larger law: a small step off it lets the search leave
    off = begin[-2:] + 0.05 * rng.standard_normal((2, len(names)))
    both = minimise(law, data.columns, data.means, counts, np.concatenate([begin, off]), loss=loss)
    least = float(both.loss.min())
    sigma, df, _ = noise_about(
        np.array([least / spare]), np.array([spare]), counts[None], noise.sigma, noise.degrees_of_freedom
    )
    p_shift, p_ceiling = (
        float(special.fdtrc(2, int(df[0]), max(float(m.loss.min()) - least, 0.0) / 2 / float(sigma[0]) ** 2))
        for m in (shift, ceiling)
    )
    return _verdict(p_shift, p_ceiling, int(df[0]), alpha)


def _verdict(p_shift: float, p_ceiling: float, df: int, alpha: float) -> Mechanism:
    said = f"(p = {p_shift:.2g} for a shift alone, {p_ceiling:.2g} for a ceiling alone)"
    verdict: Literal["shift", "ceiling", "both", "undecided"]
    if p_shift >= alpha > p_ceiling:
        verdict, sentence = "shift", f"a lower g shifts the curve along log n; a lower ceiling alone is rejected {said}"
    elif p_ceiling >= alpha > p_shift:
        verdict, sentence = "ceiling", f"a lower g lowers the ceiling; a shift along log n alone is rejected {said}"
    elif p_shift < alpha and p_ceiling < alpha:
        verdict, sentence = "both", f"neither a shift along log n nor a lower ceiling alone explains g {said}"
    else:
        verdict = "undecided"
        sentence = f"the data cannot tell whether g shifts the curve along log n or lowers its ceiling {said}"
    return Mechanism(verdict=verdict, p_shift=p_shift, p_ceiling=p_ceiling, degrees_of_freedom=df, sentence=sentence)
