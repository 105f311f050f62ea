"""The workloads in Triton, as its tutorials go about them: float32 throughout, products without tensor cores ("ieee").

Sizes need not be multiples of the tiles. Nothing is tuned on the spot: tiles are ones that suit float32 on an H100.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, TypeAlias

torch: Any = importlib.import_module("torch")
triton: Any = importlib.import_module("triton")
tl: Any = importlib.import_module("triton.language")

if TYPE_CHECKING:
    constexpr: TypeAlias = Any
else:
    constexpr = tl.constexpr  # Triton looks the annotation up


@triton.jit
def _pointwise(a, b, c, d, out, count, block: constexpr):
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = at < count
    x = tl.load(a + at, mask=inside) * tl.load(b + at, mask=inside) + tl.load(c + at, mask=inside)
    tl.store(out + at, tl.exp(x / tl.load(d + at, mask=inside, other=1.0)), mask=inside)


def pointwise(a: Any, b: Any, c: Any, d: Any) -> Any:
    out = torch.empty_like(a)
    _pointwise[(triton.cdiv(a.numel(), 1024),)](a, b, c, d, out, a.numel(), block=1024, num_warps=4)
    return out


@triton.jit
def _softmax(x, out, columns, block: constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, block)
    inside = at < columns
    values = tl.load(x + row + at, mask=inside, other=-float("inf"))
    weights = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row + at, weights / tl.sum(weights, axis=0), mask=inside)


def softmax(x: Any) -> Any:
    out = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    _softmax[(x.shape[0],)](x, out, x.shape[1], block=block, num_warps=16 if block >= 8192 else 4)
    return out


@triton.jit
def _matmul(a, b, out, m, n, k, bm: constexpr, bn: constexpr, bk: constexpr, group: constexpr):
    # tiles of a group of rows follow each other, so that what they share is in the cache
    across = tl.cdiv(n, bn)
    number, together = tl.program_id(0), group * across
    first = number // together * group
    tall = tl.minimum(tl.cdiv(m, bm) - first, group)
    i = (first + number % together % tall) * bm + tl.arange(0, bm)
    j = number % together // tall * bn + tl.arange(0, bn)
    total = tl.zeros((bm, bn), dtype=tl.float32)
    for start in range(0, k, bk):
        l = start + tl.arange(0, bk)  # noqa: E741
        x = tl.load(a + i[:, None] * k + l[None, :], mask=(i[:, None] < m) & (l[None, :] < k), other=0.0)
        y = tl.load(b + l[:, None] * n + j[None, :], mask=(l[:, None] < k) & (j[None, :] < n), other=0.0)
        total += tl.dot(x, y, input_precision="ieee")
    tl.store(out + i[:, None] * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))


def matmul(a: Any, b: Any) -> Any:
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, 128) * triton.cdiv(n, 128),)
    _matmul[grid](a, b, out, m, n, k, bm=128, bn=128, bk=16, group=8, num_warps=8, num_stages=3)
    return out


@triton.jit
def _attention(q, k, v, out, queries, keys, width: constexpr, bm: constexpr, bn: constexpr):
    head = tl.program_id(1).to(tl.int64)
    i, d = tl.program_id(0) * bm + tl.arange(0, bm), tl.arange(0, width)
    here = (head * queries + i[:, None]) * width + d[None, :]
    mine = tl.load(q + here, mask=i[:, None] < queries, other=0.0)
    largest = tl.full((bm,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((bm,), dtype=tl.float32)
    sums = tl.zeros((bm, width), dtype=tl.float32)
    for start in range(0, keys, bn):
        j = start + tl.arange(0, bn)
        there = (head * keys + j[:, None]) * width + d[None, :]
        scores = tl.dot(mine, tl.trans(tl.load(k + there, mask=j[:, None] < keys, other=0.0)), input_precision="ieee")
        scores = tl.where(j[None, :] < keys, scores, -float("inf"))
        now = tl.maximum(largest, tl.max(scores, axis=1))
        weights = tl.exp(scores - now[:, None])
        factor = tl.exp(largest - now)
        total = total * factor + tl.sum(weights, axis=1)
        values = tl.load(v + there, mask=j[:, None] < keys, other=0.0)
        sums = sums * factor[:, None] + tl.dot(weights, values, input_precision="ieee")
        largest = now
    tl.store(out + here, sums / total[:, None], mask=i[:, None] < queries)


def attention(q: Any, k: Any, v: Any) -> Any:
    heads, queries, width = q.shape
    out = torch.empty_like(q)
    if width != triton.next_power_of_2(width) or width < 16:
        raise ValueError(f"heads of {width} are not a power of two of at least 16")
    grid = (triton.cdiv(queries, 64), heads)
    _attention[grid](q, k, v, out, queries, k.shape[1], width=width, bm=64, bn=32, num_warps=4)
    return out


CALLS = {"pointwise": pointwise, "softmax": softmax, "matmul": matmul, "attention_heads": attention}
"""By component."""
