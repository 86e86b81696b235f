"""The scores of a text encoder against the fixed image reference."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from forecast.code import evaluation_code_hash, own_root
from forecast.errors import ForecastError
from forecast.files import sha256_hex
from forecast.records import Evaluation, Metric
from runner.metrics.knn import mutual_knn_hits, nearest_neighbours
from runner.metrics.rotation import fit_rotation, retrieval_hits
from runner.worlds.glyphs import Glyphs, TextTable

__all__ = ["PRIMARY", "caption_draws", "evaluate_text"]

Array = np.ndarray[Any, Any]
PRIMARY = "mutual_knn_unseen"


def caption_draws(table: TextTable, *, draws: int, seed: int) -> Array:
    """Which text speaks for each scene in each draw: rows of the table, (draws, scenes).

    The draws belong to the design (seed = evaluation.seed), never to the run's seed.
    """
    rng = np.random.default_rng(seed)
    return table.first + rng.integers(table.count, size=(draws, len(table.count)))


def evaluate_text(codes: Array, world: Glyphs, full: Mapping[str, Any]) -> tuple[Evaluation, ...]:
    """Every score of a completed design's codes (texts, code), each with its hits per item.

    mutual_knn_unseen (primary): one caption per unseen scene against the reference, averaged over draws.
    mutual_knn_all: the same over all scenes. mutual_knn_unseen_mean: unseen scenes, codes averaged over texts.
    retrieval_at_1_unseen: text to image after a rotation fitted on train scenes, one caption per unseen scene.
    """
    if world.reference is None:
        raise ForecastError("the world has no reference features; run 'platocast world reference glyphs' first")
    reference, test, k = world.reference, world.test, full["evaluation.neighbours"]
    captions = caption_draws(world.tokens, draws=full["evaluation.draws"], seed=full["evaluation.seed"])
    items = sha256_hex(
        f"{world.hash}/{world.reference_hash}/{k}/{full['evaluation.draws']}/{full['evaluation.seed']}".encode()
    )
    means = np.stack(
        [codes[a : a + n].mean(axis=0) for a, n in zip(world.tokens.first, world.tokens.count, strict=True)]
    )
    near_unseen = nearest_neighbours(reference[test], k)
    near_all = nearest_neighbours(reference, k)
    rotation = fit_rotation(means[~test], reference[~test])
    unseen = sum(mutual_knn_hits(codes[rows[test]], near_unseen, k=k) for rows in captions)
    everything = sum(mutual_knn_hits(codes[rows], near_all, k=k) for rows in captions)
    averaged = mutual_knn_hits(means[test], near_unseen, k=k)
    retrieved = sum(retrieval_hits(rotation(codes[rows[test]]), reference[test]) for rows in captions)
    draws = len(captions)
    return (
        _evaluation(PRIMARY, unseen, draws * k, k / (int(test.sum()) - 1), items),
        _evaluation("mutual_knn_all", everything, draws * k, k / (len(test) - 1), items),
        _evaluation("mutual_knn_unseen_mean", averaged, k, k / (int(test.sum()) - 1), items),
        _evaluation("retrieval_at_1_unseen", retrieved, draws, 1 / int(test.sum()), items),
    )


def _evaluation(name: str, hits: Any, trials: int, chance: float, items: str) -> Evaluation:
    metric = Metric(name=name, higher_is_better=True, chance=chance, lower=0.0, upper=1.0, items_hash=items)
    value = float(hits.sum()) / (len(hits) * trials)
    return Evaluation(
        metric=metric, value=value, hits=tuple(int(h) for h in hits), trials=trials, code_hash=_own_code()
    )


@cache
def _own_code() -> str:
    return evaluation_code_hash(own_root())
