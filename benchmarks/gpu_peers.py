"""What our kernels for GPUs are compared with: torch as it is, compiled, its best calls for each case; and Triton.

All in float32, without TF32 unless the case grants it. A peer that is missing or fails is reported and left out.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.formulas import SOFT_CAP
from benchmarks.gpu_cases import Case

Call = Callable[..., Any]
_CHUNK = 4096
"""Rows of a matrix that a chunked formulation holds at a time."""


def peers(torch: Any, case: Case, compile: Callable[[Call], Call]) -> Iterator[tuple[str, Call]]:
    """The contenders of ``case`` by name; ``compile`` is ``torch.compile``, or what stands for it."""
    ops = importlib.import_module("benchmarks.peers.torch_ops")

    def plain(*arrays: Any) -> Any:
        return case.formula(ops, *arrays)

    yield "torch", plain
    yield "torch.compile", compile(plain)
    match case.component:
        case "attention_heads":
            yield "SDPA", lambda q, k, v: _sdpa(torch, q, k, v)
            yield "SDPA, efficient", lambda q, k, v: _efficient(torch, q, k, v)
        case "attention_heads_softcap":
            yield "FlexAttention", _flex(torch, compile)
        case "gaussian_sum":
            yield "torch, chunked", lambda x, y, v: torch.cat([plain(part, y, v) for part in x.split(_CHUNK)])
            yield "torch.compile, differences", compile(_differences)
        case "linear_logsumexp":
            yield "torch, chunked", lambda x, w: torch.cat([plain(part, w) for part in x.split(_CHUNK // 4)])
            yield "torch, online", lambda x, w: _online(torch, x, w)
        case "pointwise":
            yield "torch, in place", lambda a, b, c, d: torch.addcmul(c, a, b).div_(d).exp_()
    if importlib.util.find_spec("triton") is not None and case.precision == "float32":
        # its kernels here are float32 throughout
        yield from _triton(case)


def _triton(case: Case) -> Iterator[tuple[str, Call]]:
    kernels = importlib.import_module("benchmarks.peers.triton_kernels")
    found = kernels.CALLS.get(case.component)
    if found is not None:
        yield "Triton", found


def _sdpa(torch: Any, q: Any, k: Any, v: Any) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], scale=1.0)[0]


def _efficient(torch: Any, q: Any, k: Any, v: Any) -> Any:
    """Without the matrix of scores; it takes float32, which FlashAttention does not."""
    backend = importlib.import_module("torch.nn.attention")
    with backend.sdpa_kernel(backend.SDPBackend.EFFICIENT_ATTENTION):
        return _sdpa(torch, q, k, v)


def _flex(torch: Any, compile: Callable[[Call], Call]) -> Call:
    attention = compile(importlib.import_module("torch.nn.attention.flex_attention").flex_attention)

    def capped(score: Any, *_: Any) -> Any:
        return SOFT_CAP * torch.tanh(score / SOFT_CAP)

    return lambda q, k, v: attention(q[None], k[None], v[None], score_mod=capped, scale=0.125)[0]


def _differences(x: Any, y: Any, v: Any) -> Any:
    """By the differences: a compiler can fuse all of it, so that no matrix is stored."""
    squares = (x[:, 0, None] - y[None, :, 0]) ** 2
    for k in range(1, x.shape[1]):
        squares = squares + (x[:, k, None] - y[None, :, k]) ** 2
    return ((-squares).exp() * v[None]).sum(-1)


def _online(torch: Any, x: Any, w: Any) -> Any:
    """Chunks of classes, whose log-sum-exps are added: logits of one chunk at a time."""
    total = None
    for part in w.split(4 * _CHUNK):
        found = torch.logsumexp(x @ part.T, -1)
        total = found if total is None else torch.logaddexp(total, found)
    return total
