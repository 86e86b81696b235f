"""From a fit and targets to a statement, refusing what would not be a forecast."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from forecast.errors import ForecastError
from forecast.files import sha256_hex
from forecast.fitted import Fit
from forecast.records import LEVELS, Prediction, Run, Target
from prereg.entry import parse_strictly
from prereg.statement import (
    FitClaim,
    LaunchClaim,
    MetricClaim,
    NoiseClaim,
    ParameterClaim,
    PowerPoint,
    PrimaryRule,
    Registration,
    Rules,
    TargetClaim,
)
from prereg.terms import Terms

__all__ = ["body_of", "forecast_targets", "power_of", "read_targets", "refuse_known_targets", "state"]

Array = npt.NDArray[np.float64]
CENTRAL_95 = 2 * 1.959963984540054
LARGEST_RANK = 12
VARYING = (
    "SD between seeds of one design, on one fixed test set, as a function of the design's mean; sigma is that at the "
    "centre of the data, each target states its own (noise_sd)"
)


def read_targets(path: Path | str) -> tuple[list[Target], dict[str, str]]:
    """The targets in a JSON or TOML file, and of which quantity each forecast is where the file says so.

    JSON: a list of {"target", "design": {"settings": {...}}, "replicates"[, "quantity"]}, or {"targets": [...]};
    TOML: [[targets]]. Raises ForecastError with the target's number and the rule.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
        if path.suffix == ".toml":
            rows: Any = tomllib.loads(data.decode("utf-8")).get("targets")
        elif data.lstrip()[:1] == b"[":
            rows = parse_strictly(b'{"targets":' + data + b"}")["targets"]
        else:
            rows = parse_strictly(data).get("targets")
    except OSError as error:
        raise ForecastError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, ForecastError) as error:
        raise ForecastError(f"{path}: no JSON or TOML list of targets: {error}") from error
    if not isinstance(rows, list) or not rows:
        raise ForecastError(f"{path}: no targets; a registration needs at least one")
    targets, quantities = [], {}
    for number, row in enumerate(rows, start=1):
        try:
            quantity = row.pop("quantity", None) if isinstance(row, dict) else None
            target = Target.model_validate(row)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the whole row"
            raise ForecastError(f"{path}: target {number}: {where}: {first['msg']}") from error
        targets.append(target)
        if quantity is not None:
            quantities[target.target] = str(quantity)
    return targets, quantities


def refuse_known_targets(targets: Sequence[Target], fit: Fit, runs: Sequence[Run] = ()) -> None:
    """Raise ForecastError for no targets, targets inside the fit's data, and targets with outcomes in `runs`."""
    if not targets:
        raise ForecastError("no targets; a registration needs at least one")
    fitted = set(fit.design_hashes)
    inside = [target.target for target in targets if target.design.hash in fitted]
    if inside:
        raise ForecastError(
            f"{len(inside)} targets are in the fit data ({_few(inside)}); forecast designs that it has not seen"
        )
    done = {run.design.hash for run in runs}
    known = [target.target for target in targets if target.design.hash in done]
    if known:
        raise ForecastError(f"{len(known)} targets already have outcomes ({_few(known)}); they cannot be registered")


def forecast_targets(
    fit: Fit, targets: Sequence[Target], quantities: Mapping[str, str], rng: np.random.Generator
) -> list[Prediction]:
    """A prediction per target: of one new run, or of the mean of as many as `quantities` says."""
    from forecast.prediction import predict

    predictions: dict[str, Prediction] = {}
    for quantity in sorted({quantities.get(target.target, "one new run") for target in targets}):
        group = [target for target in targets if quantities.get(target.target, "one new run") == quantity]
        if not re.fullmatch(r"one new run|mean of [1-9][0-9]{0,3}", quantity):
            raise ForecastError(f"quantity is 'one new run' or 'mean of K', got {quantity!r} for {group[0].target}")
        runs = 1 if quantity == "one new run" else int(quantity.split()[-1])
        found = predict(fit, group, rng=rng, replicates=runs)
        predictions |= {prediction.target: prediction for prediction in found}
    return [predictions[target.target] for target in targets]


