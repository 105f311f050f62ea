"""The workloads as formulas over an array library's operations, written once for all peers.

``ops`` is a module of ``benchmarks.peers``: it offers ``matmul exp log sqrt tanh sum mean max min expand transposed
softmax logsumexp relu silu sigmoid layer_norm einsum`` under one signature, each by the best function that its library
has. Reductions take an axis and ``keepdims``; ``softmax`` and ``logsumexp`` go over the last axis unless told another,
``layer_norm`` over the last. Operators work on arrays as usual.
"""

from __future__ import annotations

from typing import Any

SOFT_CAP = 20.0
EPSILON = 1e-5


def matmul(ops: Any, a: Any, b: Any) -> Any:
    return ops.matmul(a, b)


def softmax(ops: Any, x: Any) -> Any:
    return ops.softmax(x)


def attention(ops: Any, q: Any, k: Any, v: Any) -> Any:
    return ops.matmul(ops.softmax(ops.matmul(q, ops.transposed(k))), v)


def _capped(ops: Any, scores: Any, v: Any) -> Any:
    return ops.matmul(ops.softmax(ops.tanh(scores / SOFT_CAP) * SOFT_CAP), v)


def attention_softcap(ops: Any, q: Any, k: Any, bias: Any, v: Any) -> Any:
    return _capped(ops, ops.matmul(q, ops.transposed(k)) * 0.125 + bias, v)


def heads_softcap(ops: Any, q: Any, k: Any, v: Any) -> Any:
    return _capped(ops, ops.matmul(q, ops.transposed(k)) * 0.125, v)


def mlp(ops: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    return ops.matmul(ops.relu(ops.matmul(x, w1) + b1), w2) + b2


def layernorm_linear(ops: Any, x: Any, gain: Any, shift: Any, w: Any) -> Any:
    return ops.matmul(ops.layer_norm(x, gain, shift, EPSILON), w)


def pointwise(ops: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return ops.exp((a * b + c) / d)


def chain(ops: Any, a: Any, b: Any, c: Any, d: Any, x: Any) -> Any:
    product = ops.matmul(ops.matmul(ops.matmul(a, b), c), d)
    return ops.matmul(product, x)


def swiglu(ops: Any, x: Any, gain: Any, gate: Any, up: Any, down: Any) -> Any:
    normed = x / ops.sqrt(ops.mean(x * x, axis=-1, keepdims=True) + EPSILON) * gain
    return ops.matmul(ops.silu(ops.matmul(normed, gate)) * ops.matmul(normed, up), down)


def linear_logsumexp(ops: Any, x: Any, w: Any) -> Any:
    return ops.logsumexp(ops.matmul(x, ops.transposed(w)))


def squared_distances(ops: Any, x: Any, y: Any) -> Any:
    """By the expanded square, as libraries without fusion do it: the differences would take points² · dimensions."""
    xs, ys = ops.sum(x * x, axis=-1, keepdims=True), ops.sum(y * y, axis=-1, keepdims=True)
    return ops.relu(xs + ops.transposed(ys) - ops.matmul(x, ops.transposed(y)) * 2.0)


def gaussian_sum(ops: Any, x: Any, y: Any, v: Any) -> Any:
    return ops.matmul(ops.exp(-squared_distances(ops, x, y)), v)


def nearest(ops: Any, x: Any, y: Any) -> Any:
    return ops.sqrt(ops.min(squared_distances(ops, x, y), axis=-1, keepdims=False))


def decode(ops: Any, q: Any, k: Any, v: Any) -> Any:
    weights = ops.softmax(ops.matmul(ops.expand(q, 1), ops.transposed(k)))
    return ops.sum(ops.matmul(weights, v), axis=1, keepdims=False)


def variance(ops: Any, x: Any) -> Any:
    centred = x - ops.mean(x, axis=-1, keepdims=True)
    return ops.mean(centred * centred, axis=-1, keepdims=False)


def logsumexp(ops: Any, x: Any) -> Any:
    return ops.logsumexp(x)
