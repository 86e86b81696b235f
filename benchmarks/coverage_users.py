"""What a user of a whole tool gets: the laws' average of `platocast fit`, and the intervals of simple-scaling-laws.

Both are given the runs of a simulated study, not its design means, and are asked for the curve's interval at the
study's targets. The peer is given the law that holds the truth (power: separable-power; Hill: bounded-rational-power),
once with the link that it takes for a bounded metric, and once with the metric declared unbounded.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from forecast.calibration import World
from forecast.fitting import fit
from forecast.prediction import curve_quantiles
from forecast.records import Design, Evaluation, Metric, Run, Target

Array = npt.NDArray[np.float64]
SHARE = Metric(name="score", chance=0.033, lower=0.0, upper=1.0)
PEER_DRAWS = 200
QUANTILES = (0.025, 0.05, 0.95, 0.975)


def settings(columns: dict[str, Array], i: int) -> dict[str, float]:
    """A design of the study as a user's settings."""
    return {"n_samples": float(columns["n"][i]), "good_view_fraction": float(columns["g"][i])}


def averaged(world: World, runs: Array, rng: np.random.Generator) -> Array:
    """Quantiles (4, targets) of `platocast fit` with the choice of laws left to it."""
    inside = np.clip(runs, 0.0, 1.0)
    records = [
        Run(
            run_id=f"r{i}-{k}",
            design=Design(settings=settings(dict(world.columns), i)),
            seed=k,
            status="finished",
            evaluations=(Evaluation(metric=SHARE, value=float(inside[i, k])),),
        )
        for i in range(runs.shape[0])
        for k in range(runs.shape[1])
    ]
    targets = [
        Target(target=f"t{i}", design=Design(settings=settings(dict(world.targets), i)))
        for i in range(len(world.target_truth))
    ]
    found = curve_quantiles(fit(records, metric="score", rng=rng), targets, rng)
    return np.array([found[str(q)] for q in QUANTILES])


def peer(world: World, runs: Array, *, link: bool) -> Array:
    """Quantiles (4, targets) of simple-scaling-laws; a study with g in it is none that its laws can take."""
    import polars as pl
    from simple_scaling_laws import fit as peer_fit

    name = "test_metric__" + ("accuracy" if link else "score")
    replicates = runs.shape[1]
    frame = pl.DataFrame(
        {
            "training_run_id": [f"r{i}" for i in range(runs.size)],
            "dataset_size__n": np.repeat(world.columns["n"], replicates),
            name: np.clip(runs, 0.0, 1.0).ravel() if link else runs.ravel(),
        }
    )
    law = "bounded-rational-power" if world.law.name.startswith("hill") else "separable-power"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = peer_fit(frame, law=law, n_draws=PEER_DRAWS, seed=0)
        said = model.predict({"dataset_size__n": world.targets["n"]}, quantiles=QUANTILES)
    return np.array([said[f"{name}__q{round(1000 * q):03d}"].to_numpy() for q in QUANTILES])


USERS: dict[str, Callable[[World, Array, np.random.Generator], Array]] = {
    "auto": averaged,
    "peer, its link": lambda world, runs, rng: peer(world, runs, link=True),
    "peer, no link": lambda world, runs, rng: peer(world, runs, link=False),
}


def rows_of(world: World, method: str, said: Array) -> list[dict[str, object]]:
    """Coverage of the intervals (studies, 4 quantiles, targets) at 90 and 95 %, clipped to what the metric can take."""
    clipped = np.clip(said, world.low, world.high)
    rows: list[dict[str, object]] = []
    for nominal, low, high in ((0.9, clipped[:, 1], clipped[:, 2]), (0.95, clipped[:, 0], clipped[:, 3])):
        inside = (low <= world.target_truth) & (world.target_truth <= high)
        rows += [
            {
                "world": world.name,
                "method": method,
                "target": label,
                "nominal": nominal,
                "coverage": float(inside[:, i].mean()),
                "width": float(np.median(high[:, i] - low[:, i])),
                "worlds": len(said),
            }
            for i, label in enumerate(world.labels)
        ]
    return rows
