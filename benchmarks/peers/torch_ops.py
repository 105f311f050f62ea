"""The operations of ``benchmarks.formulas`` in PyTorch."""

from __future__ import annotations

import importlib
from typing import Any

torch: Any = importlib.import_module("torch")
functional = torch.nn.functional

matmul, exp, log, sqrt, tanh = torch.matmul, torch.exp, torch.log, torch.sqrt, torch.tanh
relu, silu, sigmoid, einsum = functional.relu, functional.silu, torch.sigmoid, torch.einsum


def sum(x: Any, axis: int, keepdims: bool) -> Any:
    return torch.sum(x, axis, keepdim=keepdims)


def mean(x: Any, axis: int, keepdims: bool) -> Any:
    return torch.mean(x, axis, keepdim=keepdims)


def max(x: Any, axis: int, keepdims: bool) -> Any:
    return torch.amax(x, axis, keepdim=keepdims)


def min(x: Any, axis: int, keepdims: bool) -> Any:
    return torch.amin(x, axis, keepdim=keepdims)


def expand(x: Any, axis: int) -> Any:
    return torch.unsqueeze(x, axis)


def transposed(x: Any) -> Any:
    return x.transpose(-1, -2)


def softmax(x: Any, axis: int = -1) -> Any:
    return torch.softmax(x, axis)


def logsumexp(x: Any, axis: int = -1) -> Any:
    return torch.logsumexp(x, axis)


def layer_norm(x: Any, gain: Any, shift: Any, epsilon: float) -> Any:
    return functional.layer_norm(x, gain.shape, gain, shift, epsilon)
