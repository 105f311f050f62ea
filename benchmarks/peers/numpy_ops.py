"""The operations of ``benchmarks.formulas`` in NumPy; in float64 they are what every result is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

matmul, exp, log, sqrt, tanh = np.matmul, np.exp, np.log, np.sqrt, np.tanh
sum, mean, max, min = np.sum, np.mean, np.max, np.min
expand = np.expand_dims


def transposed(x: Array) -> Array:
    return np.swapaxes(x, -1, -2)


def einsum(pattern: str, *operands: Array) -> Array:
    return np.einsum(pattern, *operands, optimize=True)


def softmax(x: Array, axis: int = -1) -> Array:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    e /= np.sum(e, axis=axis, keepdims=True)
    return e


def logsumexp(x: Array, axis: int = -1) -> Array:
    top = np.max(x, axis=axis, keepdims=True)
    return (np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top).squeeze(axis)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def layer_norm(x: Array, gain: Array, shift: Array, epsilon: float) -> Array:
    centred = x - np.mean(x, axis=-1, keepdims=True)
    deviation = np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + epsilon)
    return centred / deviation * gain + shift
