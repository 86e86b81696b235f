"""The subword vocabulary of a corpus: trained on its train texts, or a file made elsewhere."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from forecast.errors import ForecastError

__all__ = ["Tokeniser", "text_hashes", "train_vocabulary"]

Array = np.ndarray[Any, Any]
PADDING = ("[pad]", "[PAD]", "<pad>")
SPECIALS = ("[pad]", "[unk]", "[begin]")


def train_vocabulary(texts: Iterable[str], size: int) -> str:
    """A BPE vocabulary of at most `size` ids as the `tokenizers` library's JSON, the same for the same texts.

    Texts are case-folded and NFKC-normalised. Source: Sennrich et al. (2016), doi 10.18653/v1/P16-1162.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(unk_token=SPECIALS[1]))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Punctuation(behavior="isolated"), pre_tokenizers.Metaspace()]
    )
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=list(SPECIALS), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    text: str = tokenizer.to_str(pretty=False)
    return text


class Tokeniser:
    """From texts to ids > 0; 0 is left to padding, whatever the vocabulary's own ids are."""

    def __init__(self, vocabulary: str, *, longest: int) -> None:
        from tokenizers import Tokenizer

        try:
            self._inner: Any = Tokenizer.from_str(vocabulary)
        except Exception as error:  # the library raises bare Exception
            raise ForecastError(f"not a vocabulary of the `tokenizers` library: {error}") from error
        self._inner.no_padding()
        self._inner.enable_truncation(longest)
        self._shift = 0 if any(self._inner.token_to_id(name) == 0 for name in PADDING) else 1
        self.vocabulary = int(self._inner.get_vocab_size()) + self._shift
        self.dtype = np.dtype("<u2") if self.vocabulary <= 2**16 else np.dtype("<u4")

    def encode(self, texts: list[str]) -> tuple[Array, Array]:
        """All ids one after another, and how many of them each text has: (ids,), (texts,)."""
        rows = [row.ids for row in self._inner.encode_batch_fast(texts, add_special_tokens=False)]
        length = np.fromiter(map(len, rows), np.int64, len(rows))
        ids = np.fromiter((number for row in rows for number in row), np.int64, int(length.sum()))
        return (ids + self._shift).astype(self.dtype), length


def text_hashes(texts: list[str]) -> Array:
    """A 64-bit hash of each text, equal for texts that differ only in case, width or white space: (texts,)."""
    found = (
        hashlib.blake2b(" ".join(unicodedata.normalize("NFKC", text).casefold().split()).encode(), digest_size=8)
        for text in texts
    )
    return np.frombuffer(b"".join(digest.digest() for digest in found), "<u8")


def read_vocabulary(path: Path) -> str:
    """The text of a vocabulary file."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ForecastError(f"{path} cannot be read as a vocabulary (tokenizer.json): {error}") from error
