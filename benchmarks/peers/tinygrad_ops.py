"""The operations of ``benchmarks.formulas`` in tinygrad."""

from __future__ import annotations

from typing import Any


def matmul(a: Any, b: Any) -> Any:
    return a.matmul(b)


def exp(x: Any) -> Any:
    return x.exp()


def log(x: Any) -> Any:
    return x.log()


def sqrt(x: Any) -> Any:
    return x.sqrt()


def tanh(x: Any) -> Any:
    return x.tanh()


def relu(x: Any) -> Any:
    return x.relu()


def silu(x: Any) -> Any:
    return x.silu()


def sum(x: Any, axis: int, keepdims: bool) -> Any:
    return x.sum(axis, keepdim=keepdims)


def mean(x: Any, axis: int, keepdims: bool) -> Any:
    return x.mean(axis, keepdim=keepdims)


def max(x: Any, axis: int, keepdims: bool) -> Any:
    return x.max(axis, keepdim=keepdims)


def min(x: Any, axis: int, keepdims: bool) -> Any:
    return x.min(axis, keepdim=keepdims)


def expand(x: Any, axis: int) -> Any:
    return x.unsqueeze(axis)


def transposed(x: Any) -> Any:
    return x.transpose(-1, -2)


def einsum(pattern: str, *operands: Any) -> Any:
    return type(operands[0]).einsum(pattern, *operands)


def sigmoid(x: Any) -> Any:
    return x.sigmoid()


def softmax(x: Any, axis: int = -1) -> Any:
    return x.softmax(axis)


def logsumexp(x: Any, axis: int = -1) -> Any:
    return x.logsumexp(axis)


def layer_norm(x: Any, gain: Any, shift: Any, epsilon: float) -> Any:
    return x.layernorm(-1, epsilon) * gain + shift
