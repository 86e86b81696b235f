"""Seed noise: pooled within designs, with its degrees of freedom and interval."""

import numpy as np
import pytest

from forecast.errors import ForecastError
from forecast.noise import seed_noise


def test_seed_noise_is_the_root_mean_square_of_analysis_of_variance():
    import pandas as pd
    from statsmodels.formula.api import ols

    rng = np.random.default_rng(0)
    designs = [0, 0, 0, 1, 1, 2, 3, 3, 3, 3]
    values = rng.normal(size=10).tolist()
    model = ols("y ~ C(d)", data=pd.DataFrame({"y": values, "d": designs})).fit()
    noise = seed_noise(values, designs)

    assert model.mse_resid**0.5 == pytest.approx(noise.sigma)
    assert (noise.degrees_of_freedom, noise.designs, noise.replicated, noise.runs) == (6, 4, 3, 10)


def test_its_interval_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(1)
    designs = [i // 2 for i in range(16)]
    hits = 0
    for _ in range(1000):
        noise = seed_noise(rng.normal(0, 2.0, 16).tolist(), designs)
        hits += noise.lower <= 2.0 <= noise.upper

    assert pytest.approx(hits, abs=21) == 950


def test_without_replicates_there_is_no_seed_noise():
    noise = seed_noise([1.0, 2.0], ["a", "b"])

    assert noise.sigma is None
    assert noise.degrees_of_freedom == 0


@pytest.mark.parametrize(("values", "designs"), [([], []), ([1.0], []), ([1.0, float("nan")], ["a", "a"])])
def test_nothing_uneven_or_nan_is_refused(values, designs):
    with pytest.raises(ForecastError, match="seed noise needs"):
        seed_noise(values, designs)
