"""Whether less of a metric is better, guessed from its name where nobody said so."""

from __future__ import annotations

__all__ = ["less_is_better"]

_LESS = {"loss", "nll", "perplexity", "ppl", "rmse", "mse", "mae", "error", "bits", "bpb"}


def less_is_better(name: str) -> bool:
    """Whether the name holds a word such as loss, error or perplexity."""
    return not _LESS.isdisjoint(name.lower().replace("/", "_").replace("-", "_").split("_"))
