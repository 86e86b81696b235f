"""A fit as a record: a law, what is known of its parameters, and all that predicting needs without the data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, Field, FiniteFloat, ValidationError

from forecast.diagnostics import Diagnostics
from forecast.errors import ForecastError
from forecast.files import write_atomically
from forecast.laws.law import Law, Parameter
from forecast.laws.links import LinkName
from forecast.noise import Noise
from forecast.records import Frozen, Metric, Record, Sha256

__all__ = [
    "CLEAR",
    "Candidate",
    "Coverage",
    "DesignMean",
    "Estimate",
    "Fit",
    "HeldOut",
    "LackOfFit",
    "LawFit",
    "Mechanism",
]

Array = npt.NDArray[np.float64]

CLEAR = 2.0  # standard errors by which held-out scores must differ for one to be preferred
Numbers = Annotated[dict[str, FiniteFloat], *Frozen]
Texts = Annotated[dict[str, str], *Frozen]


def _square(rows: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
    if any(len(row) != len(rows) for row in rows):
        raise ValueError("a covariance is square")
    return rows


class Estimate(Record):
    """One parameter: value and interval in its own unit, its bounds, and whether the data say anything of it.

    lower, upper: the interval's ends; null where the data do not bound it.
    prior_mean, prior_sd: of its normal prior, null without one.
    lower_bound ... walk: what the engine needs to rebuild the law.
    """

    name: str
    value: FiniteFloat
    standard_error: FiniteFloat | None = None
    lower: FiniteFloat | None = None
    upper: FiniteFloat | None = None
    prior_mean: FiniteFloat | None = None
    prior_sd: FiniteFloat | None = None
    status: Literal["free", "at lower bound", "at upper bound", "not identified", "fixed"] = "free"
    lower_bound: FiniteFloat
    upper_bound: FiniteFloat
    start_lower: FiniteFloat
    start_upper: FiniteFloat
    walk: Literal["linear", "log"] = "linear"

    @property
    def drift(self) -> float | None:
        """By how many of its prior's SDs the value lies off the prior's mean; None without a prior."""
        if self.prior_mean is None or self.prior_sd is None:
            return None
        return (self.value - self.prior_mean) / self.prior_sd


class LackOfFit(Record):
    """Pure-error F test of one law: the spread of design means about the law against that of runs about their mean."""

    f: FiniteFloat
    numerator: int
    denominator: int
    p_value: FiniteFloat


class LawFit(Record):
    """One law with its estimates.

    covariance: engine coordinates (logarithms where `walk` is "log").
    sigma: SD of one run about the law as the intervals use it; degrees_of_freedom belongs to it.
    tau: SD of the law's own error (lack of fit), outcome's unit.
    weight: share in the averaged prediction. loss: as it is usually written (Huber's inside delta is r^2 / 2).
    sigma, tau, loss are on the link's scale. loss: with the priors' share.
    prior_variance: the noise variance that priors were weighed against.
    code_hash: sha256 of the source of a Python function.
    """

    law: str
    formula: str
    source: str
    family: str
    predictors: tuple[str, ...]
    link: LinkName = "identity"
    constants: Numbers
    parameters: tuple[Estimate, ...]
    covariance: Annotated[tuple[tuple[FiniteFloat, ...], ...], AfterValidator(_square)]
    sigma: FiniteFloat
    degrees_of_freedom: int
    tau: FiniteFloat
    weight: Annotated[FiniteFloat, Field(ge=0, le=1)]
    loss: FiniteFloat
    lack_of_fit: LackOfFit | None = None
    prior_variance: FiniteFloat = 0.0
    code_hash: Sha256 | None = None
    status: str

    def rebuilt(self) -> Law:
        """The law as it was fitted. Raises ForecastError where it is a Python function that was not allowed to run."""
        from forecast.laws.registry import solver_of

        parameters = tuple(
            Parameter(e.name, e.lower_bound, e.upper_bound, e.start_lower, e.start_upper, e.walk)
            for e in self.parameters
        )
        return Law(
            self.law,
            self.formula,
            self.source,
            self.predictors,
            parameters,
            dict(self.constants),
            self.family,
            solver_of(self.law, self.predictors, self.code_hash),
            self.link,
            {e.name: (e.prior_mean, e.prior_sd) for e in self.parameters if e.prior_mean is not None and e.prior_sd},
            self.prior_variance,
        )

    @property
    def inner(self) -> Array:
        """The estimates in engine coordinates, shape (1, parameters)."""
        return self.rebuilt().inner(np.array([[e.value for e in self.parameters]]))


class Candidate(Record):
    """One law or baseline in the comparison. Errors are in the outcome's unit; backtest: on held-out designs.

    backtest_crps: each held-out part counts once. behind: by how many standard errors of the difference between
    parts this CRPS exceeds the chosen law's; null for that law itself.
    coverage: share of held-out design means inside the 95 % interval made without them.
    """

    law: str
    kind: Literal["law", "baseline"]
    parameters: int
    loss: FiniteFloat | None = None
    rmse: FiniteFloat | None = None
    backtest_rmse: FiniteFloat | None = None
    backtest_crps: FiniteFloat | None = None
    behind: FiniteFloat | None = None
    coverage: FiniteFloat | None = None
    held_out: int = 0
    aicc: FiniteFloat | None = None
    weight: FiniteFloat = 0.0
    status: str


class Coverage(Record):
    """How often an interval for the curve held the truth in simulated studies. width: median, outcome's unit."""

    world: str
    method: str
    target: str
    nominal: FiniteFloat
    coverage: FiniteFloat
    width: FiniteFloat
    worlds: int


class Mechanism(Record):
    """Two F tests against the law in which g does both: that it only shifts, and that it only sets the ceiling.

    verdict: "shift" or "ceiling" where the other is rejected, "both" where each alone is, else "undecided".
    """

    verdict: Literal["shift", "ceiling", "both", "undecided"]
    p_shift: FiniteFloat
    p_ceiling: FiniteFloat
    degrees_of_freedom: int
    sentence: str


class DesignMean(Record):
    """One design of the data: its columns, mean outcome, mean on the link's scale, and number of runs.

    weight: its runs' weights added up, where they have any; worth: what the mean is worth in runs of noise sigma, where
    that is not the weight (or the number of runs) because noise depends on the mean.
    """

    columns: Numbers
    mean: FiniteFloat
    linked: FiniteFloat
    runs: int
    weight: FiniteFloat | None = Field(default=None, gt=0)
    worth: FiniteFloat | None = Field(default=None, gt=0)


class HeldOut(Record):
    """One design that was predicted by the chosen law without the designs of its part. On the link's scale.

    error: outcome minus forecast; inside: within the 95 % interval made without it; fold: the part's name.
    factor: how far beyond the designs that trained it lies, 1 inside; ordered: trained on smaller n only.
    """

    fold: str
    columns: Numbers
    error: FiniteFloat
    inside: bool
    factor: FiniteFloat
    ordered: bool


class Fit(Record):
    """What `platocast fit` writes: everything that a prediction needs, and how it came about.

    weights: the setting with the runs' weights. noise, candidates: on the link's scale.
    link_scores: held-out log density per link, on the outcome's scale.
    """

    format: Literal["platocast-fit-1"] = "platocast-fit-1"
    law: str
    metric: Metric
    columns: Texts
    predictors: tuple[str, ...]
    loss: Literal["squared", "huber"]
    delta: FiniteFloat | None = None
    weights: str | None = None
    link: LinkName = "identity"
    link_scores: Numbers = Field(default_factory=dict)
    interval_method: str
    components: tuple[LawFit, ...]
    noise: Noise
    candidates: tuple[Candidate, ...]
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    designs: tuple[DesignMean, ...]
    held_out: tuple[HeldOut, ...] = ()
    diagnostics: Diagnostics | None = None
    calibration: tuple[Coverage, ...] = ()
    mechanism: Mechanism | None = None
    data_hash: Sha256
    run_ids: tuple[str, ...]
    design_hashes: tuple[Sha256, ...]
    seed: int | None = None

    @property
    def chosen(self) -> LawFit:
        """The fit of the chosen law."""
        return next(component for component in self.components if component.law == self.law)

    @property
    def parameters(self) -> tuple[Estimate, ...]:
        """The chosen law's estimates."""
        return self.chosen.parameters

    @property
    def covariance(self) -> tuple[tuple[float, ...], ...]:
        """The chosen law's covariance in engine coordinates."""
        return self.chosen.covariance

    @property
    def baselines(self) -> tuple[Candidate, ...]:
        """The baselines of the comparison."""
        return tuple(row for row in self.candidates if row.kind == "baseline")

    def table(self) -> tuple[dict[str, Array], Array, Array]:
        """Columns, means on the link's scale and worths (in runs) of the designs that were fitted."""
        names = self.designs[0].columns
        columns = {name: np.array([d.columns[name] for d in self.designs]) for name in names}
        return (
            columns,
            np.array([d.linked for d in self.designs]),
            np.array([float(d.worth or d.runs) for d in self.designs]),
        )

    def __str__(self) -> str:
        """A table for a terminal."""
        from forecast.showing import fit_text

        return fit_text(self)

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        from forecast.showing import fit_html

        return fit_html(self)

    def save(self, path: Path | str) -> None:
        """Write the fit as JSON, whole or not at all."""
        write_atomically(Path(path), (self.model_dump_json(indent=1) + "\n").encode())

    @classmethod
    def load(cls, path: Path | str) -> Fit:
        """The fit saved at `path`. Raises ForecastError where it is none."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise ForecastError(f"{path}: cannot be read ({error.strerror}); give a file that `fit` wrote") from error
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            first: Any = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the file"
            raise ForecastError(f"{path}: no fit of this version: {where}: {first['msg']}; fit again") from error
