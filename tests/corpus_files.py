"""Small caption and picture files in the formats of published corpora, generated, and features of their scenes."""

import json
from pathlib import Path

import numpy as np

from runner.corpora.captions_build import Recipe, build_captions
from runner.corpora.reference import add_reference
from runner.corpora.sources import captions_of

COLOURS = ("red", "green", "blue", "black", "white", "brown", "orange", "grey")
THINGS = ("dog", "boat", "house", "tree", "horse", "bird", "chair", "train")
PLACES = ("beach", "street", "field", "kitchen", "lake", "roof", "garden", "market")
SPLITS = ("train", "train", "train", "restval", "test", "val", "train", "test")


def sentences(scene: int, count: int = 5) -> list[str]:
    """Captions of a scene: colour, thing and place follow from its number, the words around them vary."""
    colour, thing, place = COLOURS[scene % 8], THINGS[scene // 8 % 8], PLACES[scene // 64 % 8]
    forms = (
        f"A {colour} {thing} on the {place}.",
        f"There is a {thing} that is {colour}, near the {place}.",
        f"{colour.capitalize()} {thing} by the {place}",
        f"the {place} with one {colour} {thing}",
        f"Somebody saw a {thing} ({colour}) at the {place} number {scene}.",
    )
    return list(forms[:count])


def karpathy(path: Path, scenes: int = 160) -> Path:
    """A file as of Flickr30k's and COCO's Karpathy splits."""
    images = [
        {
            "sentids": [5 * scene + k for k in range(5)],
            "imgid": scene,
            "sentences": [
                {"tokens": text.lower().split(), "raw": text, "imgid": scene, "sentid": 5 * scene + k}
                for k, text in enumerate(sentences(scene))
            ],
            "split": SPLITS[scene % 8 if scene % 3 else 0],
            "filename": f"{scene:06d}.jpg",
        }
        for scene in range(scenes)
    ]
    path.write_text(json.dumps({"images": images, "dataset": "flickr30k"}), "utf-8")
    return path


def recap(path: Path, scenes: int = 160, first: int = 0) -> Path:
    """A file as of Recap-DataComp-1B: alt-text and a model's caption of each image, some without alt-text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = range(first, first + scenes)
    table = pa.table(
        {
            "url": [f"https://example.org/{row}.jpg" for row in rows],
            "re_caption": [" ".join(sentences(row, 2)) for row in rows],
            "org_caption": [None if row % 10 == 3 else sentences(row)[2] for row in rows],
            "sha256": [f"{row:064x}" for row in rows],
            "key": [f"{row:012d}" for row in rows],
            "re_clip_score": [0.3] * scenes,
        }
    )
    pq.write_table(table, path, row_group_size=50)
    return path


def lines(path: Path, scenes: int = 160, first: int = 0) -> Path:
    """JSONL: one object a scene with a list of texts."""
    rows = ({"image": f"s{k}", "captions": sentences(k)} for k in range(first, first + scenes))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def silent(what: str, done: int, total: int) -> None:
    """Progress that nobody sees."""


def built(folder: Path, *, reference: bool = True) -> Path:
    """A corpus of the Karpathy file, with reference features that know colour, thing and place."""
    corpus = folder / "corpus"
    source = karpathy(folder / "dataset.json")
    build_captions([source], Recipe(captions_of("karpathy"), None, vocabulary=300, longest=24), corpus, progress=silent)
    if reference:
        features(folder / "features.npz", [f"{scene:06d}.jpg" for scene in range(160)])
        add_reference(corpus, folder / "features.npz", name="toy")
    return corpus


def features(path: Path, ids: list[str]) -> np.ndarray:
    """One-hot colour, thing and place, with a little noise, of scenes named by a number."""
    numbers = np.array([int("".join(filter(str.isdigit, name))) for name in ids])
    parts = [np.eye(8)[numbers // step % 8] for step in (1, 8, 64)]
    array = np.concatenate(parts, axis=1) + 0.05 * np.random.default_rng(0).standard_normal((len(ids), 24))
    np.savez(path, features=array.astype(np.float32), ids=np.array(ids))
    return array
