"""How much a forecast hangs on one design, or on the loss: refits in one batch, said in words."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from forecast.dataset import Dataset
from forecast.engine import Loss, minimise
from forecast.estimation import Fitted

__all__ = ["sensitivity_of"]

Array = npt.NDArray[np.float64]

MOST = 400  # designs beyond which no single one can matter


def sensitivity_of(best: Fitted, data: Dataset, loss: Loss) -> list[str]:
    """Sentences where dropping one design, or the other loss, moves the far corner by more than its standard error."""
    law, designs = best.law, len(data.means)
    if designs > MOST or designs <= len(law.parameters) + 1:
        return []
    corner = {k: np.array([v.max() * (4.0 if v.min() > 0 and k != "g" else 1.0)]) for k, v in data.columns.items()}
    value, jacobian = law.value_and_jacobian(corner, best.inner[None])
    slope = np.where(np.isfinite(jacobian[0, 0]), jacobian[0, 0], 0.0)
    error = float(np.sqrt(max(slope @ best.sure.covariance[0] @ slope, 0.0)))
    if error <= 0:
        return []
    weights = np.tile(data.counts, (designs, 1))
    np.fill_diagonal(weights, 0.0)
    begin = np.tile(best.inner, (designs, 1))
    without = minimise(law, data.columns, data.means, weights, begin, loss=loss, iterations=60).inner
    moved = np.abs(law.value(corner, without)[:, 0] - value[0, 0]) / error
    out = []
    worst = int(np.argmax(moved))
    if moved[worst] > 2:
        where = ", ".join(f"{k} = {v[worst]:g}" for k, v in data.columns.items())
        out.append(
            f"the forecast at 4 times the data hangs on the design {where}: "
            f"without it, it moves by {moved[worst]:.1f} standard errors"
        )
    delta = 1.345 * float(best.sure.sigma[0]) / float(np.sqrt(np.mean(data.counts)))
    other = Loss("huber", delta) if loss.name == "squared" else Loss()
    refit = minimise(law, data.columns, data.means, data.counts, best.inner[None], loss=other).inner
    shift = abs(float(law.value(corner, refit)[0, 0] - value[0, 0])) / error
    if shift > 1:
        out.append(f"with the {other.name} loss the forecast at 4 times the data moves by {shift:.1f} standard errors")
    return out
