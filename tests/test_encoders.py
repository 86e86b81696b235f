import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from runner.encoders import ConvNet, NGramBag, TextTransformer, initialise


def transformer(seed: int = 0) -> TextTransformer:
    encoder = TextTransformer(vocabulary=50, longest=12, width=32, layers=2, heads=4, code=16)
    initialise(encoder, torch.Generator().manual_seed(seed))
    return encoder


def test_padding_does_not_change_a_code():
    encoder = transformer()
    ids, positions = torch.tensor([[3, 7, 9]]), torch.tensor([[0, 4, 5]])
    padded = torch.tensor([[3, 7, 9, 0, 0]]), torch.tensor([[0, 4, 5, 0, 0]])

    torch.testing.assert_close(encoder(ids, positions), encoder(*padded), atol=1e-5, rtol=1e-5)


def test_positions_and_tokens_do_change_a_code():
    encoder = transformer()
    code = encoder(torch.tensor([[3, 7]]), torch.tensor([[0, 1]]))

    assert not torch.allclose(code, encoder(torch.tensor([[3, 7]]), torch.tensor([[1, 0]])))
    assert not torch.allclose(code, encoder(torch.tensor([[3, 8]]), torch.tensor([[0, 1]])))


def test_weights_follow_from_the_generator_alone():
    same, again, other = (list(transformer(seed).parameters()) for seed in (5, 5, 6))

    assert all(torch.equal(a, b) for a, b in zip(same, again, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(same, other, strict=True))


def counted(encoder: torch.nn.Module, *inputs: torch.Tensor) -> int:
    with FlopCounterMode(display=False) as counter:
        encoder(*inputs)
    return counter.get_total_flops()


def test_flops_of_the_transformer_agree_with_torchs_counter():
    ids = torch.ones(8, 10, dtype=torch.long)

    assert counted(transformer(), ids, ids) == pytest.approx(transformer().flops(8, 10), rel=0.03)


def test_flops_of_the_convolutional_network_agree_with_torchs_counter():
    encoder = ConvNet(width=8, code=16)

    assert counted(encoder, torch.zeros(4, 3, 32, 32)) == pytest.approx(encoder.flops(4), rel=0.03)


def test_the_bag_ignores_order_and_padding():
    encoder = NGramBag(vocabulary=50, width=16, code=8)
    none = torch.zeros(1, 4, dtype=torch.long)
    code = encoder(torch.tensor([[3, 7, 9]]), none[:, :3])

    torch.testing.assert_close(code, encoder(torch.tensor([[9, 3, 7, 0]]), none))