def state(
    fit: Fit,
    fit_bytes: bytes,
    predictions: Sequence[Prediction],
    *,
    joint: Array,
    baselines: Mapping[str, Sequence[float]],
    terms: Terms,
    rng: np.random.Generator,
    quantities: Mapping[str, str] | None = None,
) -> Registration:
    """The statement for `predictions`, ready to be signed.

    joint: draws of the law at the targets, without noise, shape (draws, targets), metric units.
    baselines: per baseline a point per target. quantities: as read_targets gives them.
    The primary test is that of replicates where at least half of the runs are of targets that are run at least twice.
    Raises ForecastError for intervals narrower than the noise.
    """
    if not predictions:
        raise ForecastError("no targets; a registration needs at least one")
    replicates = [prediction.replicates for prediction in predictions]
    repeated = [count for count in replicates if count >= 2]
    by_replicates = len(repeated) >= 2 and 2 * sum(repeated) >= sum(replicates)
    factors, own = _factor(joint, np.array([prediction.curve_sd for prediction in predictions]))
    unknown = set(quantities or {}) - {prediction.target for prediction in predictions}
    if unknown:
        raise ForecastError(f"a quantity is given for {_few(sorted(unknown))}, which is no target")
    try:
        primary = PrimaryRule(
            test="replicates" if by_replicates else "single runs", delta=terms.delta, alpha=terms.alpha
        )
        statement = Registration(
            claim=terms.claim,
            refuted_by=terms.refuted_by,
            access=terms.access,
            metric=_metric(fit, terms),
            fit=_fit(fit, fit_bytes, terms),
            noise=NoiseClaim(
                **({} if fit.noise.model == "constant" else {"definition": VARYING}),
                sigma=fit.noise.sigma or None,
                degrees_of_freedom=fit.noise.degrees_of_freedom,
                source_runs=fit.run_ids,
                model=fit.noise.model,
            ),
            targets=tuple(
                _target(prediction, row, float(sd), (quantities or {}).get(prediction.target, "one new run"))
                for prediction, row, sd in zip(predictions, factors, own, strict=True)
            ),
            baselines={
                name: {p.target: float(x) for p, x in zip(predictions, points, strict=True)}
                for name, points in baselines.items()
            },
            rules=Rules(
                primary=primary,
                **terms.given("deadline", "exclusions", "exploratory", "looks", "requeue", "divergence"),
                **terms.given("missing_runs", "multiplicity", "secondary"),
            ),
            launch=LaunchClaim(code_hash=terms.code_hash, job_name=terms.job_name),
            power=power_of(replicates, primary, fit.noise.degrees_of_freedom, rng, looks=terms.looks),
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ForecastError(f"this cannot be registered: {where}: {first['msg']}") from error
    _refuse_narrow(statement)
    return statement


def power_of(
    replicates: Sequence[int], primary: PrimaryRule, noise_df: int, rng: np.random.Generator, *, looks: int = 1
) -> tuple[PowerPoint, ...]:
    """The power of `primary` for so many replicates of each target, when the law errs by 0, 0.5 and 1 sigma.

    It is that of one of `looks` looks, made at alpha / looks.
    Empty where the noise is unknown and the targets are not repeated: then there is no test.
    """
    from forecast.noise_test import replicate_power, single_run_power

    points, alpha = [], primary.alpha / looks
    for error in (0.0, 0.5, 1.0):
        if primary.test == "replicates":
            repeated = [count for count in replicates if count >= 2]
            chance = replicate_power(repeated, curve_error=error, rng=rng, delta=primary.delta, alpha=alpha)
        elif noise_df > 0:
            chance = single_run_power(sum(replicates), df=noise_df, curve_error=error, delta=primary.delta, alpha=alpha)
        else:
            return ()
        points.append(PowerPoint(curve_error=error, probability=round(chance, 4)))
    return tuple(points)


def _metric(fit: Fit, terms: Terms) -> MetricClaim:
    metric = fit.metric
    return MetricClaim(
        name=metric.name,
        higher_is_better=metric.higher_is_better,
        chance=metric.chance,
        lower=metric.lower,
        upper=metric.upper,
        items_hash=metric.items_hash,
        **terms.given("checkpoint", "checkpoint_rule", "preprocessing", "evaluation_code_hash"),
    )


def _fit(fit: Fit, fit_bytes: bytes, terms: Terms) -> FitClaim:
    return FitClaim(
        law=fit.law,
        settings={
            "loss": fit.loss,
            "delta": fit.delta,
            "link": fit.link,
            "interval_method": fit.interval_method,
            "seed": None if fit.seed is None else str(fit.seed),
            **{f"column.{name}": setting for name, setting in fit.columns.items()},
        },
        data_hash=fit.data_hash,
        rows=len(fit.run_ids),
        run_ids=fit.run_ids,
        design_hashes=tuple(sorted(set(fit.design_hashes))),
        parameters=tuple(
            ParameterClaim(
                name=e.name,
                value=e.value,
                standard_error=e.standard_error,
                lower=e.lower,
                upper=e.upper,
                status=e.status,
            )
            for e in fit.parameters
        ),
        covariance=fit.covariance or None,
        file_hash=sha256_hex(fit_bytes),
        code_hash=terms.code_hash,
        lock_hash=terms.lock_hash,
    )


def _target(prediction: Prediction, row: Array, own: float, quantity: str) -> TargetClaim:
    claim = TargetClaim(
        target=prediction.target,
        design=prediction.design,
        design_hash=prediction.design.hash,
        replicates=prediction.replicates,
        quantity=quantity,
        point=prediction.point,
        quantiles={level: f"{prediction.quantiles[level]:.9g}" for level in LEVELS},
        curve_sd=prediction.curve_sd,
        noise_sd=prediction.noise_sd,
        curve_factor=tuple(float(x) for x in row),
        curve_own_sd=own,
        extrapolation_factor=prediction.extrapolation_factor,
    )
    if claim.runs_in_quantity > claim.replicates:
        raise ForecastError(
            f"{claim.target}: a {claim.quantity} needs as many replicates, {claim.replicates} are meant"
        )
    return claim


def _factor(joint: Array, curve_sd: Array) -> tuple[Array, Array]:
    """F (targets, few) and own SDs: F F' + diag(own^2) is close to the covariance of the draws, curve_sd^2 on it."""
    if joint.ndim != 2 or joint.shape[1] != len(curve_sd) or len(joint) < 2 or not np.all(np.isfinite(joint)):
        raise ForecastError(f"joint draws must be finite and (draws, {len(curve_sd)}), got {joint.shape}")
    centred = (joint - joint.mean(axis=0)) / np.sqrt(len(joint) - 1)
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    shares = np.cumsum(sizes**2) / max(float(np.sum(sizes**2)), np.finfo(float).tiny)
    rank = min(LARGEST_RANK, int(np.searchsorted(shares, 0.999)) + 1, len(sizes))
    factor = directions[:rank].T * sizes[:rank]
    lengths = np.linalg.norm(factor, axis=1)
    factor = factor * np.minimum(1, curve_sd / np.where(lengths > 0, lengths, 1))[:, None]
    own = np.sqrt(np.maximum(0, curve_sd**2 - np.sum(factor**2, axis=1)))
    rounded = np.array([[float(f"{x:.6g}") for x in row] for row in factor])
    return rounded, np.array([float(f"{x:.6g}") for x in own])


def _refuse_narrow(statement: Registration) -> None:
    """No interval of one new run may be narrower than seed noise alone makes it, but where a bound cuts it."""
    metric, narrow = statement.metric, []
    for claim in statement.targets:
        low, high = claim.quantile("0.025"), claim.quantile("0.975")
        cut = (metric.lower is not None and low <= metric.lower) or (metric.upper is not None and high >= metric.upper)
        constant = statement.noise.sigma if statement.noise.model == "constant" else None
        sd = (constant or claim.noise_sd) / np.sqrt(claim.runs_in_quantity)
        if not cut and high - low < 0.97 * CENTRAL_95 * sd:
            narrow.append(f"{claim.target} ({high - low:.3g} < {CENTRAL_95 * sd:.3g})")
    if narrow:
        raise ForecastError(
            f"{len(narrow)} intervals are narrower than seed noise alone: {_few(narrow)}; "
            "intervals must hold one new run, not the curve"
        )


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f", ... {len(names) - 5} more" if len(names) > 5 else "")


def body_of(statement: Registration) -> dict[str, Any]:
    """The statement as plain JSON values, for an entry's body."""
    value: dict[str, Any] = json.loads(statement.model_dump_json())
    return value
