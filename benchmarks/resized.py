"""The workloads that have targets, at other shapes, written down before anybody had run them at these.

Models' and data sets' usual extents beside odd ones, short and long. Targets are those of the shapes in the table.

    python -m benchmarks.cpu --breadth [--threads N] [r-NAME ...]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from benchmarks.workloads import WORKLOADS, Shape, Workload

_NAMED = {workload.name: workload for workload in WORKLOADS}


def _resized(
    base: str, name: str, title: str, shapes: tuple[Shape, ...], work: Mapping[str, float], count: int | None = None
) -> Workload:
    """``base`` at other shapes; ``count`` is what a mean divides by, the last extent of the first input."""
    workload = _NAMED[base]
    inputs = tuple(replace(old, shape=shape) for old, shape in zip(workload.inputs, shapes, strict=True))
    text, small = workload.text, workload.small
    if count is not None:
        before = workload.shapes[0][-1]
        text = text.replace(f"/{before}", f"/{count}")
        small = tuple(tuple(count if n == before else n for n in shape) for shape in small)
    return replace(
        workload, name=f"r-{name}", title=title, inputs=inputs, work=work, source=text, small=small, ranked=None
    )


def _softmax(rows: int, columns: int) -> Workload:
    n = rows * columns
    work = {"exp": n, "add": 2 * n, "mul": n}
    shape = (rows, columns)
    return _resized("w2-softmax", f"softmax-{rows}x{columns}", f"softmax of rows, {rows}×{columns}", (shape,), work)


def _attention(base: str, name: str, title: str, queries: Shape, keys: int) -> Workload:
    (*batch, _, width) = queries
    pairs = prod(queries[:-1]) * keys
    along = (*batch, keys, width)
    shapes: tuple[Shape, ...] = (queries, along, along)
    work = {"fma": 2 * pairs * width, "exp": pairs}
    if base == "w3-softcap":
        shapes = (queries, along, (queries[-2], keys), along)
        work = {**work, "exp": 2 * pairs, "div": pairs}
    return _resized(base, name, title, shapes, work)


def _mlp(rows: int, width: int, hidden: int) -> Workload:
    shapes = ((rows, width), (width, hidden), (hidden,), (hidden, width), (width,))
    title = f"MLP {rows}: {width}→{hidden}→{width}"
    return _resized("w4-mlp", f"mlp-{rows}x{width}x{hidden}", title, shapes, {"fma": 2 * rows * width * hidden})


def _layernorm(rows: int, width: int, columns: int) -> Workload:
    shapes = ((rows, width), (width,), (width,), (width, columns))
    title, work = f"layer norm, linear, {rows}×{width}→{columns}", {"fma": rows * width * columns}
    return _resized("w5-layernorm", f"layernorm-{rows}x{width}x{columns}", title, shapes, work, width)


def _pointwise(count: int) -> Workload:
    work = {"fma": count, "div": count, "exp": count}
    title = f"exp((a·b+c)/d), {count} elements"
    return _resized("w6-pointwise", f"pointwise-{count}", title, ((count,),) * 4, work)


def _swiglu(rows: int, width: int, hidden: int) -> Workload:
    shapes = ((rows, width), (width,), (width, hidden), (width, hidden), (hidden, width))
    work = {"fma": 3 * rows * width * hidden, "exp": rows * hidden, "div": rows * hidden}
    title = f"RMSNorm, SwiGLU {rows}×{width}×{hidden}"
    return _resized("w9-swiglu", f"swiglu-{rows}x{width}x{hidden}", title, shapes, work, width)


def _linear_logsumexp(rows: int, width: int, classes: int) -> Workload:
    pairs = rows * classes
    title, work = f"log-sum-exp of x·wᵀ, {rows}×{width}, {classes} classes", {"fma": pairs * width, "exp": pairs}
    return _resized(
        "w10-linear-logsumexp", f"linear-logsumexp-{classes}", title, ((rows, width), (classes, width)), work
    )


def _gaussian(points: int, others: int, width: int) -> Workload:
    base = "w11-gaussian-3" if width <= 8 else "w11-gaussian-64"
    pairs = points * others
    work = {"fma": pairs * (width + 1), "exp": pairs}
    shapes = ((points, width), (others, width), (others,))
    return _resized(base, f"gaussian-{width}", f"Gaussian kernel sum, {points} by {others}, {width}-d", shapes, work)


def _nearest(points: int, others: int, width: int) -> Workload:
    shapes, work = ((points, width), (others, width)), {"fma": points * others * width}
    return _resized(
        "w12-nearest", f"nearest-{width}", f"nearest distance, {points} by {others}, {width}-d", shapes, work
    )


def _decode(heads: int, keys: int, width: int) -> Workload:
    pairs = heads * keys
    title = f"decode attention, {heads} heads, {keys} keys, {width}-d"
    shapes = ((heads, width), (heads, keys, width), (heads, keys, width))
    return _resized("w13-decode", f"decode-{heads}", title, shapes, {"fma": 2 * pairs * width, "exp": pairs})


def _variance(rows: int, columns: int) -> Workload:
    n = rows * columns
    title, work = f"variance of rows, {rows}×{columns}", {"add": 2 * n, "fma": n}
    return _resized("w14-variance", f"variance-{rows}x{columns}", title, ((rows, columns),), work, columns)


def _logsumexp(rows: int, columns: int) -> Workload:
    n = rows * columns
    title, work = f"log-sum-exp of rows, {rows}×{columns}", {"exp": n, "add": 2 * n}
    return _resized("w14-logsumexp", f"logsumexp-{rows}x{columns}", title, ((rows, columns),), work)


RESIZED: tuple[Workload, ...] = (
    _softmax(1000, 1000),
    _softmax(64, 50257),
    _softmax(65536, 100),
    _attention("w3-attention", "attention-odd", "attention, 1000 queries, 3001 keys, 80-d", (1000, 80), 3001),
    _attention("w3-attention", "attention-long", "attention 8192×32", (8192, 32), 8192),
    _attention("w3-heads", "heads-image", "attention, 48 heads of 197×64", (48, 197, 64), 197),
    _attention("w3-heads", "heads-wide", "attention, 4 heads of 1024×128", (4, 1024, 128), 1024),
    _attention("w3-softcap", "softcap-wide", "soft-cap, 1000 queries, 1500 keys, 128-d", (1000, 128), 1500),
    _mlp(64, 768, 3072),
    _mlp(1000, 300, 1200),
    _layernorm(512, 768, 3072),
    _layernorm(3000, 512, 512),
    _pointwise(1_000_000),
    _pointwise(10_007),
    _swiglu(64, 1024, 4096),
    _swiglu(1000, 512, 1365),
    _linear_logsumexp(256, 768, 50257),
    _gaussian(5000, 20000, 2),
    _gaussian(3000, 3000, 128),
    _nearest(1000, 100_000, 3),
    _nearest(4096, 4096, 64),
    _decode(8, 4096, 128),
    _decode(128, 1024, 64),
    _variance(100_000, 100),
    _variance(300, 100_000),
    _logsumexp(8192, 1000),
    _logsumexp(100, 100_000),
)
