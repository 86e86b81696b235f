"""What statsmodels says of a fit: spread, normality and influence of residuals, robust errors, a linear baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from pydantic import FiniteFloat

from forecast.dataset import Dataset
from forecast.records import Record

if TYPE_CHECKING:
    from forecast.estimation import Fitted

__all__ = ["Diagnostics", "Line", "diagnostics_of"]

Array = npt.NDArray[np.float64]

MOST = 2000  # designs beyond which no single one can matter
INFLUENTIAL = 1.0  # Cook's distance


class Line(Record):
    """A straight line in log n (at one g, or the mean g) by weighted least squares: rise per doubling of n.

    standard_error: robust to unequal spread (HC3, MacKinnon & White 1985, doi 10.1016/0304-4076(85)90158-7).
    """

    per_doubling: FiniteFloat
    standard_error: FiniteFloat


class Diagnostics(Record):
    """Of the chosen law's residuals over their own noise, on the link's scale, by its linearisation at the optimum.

    breusch_pagan: p value against a spread that changes with the fitted value and n (Koenker's form).
    jarque_bera: p value against skewness or tails. Null where designs are too few.
    cook: the largest Cook's distance; influential: its design. robust_ratio: the largest ratio of a parameter's HC3
    standard error to the usual one.
    line: the linear baseline.
    """

    breusch_pagan: FiniteFloat | None = None
    jarque_bera: FiniteFloat | None = None
    cook: FiniteFloat | None = None
    influential: str | None = None
    robust_ratio: FiniteFloat | None = None
    line: Line | None = None

    def sentences(self, law: str) -> list[str]:
        """What is worth saying; nothing where all is well."""
        out = []
        if self.breusch_pagan is not None and self.breusch_pagan < 0.01:
            out.append(
                f"the residuals of {law} do not spread evenly (Breusch-Pagan p = {self.breusch_pagan:.2g}): "
                "intervals are too narrow where they spread more; try --noise mean, or --link auto"
            )
        if self.jarque_bera is not None and self.jarque_bera < 0.01:
            out.append(
                f"the residuals of {law} are not normal (Jarque-Bera p = {self.jarque_bera:.2g}): "
                "look for outliers, or use --loss huber"
            )
        if self.cook is not None and self.cook > INFLUENTIAL:
            out.append(f"the design {self.influential} pulls {law} to itself (Cook's distance {self.cook:.2g})")
        if self.robust_ratio is not None and self.robust_ratio > 2:
            out.append(
                f"standard errors that allow for unequal spread (HC3) are up to {self.robust_ratio:.1f} times those "
                f"of {law}: do not lean on the latter"
            )
        return out


def diagnostics_of(best: Fitted, data: Dataset) -> Diagnostics:
    """The tests, as far as the number of designs lets them."""
    from statsmodels.regression.linear_model import WLS
    from statsmodels.stats.diagnostic import het_breuschpagan
    from statsmodels.stats.stattools import jarque_bera

    designs, free = len(data.means), np.flatnonzero(best.sure.free[0] & best.sure.identified[0])
    spare = designs - len(best.law.parameters)
    line = _line(data)
    if spare < 3 or not len(free) or designs > MOST or not np.any(best.residual):
        return Diagnostics(line=line)
    root = np.sqrt(data.counts)
    standard = best.residual * root
    value, jacobian = best.law.value_and_jacobian(data.columns, best.inner[None])
    slopes = np.where(np.isfinite(jacobian[0]), jacobian[0], 0.0)[:, free]
    slopes = slopes / np.maximum(np.sqrt(np.sum((slopes * root[:, None]) ** 2, axis=0)), 1e-300)
    fitted = WLS(best.residual, slopes, weights=data.counts).fit()
    usual, robust = fitted.bse, fitted.HC3_se
    known = (usual > 0) & np.isfinite(robust)
    design = _explaining(value[0], data)
    able = design.shape[1] > 1 and designs > design.shape[1] + 2
    leverage = np.clip(np.einsum("ij,ji->i", fitted.model.wexog, fitted.model.pinv_wexog), 0.0, 1 - 1e-9)
    inside = standard**2 / float(np.sum(standard**2) / spare)
    cook = inside * leverage / (1 - leverage) ** 2 / len(best.law.parameters)
    worst = int(np.argmax(cook))
    return Diagnostics(
        breusch_pagan=float(het_breuschpagan(standard, design)[1]) if able else None,
        jarque_bera=float(jarque_bera(standard)[1]) if designs >= 8 else None,
        cook=float(cook[worst]),
        influential=", ".join(f"{k} = {v[worst]:g}" for k, v in data.columns.items()),
        robust_ratio=float(np.max(robust[known] / usual[known])) if known.any() else None,
        line=line,
    )


def _explaining(value: Array, data: Dataset) -> Array:
    """What the spread may change with: a constant, the fitted value, log n; a column that adds nothing is left out."""
    columns = [np.ones(len(value))]
    for extra in (value, *([np.log(data.columns["n"])] if "n" in data.columns else [])):
        more = np.column_stack([*columns, _centred(extra)])
        if np.linalg.matrix_rank(more, tol=1e-6) == more.shape[1]:
            columns.append(more[:, -1])
    return np.column_stack(columns)


def _line(data: Dataset) -> Line | None:
    from statsmodels.regression.linear_model import WLS

    if "n" not in data.columns or len(np.unique(data.columns["n"])) < 2 or len(data.means) < 4:
        return None
    doublings = np.log2(data.columns["n"])
    exog = [np.ones(len(doublings)), doublings]
    if "g" in data.columns and len(np.unique(data.columns["g"])) > 1:
        exog.append(_centred(data.columns["g"]))
    fitted = WLS(data.means, np.column_stack(exog), weights=data.counts).fit()
    error = float(fitted.HC3_se[1])
    return Line(per_doubling=float(fitted.params[1]), standard_error=error) if np.isfinite(error) else None


def _centred(x: Array) -> Array:
    span = float(np.ptp(x))
    return (x - x.mean()) / span if span > 0 else x
