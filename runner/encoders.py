"""Encoders from observations to codes, and what one forward pass of each costs."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["ConvNet", "NGramBag", "TextTransformer", "initialise"]


class TextTransformer(nn.Module):
    """A pre-norm Transformer over token ids, mean-pooled to a code.

    forward: ids, positions (batch, length), 0 is padding -> codes (batch, code). A row must hold a token.
    Source: Vaswani et al. (2017), arXiv 1706.03762; pre-norm: Xiong et al. (2020), arXiv 2002.04745.
    """

    def __init__(self, *, vocabulary: int, longest: int, width: int, layers: int, heads: int, code: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(longest, width)
        self.blocks = nn.ModuleList(_Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, code)

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        present = ids != 0
        bias = torch.zeros(ids.shape, dtype=self.head.weight.dtype, device=ids.device)
        bias = bias.masked_fill(~present, -1e9)[:, None, None, :]
        x = self.tokens(ids) + self.positions(positions)
        for block in self.blocks:
            x = block(x, bias)
        share = present / present.sum(dim=1, keepdim=True)
        pooled = torch.einsum("bl,blw->bw", share.to(x.dtype), self.norm(x))
        code: Tensor = self.head(pooled)
        return code

    def flops(self, batch: int, length: int) -> int:
        """Floating-point operations of one forward pass: matrix products and attention, padding included."""
        width, rows = self.head.in_features, batch * length
        per_block = 2 * rows * 8 * width * width + 4 * rows * length * width
        return len(self.blocks) * per_block + 2 * rows * width + 2 * batch * width * self.head.out_features


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        batch, length, width = x.shape
        mixed = self.mix(self.before_attention(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = mixed.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-1, -2) / math.sqrt(width // self.heads) + bias
        attended = (scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(attended)
        grown: Tensor = self.down(functional.relu(self.up(self.before_mlp(x))))
        return x + grown


class NGramBag(nn.Module):
    """The mean of hashed n-gram vectors through one hidden layer: the quick encoder.

    forward: ids (batch, length), 0 is padding; positions are ignored -> codes (batch, code).
    Source: Bojanowski et al. (2017), doi 10.1162/tacl_a_00051.
    """

    def __init__(self, *, vocabulary: int, width: int, code: int) -> None:
        super().__init__()
        self.tokens = nn.EmbeddingBag(vocabulary, width, mode="mean", padding_idx=0)
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.head = nn.Linear(2 * width, code)

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        code: Tensor = self.head(functional.relu(self.up(self.norm(self.tokens(ids)))))
        return code

    def flops(self, batch: int, length: int) -> int:
        """Floating-point operations of one forward pass: matrix products; the sum of vectors is none."""
        width = self.up.in_features
        return batch * (2 * width * 2 * width + 2 * 2 * width * self.head.out_features)


class ConvNet(nn.Module):
    """Three strided convolutions with group norm over 32 x 32 pixels, mean-pooled to a code.

    forward: pixels (batch, 3, 32, 32) in [-1, 1] -> codes (batch, code).
    """

    def __init__(self, *, width: int, code: int) -> None:
        super().__init__()
        sizes = [3, width, 2 * width, 4 * width]
        self.stages = nn.ModuleList(
            nn.Conv2d(a, b, kernel, stride=2, padding=kernel // 2)
            for a, b, kernel in zip(sizes, sizes[1:], (5, 3, 3), strict=False)
        )
        self.norms = nn.ModuleList(nn.GroupNorm(4, b) for b in sizes[1:])
        self.hidden = nn.Linear(16 * sizes[-1], 4 * width)
        self.head = nn.Linear(4 * width, code)

    def forward(self, pixels: Tensor) -> Tensor:
        x = pixels
        for stage, norm in zip(self.stages, self.norms, strict=True):
            x = functional.relu(norm(stage(x)))
        code: Tensor = self.head(functional.relu(self.hidden(x.flatten(1))))
        return code

    def flops(self, batch: int) -> int:
        """Floating-point operations of one forward pass: convolutions and matrix products."""
        of_stages = [self.first_flops(batch)]
        side = 16
        for stage in list(self.stages)[1:]:
            assert isinstance(stage, nn.Conv2d)
            side //= 2
            of_stages.append(batch * 2 * side * side * stage.weight.numel())
        return sum(of_stages) + batch * 2 * (self.hidden.weight.numel() + self.head.weight.numel())

    def first_flops(self, batch: int) -> int:
        """Those of the first convolution, whose input needs no gradient."""
        stage = self.stages[0]
        assert isinstance(stage, nn.Conv2d)
        return batch * 2 * 16 * 16 * stage.weight.numel()


def initialise(module: nn.Module, generator: torch.Generator) -> None:
    """Draw every weight anew from `generator`: normal with SD 1/sqrt(fan in), vectors 0.02, biases 0, norms 1."""
    with torch.no_grad():
        for part in module.modules():
            if isinstance(part, (nn.Embedding, nn.EmbeddingBag)):
                part.weight.normal_(0, 0.02, generator=generator)
            elif isinstance(part, (nn.Linear, nn.Conv2d)):
                part.weight.normal_(0, part.weight[0].numel() ** -0.5, generator=generator)
                assert part.bias is not None
                part.bias.zero_()
