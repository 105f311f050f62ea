"""The operations of ``benchmarks.formulas`` in JAX."""

from __future__ import annotations

import importlib
from typing import Any

jax: Any = importlib.import_module("jax")
jnp: Any = importlib.import_module("jax.numpy")

matmul, exp, log, sqrt, tanh = jnp.matmul, jnp.exp, jnp.log, jnp.sqrt, jnp.tanh
sum, mean, max, min = jnp.sum, jnp.mean, jnp.max, jnp.min
expand = jnp.expand_dims
softmax, relu, silu, sigmoid = jax.nn.softmax, jax.nn.relu, jax.nn.silu, jax.nn.sigmoid
einsum = jnp.einsum


def transposed(x: Any) -> Any:
    return jnp.swapaxes(x, -1, -2)


def logsumexp(x: Any, axis: int = -1) -> Any:
    return jax.nn.logsumexp(x, axis=axis)


def layer_norm(x: Any, gain: Any, shift: Any, epsilon: float) -> Any:
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred * centred, axis=-1, keepdims=True) + epsilon) * gain + shift
