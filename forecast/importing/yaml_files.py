"""YAML as wandb, MLflow and Hydra write it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forecast.errors import ForecastError

__all__ = ["read_yaml"]


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; an empty file is an empty mapping."""
    import yaml

    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ForecastError(f"{path} is not YAML: {str(error).splitlines()[0]}; restore the file") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ForecastError(f"{path} holds no names and values; restore the file")
    return value
