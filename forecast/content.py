"""Where the shipped content (worlds, pilot ledgers, studies) lies: in a checkout or in the wheel."""

from __future__ import annotations

from pathlib import Path

from forecast.errors import ForecastError

__all__ = ["content_path"]


def content_path(name: str) -> Path:
    """The path of shipped content, e.g. "glyphs" or "runs/glyphs-pilot.jsonl".

    In a checkout it is `data/NAME`, in an installed wheel `runner/content/NAME`.
    Raises ForecastError if neither exists.
    """
    root = Path(__file__).resolve().parents[1]
    for base in (root / "data", root / "runner" / "content"):
        if (base.parent / "pyproject.toml").is_file() or base.parent.name == "runner":
            path = base / name
            if path.exists():
                return path
    raise ForecastError(f"shipped content {name!r} is not installed beside {root}; reinstall platocast")
