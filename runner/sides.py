"""One modality of the glyph world, ready to train: encoder, pairs, and the codes of all its observations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from runner.encoders import ConvNet, NGramBag, TextTransformer, initialise
from runner.streams import Streams
from runner.training import in_batches
from runner.views import ImagePairs, TextPairs
from runner.worlds.glyphs import Glyphs, TextTable, ngram_table

__all__ = ["ImageSide", "Side", "TextSide", "image_side", "text_side"]

Array = np.ndarray[Any, Any]


class Side(Protocol):
    """What training and scoring need of a modality."""

    @property
    def encoder(self) -> nn.Module:
        """From inputs to codes."""

    @property
    def pairs(self) -> TextPairs | ImagePairs:
        """Where positive pairs come from, with what was drawn so far."""

    def draw(self, size: int) -> tuple[Array, ...]:
        """The views of the next pairs: arrays (2, size, ...)."""

    def collate(self, arrays: tuple[Array, ...]) -> tuple[Tensor, ...]:
        """The encoder's inputs for a share of them, both views stacked: (2 * share, ...)."""

    def state(self) -> dict[str, Any]:
        """Where the drawing stands."""

    def restore(self, state: dict[str, Any]) -> None:
        """Put the drawing where it stood."""

    def codes(self) -> Array:
        """Codes of every observation, unmasked, (observations, code) float32."""

    def training_flops(self, samples: int) -> int:
        """Floating-point operations of training on so many samples: matrix products, forward and backward.

        Twice the forward pass for the backward one, but for what needs no gradient: SIGReg's directions, pixels.
        """


class _Drawn:
    """What every side asks of its pairs."""

    pairs: TextPairs | ImagePairs

    def draw(self, size: int) -> tuple[Array, ...]:
        return self.pairs.draw(size)

    def state(self) -> dict[str, Any]:
        return self.pairs.state()

    def restore(self, state: dict[str, Any]) -> None:
        self.pairs.restore(state)


class TextSide(_Drawn):
    """Texts and an encoder of them."""

    pairs: TextPairs

    def __init__(
        self, table: TextTable, pairs: TextPairs, encoder: TextTransformer | NGramBag, *, projections: int = 0
    ) -> None:
        self.table, self.pairs, self.encoder, self.projections = table, pairs, encoder, projections

    def collate(self, arrays: tuple[Array, ...]) -> tuple[Tensor, ...]:
        return tuple(torch.from_numpy(part.reshape(-1, part.shape[-1])) for part in arrays)

    def codes(self) -> Array:
        """Texts go through in order of length, so that a batch carries little padding."""
        order = np.argsort(self.table.length, kind="stable")
        ids, length = torch.from_numpy(self.table.ids[order]), self.table.length[order]
        places = torch.arange(ids.shape[1], dtype=torch.int32)

        def inputs(part: slice) -> tuple[Tensor, Tensor]:
            short = ids[part, : int(length[part].max())]
            return short, torch.where(short != 0, places[: short.shape[1]], 0)

        codes = _encode(self.encoder, len(ids), inputs)
        restored = np.empty_like(codes)
        restored[order] = codes
        return restored

    def training_flops(self, samples: int) -> int:
        return 3 * self.encoder.flops(2 * samples, self.pairs.view_length) + 2 * self.projections * samples


class ImageSide(_Drawn):
    """Drawings and an encoder of them."""

    def __init__(self, world: Glyphs, pairs: ImagePairs, encoder: ConvNet, *, projections: int = 0) -> None:
        self.world, self.pairs, self.encoder, self.projections = world, pairs, encoder, projections

    def collate(self, arrays: tuple[Array, ...]) -> tuple[Tensor, ...]:
        pixels, windows = arrays
        return (_crop(_scaled(pixels.reshape(-1, 32, 32, 3)), torch.from_numpy(windows.reshape(-1, 6))),)

    def codes(self) -> Array:
        flat = self.world.pixels.reshape(-1, 32, 32, 3)
        return _encode(self.encoder, len(flat), lambda part: (_scaled(flat[part]),))

    def training_flops(self, samples: int) -> int:
        views = 2 * samples
        return 3 * self.encoder.flops(views) - self.encoder.first_flops(views) + 2 * self.projections * samples


def text_side(world: Glyphs, full: Mapping[str, Any], streams: Streams) -> TextSide:
    """The text side of a completed design."""
    order = streams.order_rng()
    bag = full["encoder"] == "ngram_bag"
    table = ngram_table(world) if bag else world.tokens
    sizes = {"vocabulary": table.vocabulary, "width": full["encoder.width"], "code": full["encoder.code"]}
    encoder: TextTransformer | NGramBag
    if bag:
        encoder = NGramBag(**sizes)
    else:
        longest = table.ids.shape[1]
        encoder = TextTransformer(**sizes, longest=longest, layers=full["encoder.layers"], heads=full["encoder.heads"])
    initialise(encoder, streams.init_generator())
    pairs = TextPairs(
        table,
        np.flatnonzero(~world.test),
        good_view_fraction=full["good_view_fraction"],
        mask_rate=full["view.mask_rate"],
        view_length=full["view.length"],
        rng=order,
        view_rng=streams.views_rng(order),
    )
    return TextSide(table, pairs, encoder, projections=_projections(full))


def image_side(world: Glyphs, full: Mapping[str, Any], streams: Streams) -> ImageSide:
    """The image side of a completed design."""
    order = streams.order_rng()
    encoder = ConvNet(width=full["encoder.width"], code=full["encoder.code"])
    initialise(encoder, streams.init_generator())
    pairs = ImagePairs(
        world.pixels,
        world.drawn,
        np.flatnonzero(~world.test),
        good_view_fraction=full["good_view_fraction"],
        least_side=full["view.least_side"],
        rng=order,
        view_rng=streams.views_rng(order),
    )
    return ImageSide(world, pairs, encoder, projections=_projections(full))


def _projections(full: Mapping[str, Any]) -> int:
    """Floating-point operations of SIGReg's projections of both views of a sample."""
    return 2 * 2 * int(full["encoder.code"]) * int(full["sigreg.directions"])


def _encode(encoder: nn.Module, rows: int, inputs: Callable[[slice], tuple[Tensor, ...]]) -> Array:
    encoder.eval()
    with torch.no_grad():
        parts = [encoder(*inputs(part)) for part in in_batches(rows, 256)]
    codes: Array = torch.cat(parts).numpy()
    return codes


def _scaled(pixels: Array) -> Tensor:
    """Bytes (batch, 32, 32, 3) as floats in [-1, 1], (batch, 3, 32, 32)."""
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 127.5 - 1


def _crop(pixels: Tensor, windows: Tensor) -> Tensor:
    """Each picture's window, resized to 32 x 32, its channels scaled."""
    side = windows[:, 2]
    theta = torch.zeros(len(windows), 2, 3)
    theta[:, 0, 0], theta[:, 1, 1], theta[:, :, 2] = side, side, windows[:, :2]
    grid = functional.affine_grid(theta, list(pixels.shape), align_corners=False)
    return functional.grid_sample(pixels, grid, align_corners=False, padding_mode="border") * windows[:, 3:, None, None]
