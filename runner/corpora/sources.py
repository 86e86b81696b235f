"""What a caption corpus is read from: files, their format, which fields hold scene and texts, who wrote them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from forecast.errors import ForecastError
from forecast.records import Record

__all__ = ["FORMATS", "CaptionSource", "TextField", "captions_of"]

Format = Literal["karpathy", "recap", "jsonl", "parquet"]


class TextField(Record):
    """A field of texts, one text or a list of them, and who wrote them.

    authors: "human", "alt-text", "procedure", or "model:NAME".
    """

    field: Annotated[str, Field(min_length=1)]
    authors: str

    @field_validator("authors")
    @classmethod
    def _known(cls, value: str) -> str:
        if not re.fullmatch(r"human|alt-text|procedure|model:\S.*", value):
            raise ValueError(f"must be human, alt-text, procedure or model:NAME, got {value!r}")
        return value


class CaptionSource(Record):
    """How to read files of captions. scene: the field that names the scene; split: the field of its split."""

    format: Format
    scene: str
    texts: Annotated[tuple[TextField, ...], Field(min_length=1)]
    split: str | None = None

    @property
    def authors(self) -> str:
        """Who wrote the texts, in one line."""
        fields: dict[str, list[str]] = {}
        for text in self.texts:
            fields.setdefault(text.authors, []).append(text.field)
        return "; ".join(f"{authors} ({', '.join(names)})" for authors, names in fields.items())


# What is known of published files. Karpathy & Fei-Fei (2015), doi 10.1109/CVPR.2015.7298932: Flickr30k and COCO with
# five sentences an image, written by people. Recap-DataComp-1B, Li et al. (2024), arXiv 2406.08478.
FORMATS: Mapping[str, CaptionSource | None] = {
    "karpathy": CaptionSource(
        format="karpathy",
        scene="filename",
        texts=(TextField(field="sentences", authors="human"),),
        split="split",
    ),
    "recap": CaptionSource(
        format="recap",
        scene="key",
        texts=(
            TextField(field="org_caption", authors="alt-text"),
            TextField(field="re_caption", authors="model:LLaVA-1.5-LLaMA3-8B"),
        ),
    ),
    "jsonl": None,
    "parquet": None,
}


def captions_of(
    kind: str, *, scene: str | None = None, texts: Mapping[str, str] | None = None, split: str | None = None
) -> CaptionSource:
    """The source of a format, with what is given in place of what is known of it.

    texts: field -> authors. A format of no fixed fields needs scene and texts.
    """
    if kind not in FORMATS:
        raise ForecastError(f"no caption format is named {kind!r}; there are {', '.join(FORMATS)}")
    known = FORMATS[kind]
    if known is None and (scene is None or not texts):
        raise ForecastError(
            f"format {kind} has no fixed fields; name the scene's (--scene FIELD) and the texts' "
            "with who wrote them (--text FIELD=human, =alt-text, =procedure or =model:NAME)"
        )
    fields = tuple(TextField(field=name, authors=authors) for name, authors in (texts or {}).items())
    return CaptionSource(
        format=kind,
        scene=scene or (known.scene if known else ""),
        texts=fields or (known.texts if known else ()),
        split=split or (known.split if known else None),
    )


def files_of(paths: list[Path], kind: str) -> list[Path]:
    """The files to read, folders replaced by their files of the format, in order of name."""
    endings = {"karpathy": (".json",), "jsonl": (".jsonl", ".ndjson")}.get(kind, (".parquet",))
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(p for p in path.rglob("*") if p.suffix.lower() in endings and p.is_file())
        elif path.is_file():
            found.append(path)
        else:
            raise ForecastError(f"{path} does not exist; give files of captions, or folders of them")
    if not found:
        raise ForecastError(f"no {' or '.join(endings)} file under {', '.join(map(str, paths))}")
    return found
