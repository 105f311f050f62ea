"""What an expert would call instead of the plain formula, by component; ``np`` and ``torch`` are the modules.

``*_BEST`` return their result. ``*_INTO`` write it into memory used before, which comes as the first array; they are
the formula, or the best call, step by step in place.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from benchmarks.formulas import SOFT_CAP

Call = Callable[..., Any]


def _numpy_softmax(np: Any, out: Any, x: Any) -> Any:
    np.subtract(x, x.max(-1, keepdims=True), out=out)
    np.exp(out, out=out)
    return np.divide(out, out.sum(-1, keepdims=True), out=out)


def _numpy_pointwise(np: Any, out: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    np.multiply(a, b, out=out)
    np.add(out, c, out=out)
    np.divide(out, d, out=out)
    return np.exp(out, out=out)


def _torch_pointwise(torch: Any, out: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return torch.addcmul(c, a, b, out=out).div_(d).exp_()


def _sdpa(torch: Any, q: Any, k: Any, v: Any) -> Any:
    attend = torch.nn.functional.scaled_dot_product_attention
    shape = q.shape
    q, k, v = (x.reshape(1, -1, *x.shape[-2:]) for x in (q, k, v))
    return attend(q, k, v, scale=1.0).reshape(shape)


def _sdpa_decode(torch: Any, q: Any, k: Any, v: Any) -> Any:
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(q[None, :, None], k[None], v[None], scale=1.0)[0, :, 0]


@cache
def _flex(torch: Any) -> Call:
    """FlexAttention, which writes a fused kernel for a change of the scores, compiled as its manual says."""
    flex: Any = importlib.import_module("torch.nn.attention.flex_attention")

    def attend(q: Any, k: Any, bias: Any, v: Any) -> Any:
        def capped(score: Any, batch: Any, head: Any, i: Any, j: Any) -> Any:
            return SOFT_CAP * torch.tanh((score + bias[i, j]) / SOFT_CAP)

        return flex.flex_attention(q, k, v, score_mod=capped, scale=0.125)

    return torch.compile(attend)


def _flex_softcap(torch: Any, q: Any, k: Any, bias: Any, v: Any) -> Any:
    return _flex(torch)(q[None, None], k[None, None], bias, v[None, None])[0, 0]


def _mlp(torch: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    return torch.addmm(b2, torch.addmm(b1, x, w1).relu_(), w2)


def _swiglu(torch: Any, x: Any, gain: Any, gate: Any, up: Any, down: Any) -> Any:
    normed = torch.nn.functional.rms_norm(x, gain.shape, gain, 1e-5)
    return (torch.nn.functional.silu(normed @ gate, inplace=True).mul_(normed @ up)) @ down


def _gaussian_sum(torch: Any, x: Any, y: Any, v: Any) -> Any:
    return torch.cdist(x, y).square_().neg_().exp_() @ v


NUMPY_BEST: Mapping[str, Call] = {"chain": lambda np, a, b, c, d, x: a @ (b @ (c @ (d @ x)))}

NUMPY_INTO: Mapping[str, Call] = {
    "matmul": lambda np, out, a, b: np.matmul(a, b, out=out),
    "softmax": _numpy_softmax,
    "pointwise": _numpy_pointwise,
}

TORCH_BEST: Mapping[str, Call] = {
    "attention": _sdpa,
    "attention_heads": _sdpa,
    "attention_softcap": _flex_softcap,
    "mlp": _mlp,
    "pointwise": lambda torch, a, b, c, d: torch.addcmul(c, a, b).div_(d).exp_(),
    "chain": lambda torch, *factors: torch.linalg.multi_dot(factors),
    "swiglu": _swiglu,
    "gaussian_sum": _gaussian_sum,
    "nearest": lambda torch, x, y: torch.cdist(x, y).amin(1),
    "decode": _sdpa_decode,
    "variance": lambda torch, x: torch.var(x, 1, correction=0),
}

TORCH_INTO: Mapping[str, Call] = {
    "matmul": lambda torch, out, a, b: torch.matmul(a, b, out=out),
    "softmax": lambda torch, out, x: torch.softmax(x, 1, out=out),
    "pointwise": _torch_pointwise,
    "logsumexp": lambda torch, out, x: torch.logsumexp(x, 1, out=out),
    "variance": lambda torch, out, x: torch.var(x, 1, correction=0, out=out),
}
