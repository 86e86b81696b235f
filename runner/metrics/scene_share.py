"""How much of the features' variance the scene explains, when several observations of each scene are at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forecast.errors import ForecastError

__all__ = ["SceneShare", "scene_share"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class SceneShare:
    """Scene-explained variance of one set of features.

    plug_in: variance between scenes / total variance, as the data show it; its chance level, (scenes - 1) /
    (observations - 1), is far from 0 when scenes have few observations.
    intraclass: the estimate of the share in the population, ICC(1); chance 0, negative values are possible.
    errors: standard errors by leaving out one scene at a time.
    """

    plug_in: float
    plug_in_error: float
    chance: float
    intraclass: float
    intraclass_error: float
    scenes: int
    observations: int


def scene_share(features: Array, scenes: Array) -> SceneShare:
    """The share of the variance, summed over dimensions, that lies between scenes.

    features: (observations, dimensions). scenes: (observations,), which scene each is of; some scene must have two.
    Source: Shrout & Fleiss (1979), doi 10.1037/0033-2909.86.2.420, ICC(1,1); McGraw & Wong (1996),
    doi 10.1037/1082-989X.1.1.30, for unequal numbers of observations.
    """
    x = np.asarray(features, np.float64)
    names, member, counts = np.unique(np.asarray(scenes), return_inverse=True, return_counts=True)
    if x.ndim != 2 or len(member) != len(x):
        raise ForecastError(f"each observation needs its scene, got {len(member)} scenes for shape {x.shape}")
    if len(names) < 3 or len(x) - counts.max() <= len(names) - 1:
        raise ForecastError(
            f"{len(x)} observations of {len(names)} scenes do not tell variance within scenes from variance between; "
            "give at least 3 scenes, of which two have several observations"
        )
    x = x - x.mean(axis=0)
    sums = np.zeros((len(names), x.shape[1]))
    np.add.at(sums, member, x)
    squares = np.zeros(len(names))
    np.add.at(squares, member, np.square(x).sum(axis=1))
    if not squares.sum() > 0:
        raise ForecastError("all observations have the same features: there is no variance to explain")
    between = np.square(sums).sum(axis=1) / counts
    plug_in, intraclass = _shares(squares.sum(), between.sum(), sums.sum(axis=0), counts, np.zeros(1), np.zeros(1))
    without = _shares(
        squares.sum() - squares, between.sum() - between, sums.sum(axis=0) - sums, counts, counts, np.ones(len(names))
    )
    errors = [float(np.sqrt((len(names) - 1) * values.var())) for values in without]
    return SceneShare(
        plug_in=float(plug_in[0]),
        plug_in_error=errors[0],
        chance=(len(names) - 1) / (len(x) - 1),
        intraclass=float(intraclass[0]),
        intraclass_error=errors[1],
        scenes=len(names),
        observations=len(x),
    )


def _shares(
    squares: Array, of_means: Array, sums: Array, counts: Array, left_out: Array, scenes_out: Array
) -> tuple[Array, Array]:
    """Plug-in share and ICC(1) of all scenes but one, for each one; left_out: its observations, 0 for none."""
    observations, scenes = counts.sum() - left_out, len(counts) - scenes_out
    grand = np.square(np.atleast_2d(sums)).sum(axis=1) / observations
    between, total = of_means - grand, squares - grand
    mean_between = between / (scenes - 1)
    mean_within = (total - between) / (observations - scenes)
    size = (observations - (np.square(counts).sum() - np.square(left_out)) / observations) / (scenes - 1)
    return between / total, (mean_between - mean_within) / (mean_between + (size - 1) * mean_within)
