"""Which noise a fit rests on: a constant SD, or one that depends on the mean where replicates show it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forecast.dataset import Dataset
from forecast.engine import Loss
from forecast.estimation import fit_law
from forecast.laws.law import Law
from forecast.noise import Noise
from forecast.noise_model import NoiseModel, constancy_of, fresh_items, mean_dependent, read_noise
from forecast.records import Run

__all__ = ["SUPPORTED", "settled_noise"]

SUPPORTED = 0.05  # p value of a constant SD below which `auto` lets it depend on the mean


def settled_noise(
    data: Dataset, laws: Sequence[Law], asked: str, runs: Sequence[Run], rng: np.random.Generator
) -> tuple[Dataset, Noise]:
    """The data with each design's worth, and the noise, under the noise model that was asked for.

    asked: auto, constant, mean or fresh-items=NUMBER. The SD is taken at a smooth mean, that of the law which fits
    best with a constant SD: at the design's own mean, low outcomes would weigh more than high ones.
    Raises ForecastError where the model does not go with the data.
    """
    name, items = read_noise(asked)
    p_value = constancy_of(data.values, data.owner, data.weights, data.means, rng)
    if name == "fresh-items":
        assert items is not None
        found = fresh_items(items, data.plain, runs, data.metric.name)
        return _with(data, found.model_copy(update={"p_value": p_value}), data.plain)
    if name == "mean" or (name == "auto" and p_value is not None and p_value < SUPPORTED):
        smooth = _smooth(data, laws, rng)
        model = mean_dependent(data.values, data.owner, data.weights, smooth, p_value)
        return _with(data, model, smooth)
    return data, data.noise.model_copy(update={"dependence": NoiseModel(p_value=p_value)})


def _with(data: Dataset, model: NoiseModel, means: np.ndarray) -> tuple[Dataset, Noise]:
    weighed = data.with_factor(model.factor(means))
    noise = weighed.noise
    if noise.sigma is None and model.items is not None:
        centre = model.centre
        noise = noise.model_copy(update={"sigma": float(np.sqrt(centre * (1 - centre) / model.items))})
    return weighed, noise.model_copy(update={"model": model.name, "dependence": model})


def _smooth(data: Dataset, laws: Sequence[Law], rng: np.random.Generator) -> np.ndarray:
    """Fitted means of the law with the smallest AICc under a constant SD; the design means where no law fits."""
    noise = data.noise
    fits = [fit_law(law, data, noise=noise, loss=Loss(), rng=rng) for law in laws]
    able = [f for f in fits if f.usable and np.isfinite(f.aicc)]
    if not able:
        return data.means
    best = min(able, key=lambda f: f.aicc)
    return np.asarray(np.clip(data.means - best.residual, data.means.min(), data.means.max()))
