"""What the data do not determine, in words: parameters without a limit, and directions along which they trade off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from forecast.dataset import Dataset
from forecast.estimation import Fitted
from forecast.fitted import Estimate

__all__ = ["limits_of", "prior_drifts", "sloppy_directions"]

Array = npt.NDArray[np.float64]

SLOPPY = 1e-3  # ratio of eigenvalues of the scaled information below which a direction is sloppy
SHARE = 0.3  # of a direction's unit length: a parameter with less has no part in it
MOVED = 2.0  # factor by which a parameter must move along it


def limits_of(law: str, parameters: Sequence[Estimate]) -> list[str]:
    """Sentences on parameters at a bound, not identified, or with a profile that never rises to one side."""
    out = []
    for p in parameters:
        if p.status == "not identified" and p.lower is None and p.upper is None:
            out.append(f"the data do not identify {p.name} of {law}: its profile never rises, others make up for it")
        elif p.status == "not identified":
            out.append(f"the data do not identify {p.name} of {law}: other parameters make up for it")
        elif p.status.startswith("at "):
            out.append(f"{p.name} of {law} lies {p.status} ({p.value:.4g})")
        elif p.upper is None or p.lower is None:
            side = "upper" if p.upper is None else "lower"
            out.append(
                f"the data give {p.name} of {law} no {side} limit: its profile never rises far enough that way "
                f"({p.value:.4g} is only the best of many)"
            )
    return out


def sloppy_directions(best: Fitted, data: Dataset) -> list[str]:
    """Sentences on combinations of parameters that may move far together while the fit hardly changes."""
    law, free = best.law, np.flatnonzero(best.sure.free[0])
    if len(free) < 2 or len(data.means) <= len(law.parameters):
        return []
    jacobian = law.value_and_jacobian(data.columns, best.inner[None])[1][0][:, free]
    j = np.where(np.isfinite(jacobian), jacobian, 0.0) * np.sqrt(data.counts)[:, None]
    length = np.sqrt(np.sum(j**2, axis=0))
    if not np.all(length > 0):
        return []
    normal = (j / length).T @ (j / length)
    values, vectors = np.linalg.eigh(normal)
    out = []
    for value, vector in zip(values, vectors.T, strict=True):
        if value > SLOPPY * values[-1]:
            break
        step = vector / length * float(best.sure.sigma[0]) / np.sqrt(max(value, 1e-14))
        parts = [_moved(best, int(i), float(step[k])) for k, i in enumerate(free) if abs(vector[k]) > SHARE]
        if len(parts) > 1 and any(far for _, far in parts):
            out.append(
                f"of {law.name} the data fix hardly more than a combination: "
                f"{' with '.join(text for text, _ in parts)} fits within one standard error"
            )
    return out


def _moved(best: Fitted, index: int, step: float) -> tuple[str, bool]:
    """A parameter's move in words, and whether it is far."""
    parameter, value = best.law.parameters[index], float(best.law.outer(best.inner[None])[0, index])
    if parameter.walk == "log":
        factor = float(np.exp(np.clip(step, -50.0, 50.0)))
        return f"{parameter.name} x {factor:.3g}", max(factor, 1 / factor) > MOVED
    return f"{parameter.name} {step:+.3g}", abs(step) > (MOVED - 1) * abs(value)


def prior_drifts(law: str, parameters: Sequence[Estimate]) -> tuple[list[str], list[str]]:
    """Where each parameter with a prior went: what is to be known, and what to heed (off by more than 2 SDs)."""
    known, heed = [], []
    for p in parameters:
        if p.drift is None:
            continue
        text = f"{p.name} of {law} has the prior {p.prior_mean:g} +- {p.prior_sd:g} and went to {p.value:.4g}, "
        if abs(p.drift) > 2:
            heed.append(f"{text}{p.drift:+.1f} SDs off: data and prior disagree")
        else:
            known.append(f"{text}{p.drift:+.1f} SDs off")
    return known, heed
