"""Build the glyph world from its source packages: scenes, texts, tokens, pixels, manifest."""

from __future__ import annotations

import hashlib
import io
import json
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from forecast.files import sha256_hex, write_atomically
from runner.worlds.glyphs_card import data_card
from runner.worlds.glyphs_sources import DESIGNERS, LANGUAGES, SOURCES, find_tarball, read_member

__all__ = ["FILES", "MAX_TOKENS", "TEST_SCENES", "VOCABULARY", "build_glyphs"]

FILES = ("scenes.jsonl", "vocabulary.json", "tokens.npz", "images.npz")
PIXELS, VOCABULARY, MAX_TOKENS, TEST_SCENES, LEAST_DESIGNERS = 32, 8000, 24, 300, 3
SPECIALS = ("[pad]", "[unk]", "[begin]")


def build_glyphs(packages: Path, out: Path, *, progress: Callable[[str, int, int], None]) -> dict[str, Any]:
    """Write the artefact under `out` from the npm tarballs in `packages` (fetched if absent); its manifest.

    progress: called with (what, done, total).
    Raises ForecastError if a source is missing or is not the recorded one.
    """
    tarballs = {name: find_tarball(name, packages) for name in SOURCES}
    drawings = {designer: _Drawings(designer, tarballs) for designer in DESIGNERS}
    scenes = list(_scenes(tarballs, drawings))
    _mark_split(scenes)
    lines = "".join(json.dumps(scene, ensure_ascii=False, sort_keys=True) + "\n" for scene in scenes)
    write_atomically(out / "scenes.jsonl", lines.encode())
    _write_tokens(scenes, out)
    pixels = np.full((len(scenes), len(DESIGNERS), PIXELS, PIXELS, 3), 255, np.uint8)
    drawn = np.zeros(pixels.shape[:2], bool)
    for index, scene in enumerate(scenes):
        for column, designer in enumerate(DESIGNERS):
            svg = drawings[designer].svg(scene["scene"], scene["name"])
            if svg is not None:
                pixels[index, column], drawn[index, column] = _rasterise(svg), True
        progress("rasterise", index + 1, len(scenes))
    _save_arrays(out / "images.npz", pixels=pixels, drawn=drawn)
    manifest = _manifest(scenes, drawn, out)
    write_atomically(out / "manifest.json", (json.dumps(manifest, indent=1) + "\n").encode())
    write_atomically(out / "README.md", data_card(manifest).encode())
    return manifest


class _Drawings:
    """One designer's icons, found by code points or, where a set has none, by name."""

    def __init__(self, designer: str, tarballs: dict[str, Path]) -> None:
        self.icons = json.loads(read_member(tarballs[designer], "icons.json"))
        self.by_points: dict[str, str] = {}
        if designer not in ("noto-v1", "fxemoji"):
            listed = json.loads(read_member(tarballs[designer], "chars.json"))
            self.by_points = {_without_selector(points): icon for points, icon in listed.items()}
        self.squeezed = designer == "fxemoji"

    def svg(self, scene: str, name: str) -> str | None:
        """The drawing of a scene as an SVG document, or None if this designer has not drawn it."""
        icon: str | None = self.by_points.get(scene)
        if not self.by_points:
            icon = name.replace("-", "") if self.squeezed else name
        while icon in self.icons.get("aliases", {}):
            icon = self.icons["aliases"][icon]["parent"]
        if icon not in self.icons["icons"]:
            return None
        entry = {key: self.icons.get(key) for key in ("left", "top", "width", "height")} | self.icons["icons"][icon]
        box = f"{entry['left'] or 0} {entry['top'] or 0} {entry['width']} {entry['height']}"
        return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}">{entry["body"]}</svg>'


def _without_selector(points: str) -> str:
    return "-".join(part for part in points.split("-") if part != "fe0f")


def _scenes(tarballs: dict[str, Path], drawings: dict[str, _Drawings]) -> Iterator[dict[str, Any]]:
    """Every emoji drawn by enough designers, flags and skin tones left out, in code point order."""
    annotations = {
        language: json.loads(read_member(tarballs["cldr"], f"annotations/{language}/annotations.json"))["annotations"][
            "annotations"
        ]
        for language in LANGUAGES
    }
    second = {
        _points(emoji): words
        for emoji, words in json.loads(read_member(tarballs["emojilib"], "dist/emoji-en-US.json")).items()
    }
    for emoji in sorted(annotations["en"]):
        scene = _points(emoji)
        if any(0x1F3FB <= ord(c) <= 0x1F3FF or 0x1F1E6 <= ord(c) <= 0x1F1FF or ord(c) == 0x1F3F4 for c in emoji):
            continue
        name = next((d.by_points[scene] for d in drawings.values() if scene in d.by_points), None)
        if name is None or sum(d.svg(scene, name) is not None for d in drawings.values()) < LEAST_DESIGNERS:
            continue
        texts = {
            language: _observation(entries[emoji].get("tts", [""])[0], entries[emoji].get("default", []))
            for language, entries in annotations.items()
            if emoji in entries
        }
        if scene in second:
            texts["en-emojilib"] = _observation(second[scene][0].replace("_", " "), second[scene][1:])
        yield {"scene": scene, "emoji": emoji, "name": name, "texts": texts}


