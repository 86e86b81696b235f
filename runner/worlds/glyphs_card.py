"""The data card of the glyph world, written from its manifest."""

from __future__ import annotations

from typing import Any

__all__ = ["data_card"]


def data_card(manifest: dict[str, Any]) -> str:
    """The card as Markdown: what it is, counts, sources with licence and sha256, limits."""
    counts = manifest["counts"]
    sources = "\n".join(
        f"| {name} | `{s['package']}` {s['version']} | {s['author']} | {s['licence']} | {s['gives']} "
        f"| `{s['sha256']}` |"
        for name, s in manifest["sources"].items()
    )
    files = "\n".join(f"| `{name}` | `{digest}` |" for name, digest in manifest["files"].items())
    drawings = ", ".join(f"{name} {count:,}" for name, count in counts["drawings"].items())
    return f"""# The glyph world

A small real world of two modalities. A *scene* is an emoji. Its *text observations* are its name and
keywords in {len(manifest["languages"])} sources ({", ".join(manifest["languages"])}); its *image observations* are the
drawings of independent designers, rasterised to 32 x 32 pixels on white. Flags and skin tones are left out;
a scene needs drawings by at least three designers.

Built by `platocast world build glyphs`; a fresh machine needs only the files here.

| count | |
|---|---|
| scenes | {counts["scenes"]:,} ({counts["train_scenes"]:,} train, {counts["test_scenes"]:,} test) |
| texts | {counts["texts"]:,} ({counts["unique_texts"]:,} different) |
| drawings | {drawings} |

Split: {manifest["split"]}. The subword vocabulary is trained on train scenes only.

## Sources
| name | package | author | licence | gives | sha256 of the tarball |
|---|---|---|---|---|---|
{sources}

The licences are those of the sources and apart from this project's own. Changes made: texts are joined,
NFKC-normalised and case-folded; drawings are rasterised and composed on white.

## Files
| file | sha256 |
|---|---|
{files}

`scenes.jsonl`: a scene a line (code points, emoji, name, split, texts by source). `tokens.npz`: a row a text:
`tokens` (texts x 24 subword ids, 0 is padding), `length`, `scene` (row of scenes.jsonl), `source` (place in the
list of sources above). `images.npz`: `pixels` (scenes x designers x 32 x 32 x 3, bytes), `drawn` (scenes x
designers). `vocabulary.json`: the tokeniser, readable by the `tokenizers` library.

## Limits
Names and keywords are lists, not sentences. Translators of one source see one another's work, so two languages
are less independent than two people who describe a photo. Noto and its older version come from one company.
"""
