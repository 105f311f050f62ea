"""Layers and losses of PyTorch's own, and blocks of transformers' models that differ from those of the benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is optional")

from tests.tracing.interpreting import assert_close, interpreted  # noqa: E402

nn, F = torch.nn, torch.nn.functional
TENSOR, OTHER = torch.randn(2, 5, 16), torch.randn(2, 3, 16)


class Gated(nn.Module):
    """A GRU, unrolled."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.h = nn.Linear(16, 24), nn.Linear(8, 24)

    def forward(self, x: Any, h: Any) -> Any:
        for step in x.unbind(1):
            (reset, keep, new), (own_reset, own_keep, own) = self.x(step).chunk(3, -1), self.h(h).chunk(3, -1)
            keep = torch.sigmoid(keep + own_keep)
            h = (1 - keep) * torch.tanh(new + torch.sigmoid(reset + own_reset) * own) + keep * h
        return h


def losses(x: Any, y: Any) -> Any:
    """Of elements, of distributions, of distances."""
    elements = F.mse_loss(x, y) + F.l1_loss(x, y) + F.smooth_l1_loss(x, y) + F.huber_loss(x, y, delta=0.5)
    chances = F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean") + F.cross_entropy(x, y.softmax(-1))
    truth = F.binary_cross_entropy_with_logits(x, y.sigmoid()) + F.binary_cross_entropy(x.sigmoid(), y.sigmoid())
    return elements + chances + truth + F.cosine_similarity(x, y).mean() + F.triplet_margin_loss(x, y, 2 * x)


def t5() -> Any:
    """Positions as a bias that depends on distances, norms without centring."""
    from transformers import T5Config, T5EncoderModel

    sizes = {"vocab_size": 32, "d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2}
    return T5EncoderModel(T5Config(**sizes, feed_forward_proj="gated-gelu"))


def gemma2() -> Any:
    """Scores and logits with a soft-cap, windows, norms before and after."""
    from transformers import Gemma2Config, Gemma2Model

    sizes = {"vocab_size": 32, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 8}
    sizes |= {"num_key_value_heads": 1, "intermediate_size": 24, "sliding_window": 4}
    return Gemma2Model(Gemma2Config(**sizes, use_cache=False))


LAYERS: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
    "encoder": (lambda: nn.TransformerEncoderLayer(16, 2, 24, batch_first=True), (TENSOR,)),
    "encoder, norm first": (
        lambda: nn.TransformerEncoderLayer(16, 2, 24, activation="gelu", norm_first=True),
        (TENSOR,),
    ),
    "decoder": (lambda: nn.TransformerDecoderLayer(16, 2, 24, batch_first=True), (TENSOR, OTHER)),
    "GRU": (Gated, (TENSOR, torch.randn(2, 8))),
    "LSTM cell": (lambda: nn.LSTMCell(16, 8), (TENSOR[0],)),
    "norms": (
        lambda: nn.Sequential(nn.GroupNorm(2, 8), nn.InstanceNorm2d(8, affine=True), nn.BatchNorm2d(8), nn.RMSNorm(6)),
        (torch.randn(2, 8, 4, 6),),
    ),
    "losses": (lambda: losses, (torch.randn(6, 9), torch.randn(6, 9))),
}


@pytest.mark.parametrize("name", LAYERS)
def test_same_outputs_as_eager(name: str) -> None:
    make, inputs = LAYERS[name]
    layer = make()
    layer = layer.eval() if isinstance(layer, nn.Module) else layer
    traced = interpreted(layer, *inputs)
    with torch.no_grad():
        assert_close(traced(*inputs), layer(*inputs), rtol=1e-4)
    assert traced.coverage.fraction > 0.99, "logarithms of 1 + x stay with PyTorch"


def test_attention_to_itself_and_then_to_another() -> None:
    layer = nn.MultiheadAttention(16, 2, batch_first=True).eval()
    traced = interpreted(layer, TENSOR, TENSOR, TENSOR)
    other = torch.randn(2, 5, 16)
    with torch.no_grad():
        assert_close(traced(TENSOR, other, other), layer(TENSOR, other, other), rtol=1e-4)


@pytest.mark.parametrize("make", [t5, gemma2])
def test_blocks_of_transformers(make: Callable[[], Any]) -> None:
    pytest.importorskip("transformers", reason="transformers is optional")
    model, words = make().eval(), torch.randint(0, 32, (2, 6))
    traced = interpreted(lambda given: model(input_ids=given)[0], words)
    with torch.no_grad():
        assert_close(traced(words), model(input_ids=words)[0], rtol=1e-4)
    assert traced.coverage.fraction > 0.99
