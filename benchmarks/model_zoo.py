"""Models with random weights, from configurations: nothing is downloaded. Each at full size, and small for tests."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True, slots=True)
class Size:
    """How large a model is to be built: full, or small enough for a test."""

    layers: int
    width: int
    heads: int
    hidden: int
    words: int
    length: int


FULL = Size(layers=12, width=768, heads=12, hidden=3072, words=30522, length=128)
SMALL = Size(layers=2, width=32, heads=4, hidden=64, words=64, length=16)

Built = tuple[nn.Module, tuple[torch.Tensor, ...]]
"""A model, and inputs for it."""


class Tensor(nn.Module):
    """A transformers model that returns a tensor rather than a record of them, and takes one by ``argument``."""

    def __init__(self, model: nn.Module, argument: str) -> None:
        super().__init__()
        self.model = model
        self.argument = argument

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(**{self.argument: x})[0]


def words(size: Size) -> torch.Tensor:
    return torch.randint(0, size.words, (1, size.length))


def gpt2(size: Size) -> Built:
    """GPT-2 small, with the head that predicts words."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        n_layer=size.layers,
        n_embd=size.width,
        n_head=size.heads,
        vocab_size=size.words,
        n_positions=max(size.length, 64),
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    return Tensor(GPT2LMHeadModel(config), "input_ids"), (words(size),)


def bert(size: Size) -> Built:
    """BERT-base, without a head."""
    from transformers import BertConfig, BertModel

    config = BertConfig(
        num_hidden_layers=size.layers,
        hidden_size=size.width,
        num_attention_heads=size.heads,
        intermediate_size=size.hidden,
        vocab_size=size.words,
    )
    return Tensor(BertModel(config), "input_ids"), (words(size),)


def llama(size: Size) -> Built:
    """Llama blocks with rotary positions, grouped heads and SwiGLU: a sixth of the layers."""
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        num_hidden_layers=max(size.layers // 6, 1),
        hidden_size=size.width,
        num_attention_heads=size.heads,
        num_key_value_heads=size.heads // 2,
        intermediate_size=size.hidden,
        vocab_size=size.words,
        use_cache=False,
    )
    return Tensor(LlamaModel(config), "input_ids"), (words(size),)


def vit(size: Size) -> Built:
    """The encoder of ViT-B/16, after the patch embedding: 196 patches and a class token at full size."""
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(
        num_hidden_layers=size.layers,
        hidden_size=size.width,
        num_attention_heads=size.heads,
        intermediate_size=size.hidden,
        image_size=32,
        patch_size=16,
    )
    model = ViTModel(config, add_pooling_layer=False)
    patches = 197 if size is FULL else 5
    return Encoder(model), (torch.randn(1, patches, size.width),)


class Encoder(nn.Module):
    """What a ViT does with embedded patches."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.layers = model.layers if hasattr(model, "layers") else model.encoder.layer
        self.norm = model.layernorm

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class MixerBlock(nn.Module):
    """Mixing between patches, then between channels."""

    def __init__(self, patches: int, width: int, hidden: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.patches = nn.Sequential(nn.Linear(patches, hidden // 8), nn.GELU(), nn.Linear(hidden // 8, patches))
        self.channels = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.patches(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norms[1](x))


class Mixer(nn.Module):
    """MLP-Mixer B/16 after the patch embedding (Tolstikhin et al. 2021)."""

    def __init__(self, layers: int, patches: int, width: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(MixerBlock(patches, width, hidden) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.blocks(x)).mean(1))


def mixer(size: Size) -> Built:
    patches = 196 if size is FULL else 9
    classes = 1000 if size is FULL else 10
    model = Mixer(size.layers, patches, size.width, size.hidden, classes)
    return model, (torch.randn(1, patches, size.width),)


class KernelRegression(nn.Module):
    """Nadaraya-Watson regression with a Gaussian kernel: Σ_j k(x_i, y_j)·v_j / Σ_j k(x_i, y_j)."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        distances = (x * x).sum(1, keepdim=True) - 2 * x @ y.T + (y * y).sum(1)
        weights = torch.exp(-0.5 * distances)
        return (weights @ v) / weights.sum(1, keepdim=True)


def kernel_regression(size: Size) -> Built:
    points = 4096 if size is FULL else 24
    return KernelRegression(), (torch.randn(points, 3), torch.randn(points, 3), torch.randn(points, 8))


MODELS: dict[str, Callable[[Size], Built]] = {
    "gpt2": gpt2,
    "bert": bert,
    "llama": llama,
    "vit": vit,
    "mixer": mixer,
    "kernel regression": kernel_regression,
}


def build(name: str, size: Size) -> Built:
    """A model in evaluation mode, with the same weights and inputs every time."""
    logging.getLogger("transformers").setLevel(logging.ERROR)
    torch.manual_seed(0)
    model, inputs = MODELS[name](size)
    return model.eval(), inputs