def _points(emoji: str) -> str:
    return "-".join(f"{ord(c):x}" for c in emoji if ord(c) != 0xFE0F)


def _observation(name: str, keywords: list[str]) -> str:
    """One text of a scene: its name, then the keywords that add something, lower case, NFKC."""
    words = [name, *(keyword for keyword in keywords if keyword.casefold() != name.casefold())]
    return unicodedata.normalize("NFKC", ", ".join(words)).casefold()


def _mark_split(scenes: list[dict[str, Any]]) -> None:
    """Test scenes are those of smallest hash: fixed by their names alone, whatever the order."""
    by_hash = sorted(scenes, key=lambda scene: hashlib.sha256(f"glyphs-1/{scene['scene']}".encode()).hexdigest())
    for rank, scene in enumerate(by_hash):
        scene["split"] = "test" if rank < TEST_SCENES else "train"


def _write_tokens(scenes: list[dict[str, Any]], out: Path) -> None:
    """Train the subword vocabulary on train scenes only, tokenise every text once."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(unk_token=SPECIALS[1]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Punctuation(behavior="removed"), pre_tokenizers.Metaspace()]
    )
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=list(SPECIALS), show_progress=False)
    seen = [text for scene in scenes if scene["split"] == "train" for text in scene["texts"].values()]
    tokenizer.train_from_iterator(seen, trainer)
    write_atomically(out / "vocabulary.json", tokenizer.to_str(pretty=False).encode())
    sources = [*LANGUAGES, "en-emojilib"]
    rows = [
        (index, sources.index(source), tokenizer.encode(scene["texts"][source]).ids[:MAX_TOKENS])
        for index, scene in enumerate(scenes)
        for source in sources
        if source in scene["texts"]
    ]
    tokens = np.zeros((len(rows), MAX_TOKENS), np.uint16)
    for row, (_, _, ids) in enumerate(rows):
        tokens[row, : len(ids)] = ids
    _save_arrays(
        out / "tokens.npz",
        tokens=tokens,
        length=np.array([len(ids) for _, _, ids in rows], np.uint8),
        scene=np.array([index for index, _, _ in rows], np.uint16),
        source=np.array([source for _, source, _ in rows], np.uint8),
    )


def _rasterise(svg: str) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """An SVG document as 32 x 32 x 3 bytes on white."""
    import resvg_py
    from PIL import Image

    png = resvg_py.svg_to_bytes(svg_string=svg, width=PIXELS, height=PIXELS, background="white", skip_system_fonts=True)
    image = Image.open(io.BytesIO(bytes(png))).convert("RGB")
    canvas = Image.new("RGB", (PIXELS, PIXELS), "white")
    canvas.paste(image, ((PIXELS - image.width) // 2, (PIXELS - image.height) // 2))
    return np.asarray(canvas, np.uint8)


def _save_arrays(path: Path, **arrays: np.ndarray[Any, Any]) -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    write_atomically(path, buffer.getvalue())


def _manifest(scenes: list[dict[str, Any]], drawn: np.ndarray[Any, Any], out: Path) -> dict[str, Any]:
    texts = [text for scene in scenes for text in scene["texts"].values()]
    return {
        "format": "platocast-world-1",
        "world": "glyphs",
        "sources": {name: vars(source) for name, source in SOURCES.items()},
        "files": {name: sha256_hex((out / name).read_bytes()) for name in FILES},
        "counts": {
            "scenes": len(scenes),
            "train_scenes": sum(scene["split"] == "train" for scene in scenes),
            "test_scenes": sum(scene["split"] == "test" for scene in scenes),
            "texts": len(texts),
            "unique_texts": len(set(texts)),
            "drawings": {name: int(drawn[:, column].sum()) for column, name in enumerate(DESIGNERS)},
        },
        "languages": [*LANGUAGES, "en-emojilib"],
        "designers": list(DESIGNERS),
        "split": f"test: the {TEST_SCENES} scenes of smallest sha256('glyphs-1/' + scene)",
    }
