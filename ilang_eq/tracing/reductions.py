"""Products, reductions and what is made of them, as expressions: matrix products, softmax, the norms, attention."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ilang_eq.tracing.build import Builder, Inexpressible, View
from ilang_eq.tracing.call import Build, Call
from ilang_eq.tracing.extents import Extent, product
from ilang_eq.tracing.masks import ATTENTION_ARGUMENTS, KEYWORD
from ilang_eq.tracing.pointwise import exp, magnitude, power, sqrt

_EPSILON = 2.0**-23
"""What rms_norm adds if it is told nothing: the spacing of float32 at 1."""


def matmul(b: Builder, x: View, y: View) -> View:
    """Σ_k x[..., m, k]·y[..., k, n], the dimensions in front broadcast; a vector lacks m or n."""
    if not x.dims or not y.dims:
        raise Inexpressible("a matrix product of scalars")
    rows, columns = len(x.dims) > 1, len(y.dims) > 1
    left = b.unsqueeze(x, -2) if rows else b.unsqueeze(x, 0)
    right = b.permute(y, [*range(len(y.dims) - 2), len(y.dims) - 1, len(y.dims) - 2]) if columns else y
    right = b.unsqueeze(right, -3) if rows and columns else right
    summed = b.reduce("add", b.apply("mul", left, right), [-1])
    return summed if columns else b.reduce("add", summed, [-1])


def linear(b: Builder, x: View, weight: View, bias: View | None) -> View:
    """x·weightᵀ + bias."""
    summed = matmul(b, x, b.permute(weight, [1, 0]))
    return summed if bias is None else b.apply("add", summed, bias)


def count(b: Builder, view: View, dims: Sequence[int]) -> int:
    """How many elements a reduction over ``dims`` takes. Raises Inexpressible if that is known only at run time."""
    extent = product(b.extents(view)[d] for d in dims)
    if extent.symbols or not extent.number:
        raise Inexpressible(f"a mean over {extent} elements")
    return extent.number


def mean(b: Builder, x: View, dims: Sequence[int], keep: bool) -> View:
    """Σ x / n."""
    return b.apply("mul", b.reduce("add", x, dims, keep), 1 / count(b, x, dims))


def variance(b: Builder, x: View, dims: Sequence[int], keep: bool, correction: float = 0) -> View:
    """Σ (x - mean)² / (n - correction)."""
    centred = b.apply("sub", x, mean(b, x, dims, True))
    left = count(b, x, dims) - correction
    if left <= 0:
        raise Inexpressible("a variance of too few elements")
    return b.apply("mul", b.reduce("add", b.apply("mul", centred, centred), dims, keep), 1 / left)


def softmax(b: Builder, x: View, dim: int) -> View:
    """exp(x - max) / Σ exp(x - max)."""
    weights = exp(b, b.apply("sub", x, b.reduce("max", x, [dim], True)))
    return b.apply("div", weights, b.reduce("add", weights, [dim], True))


def log_softmax(b: Builder, x: View, dim: int) -> View:
    """x - max - ln Σ exp(x - max)."""
    shifted = b.apply("sub", x, b.reduce("max", x, [dim], True))
    return b.apply("sub", shifted, b.apply("log", b.reduce("add", exp(b, shifted), [dim], True)))


def normalised(b: Builder, x: View, dims: Sequence[int], epsilon: float) -> View:
    """(x - mean) / √(variance + epsilon)."""
    centred = b.apply("sub", x, mean(b, x, dims, True))
    squares = b.reduce("add", b.apply("mul", centred, centred), dims, True)
    spread = b.apply("add", b.apply("mul", squares, 1 / count(b, x, dims)), epsilon)
    return b.apply("div", centred, b.apply("pow", spread, 0.5))


def affine(b: Builder, x: View, weight: View | None, bias: View | None) -> View:
    """x·weight + bias, each optional."""
    scaled = x if weight is None else b.apply("mul", x, weight)
    return scaled if bias is None else b.apply("add", scaled, bias)


def attention(b: Builder, query: View, key: View, value: View, bias: View | None, scale: float) -> View:
    """softmax(scale·query·keyᵀ + bias)·value."""
    rank = len(key.dims)
    scores = matmul(b, query, b.permute(key, [*range(rank - 2), rank - 1, rank - 2]))
    scaled = b.apply("mul", scores, scale)
    return matmul(b, softmax(b, scaled if bias is None else b.apply("add", scaled, bias), -1), value)


def _optional(call: Call, position: int, name: str) -> View | None:
    return call.view(position, name) if call.given(position, name) else None


def _matmul(b: Builder, call: Call) -> View:
    return matmul(b, call.view(0, "self"), call.view(1, "other" if call.node.op == "aten.matmul.default" else "mat2"))


def _linear(b: Builder, call: Call) -> View:
    return linear(b, call.view(0, "input"), call.view(1, "weight"), _optional(call, 2, "bias"))


def _addmm(b: Builder, call: Call) -> View:
    """beta·self + alpha·x·y."""
    beta, alpha = call.number(3, "beta", 1), call.number(4, "alpha", 1)
    summed = matmul(b, call.view(1, "mat1"), call.view(2, "mat2"))
    summed = summed if alpha == 1 else b.apply("mul", alpha, summed)
    if beta == 0:
        return summed
    added = call.view(0, "self")
    return b.apply("add", summed, added if beta == 1 else b.apply("mul", beta, added))


def _reduced(op: str) -> Build:
    return lambda b, call: b.reduce(op, call.view(0, "self"), call.dims(1, "dim"), call.flag(2, "keepdim"))


def _mean(b: Builder, call: Call) -> View:
    return mean(b, call.view(0, "self"), call.dims(1, "dim"), call.flag(2, "keepdim"))


def _variance(b: Builder, call: Call) -> View:
    keep = bool(call.node.value(3, "keepdim", False))
    return variance(b, call.view(0, "self"), call.dims(1, "dim"), keep, call.number(2, "correction", 1))


def _softmax(b: Builder, call: Call) -> View:
    return softmax(b, call.view(0, "self"), call.integer(1, "dim"))


def _log_softmax(b: Builder, call: Call) -> View:
    return log_softmax(b, call.view(0, "self"), call.integer(1, "dim"))


LARGEST = 3.4028234663852886e38
"""The largest float32."""


def _logsumexp(b: Builder, call: Call) -> View:
    """max + ln Σ exp(x - max), the maximum taken for finite: so nothing, or too much, is infinite as in PyTorch."""
    x, dims, keep = call.view(0, "self"), call.dims(1, "dim"), call.flag(2, "keepdim")
    top = b.apply("min", b.apply("max", b.reduce("max", x, dims, True), -LARGEST), LARGEST)
    summed = b.reduce("add", exp(b, b.apply("sub", x, top)), dims, True)
    found = b.apply("add", b.apply("log", summed), top)
    rank = len(x.dims)
    gone = set() if keep or not rank else {d % rank for d in dims}
    return View(found.source, found.axes, tuple(dim for d, dim in enumerate(found.dims) if d not in gone))


def _first_extremum(op: str) -> Build:
    """Of all elements, or with ``dim`` the first of two results; the tables compute no indices."""

    def build(b: Builder, call: Call) -> View:
        dims = call.dims(1, "dim") if call.given(1, "dim") else range(len(call.view(0, "self").dims))
        return b.reduce(op, call.view(0, "self"), dims, call.flag(2, "keepdim"))

    return build


def norm(b: Builder, x: View, order: float, dims: Sequence[int], keep: bool) -> View:
    """(Σ |x|^p)^(1/p), or the largest or least |x|. Raises Inexpressible for other orders."""
    if order == 2:
        return sqrt(b, b.reduce("add", b.apply("mul", x, x), dims, keep))
    size = magnitude(b, x)
    if order == 1:
        return b.reduce("add", size, dims, keep)
    if math.isinf(order):
        return b.reduce("max" if order > 0 else "min", size, dims, keep)
    if order <= 0:
        raise Inexpressible(f"a norm of order {order}")
    return b.apply("pow", b.reduce("add", power(b, size, order), dims, keep), 1 / order)


def _vector_norm(b: Builder, call: Call) -> View:
    x, keep = call.view(0, "self"), call.flag(3, "keepdim")
    value = call.node.value(2, "dim")
    found = value if isinstance(value, tuple) and value else tuple(range(len(x.dims)))
    dims = [d for d in found if isinstance(d, int)]
    if call.given(KEYWORD, "dtype"):
        raise Inexpressible("a norm in another type")
    return norm(b, x, call.number(1, "ord", 2), dims, keep)


def _distances(b: Builder, call: Call) -> View:
    """The norms of x[..., i, :] - y[..., j, :]."""
    apart = b.apply("sub", b.unsqueeze(call.view(0, "x1"), -2), b.unsqueeze(call.view(1, "x2"), -3))
    return norm(b, apart, call.number(2, "p", 2), [-1], False)


def _instance_norm(b: Builder, call: Call) -> View:
    """Each channel of each sample by itself, with its own statistics."""
    x = call.view(0, "input")
    if call.given(3, "running_mean") or not call.flag(5, "use_input_stats"):
        raise Inexpressible("instance norm with statistics that are kept")
    behind = (b.extents(x)[1], *(Extent() for _ in x.dims[2:]))
    weight, bias = (
        None if view is None else b.reshape(view, behind)
        for view in (_optional(call, 1, "weight"), _optional(call, 2, "bias"))
    )
    return affine(b, normalised(b, x, range(2, len(x.dims)), call.number(7, "eps")), weight, bias)


def _layer_norm(b: Builder, call: Call) -> View:
    x = call.view(0, "input")
    shape = call.node.value(1, "normalized_shape")
    dims = range(-len(shape) if isinstance(shape, tuple) else -1, 0)
    centred = normalised(b, x, dims, call.number(4, "eps", 1e-5))
    return affine(b, centred, _optional(call, 2, "weight"), _optional(call, 3, "bias"))


def _rms_norm(b: Builder, call: Call) -> View:
    """x / √(Σ x² / n + epsilon)·weight."""
    x = call.view(0, "input")
    shape = call.node.value(1, "normalized_shape")
    dims = range(-len(shape) if isinstance(shape, tuple) else -1, 0)
    epsilon = call.number(3, "eps") if call.given(3, "eps") else _EPSILON
    spread = b.apply("add", mean(b, b.apply("mul", x, x), dims, True), epsilon)
    return affine(b, b.apply("div", x, b.apply("pow", spread, 0.5)), _optional(call, 2, "weight"), None)


def _group_norm(b: Builder, call: Call) -> View:
    """Channels in groups, each normalised together with the dimensions behind the channels."""
    groups = call.integer(6, "group")
    x = call.view(0, "input")
    batch, channels, *rest = b.extents(x)
    inside = channels.over(Extent(groups))
    if inside is None:
        raise Inexpressible("groups that do not divide the channels")
    grouped = b.reshape(x, (batch, Extent(groups), inside, *rest))
    centred = normalised(b, grouped, range(2, len(grouped.dims)), call.number(7, "eps"))
    behind = (channels, *(Extent() for _ in rest))
    weight, bias = (
        None if view is None else b.reshape(view, behind)
        for view in (_optional(call, 1, "weight"), _optional(call, 2, "bias"))
    )
    return affine(b, b.reshape(centred, (batch, channels, *rest)), weight, bias)


def _attention(b: Builder, call: Call) -> View:
    """``masks.py`` has put finite biases in place of masks and causal flags."""
    masked, dropout, causal = ATTENTION_ARGUMENTS[call.node.op]
    if call.flag(causal, "is_causal") or call.number(dropout, "dropout_p", 0):
        raise Inexpressible("attention with dropout, or with both a mask and a causal flag")
    query, key, value = (call.view(k, name) for k, name in enumerate(("query", "key", "value")))
    width = b.extents(query)[-1]
    if width.symbols:
        raise Inexpressible("attention over features whose number is known only at run time")
    scale = call.number(KEYWORD, "scale") if call.given(KEYWORD, "scale") else 1 / math.sqrt(width.number)
    bias = _optional(call, masked, "attn_mask")
    if call.flag(KEYWORD, "enable_gqa"):
        return _grouped_attention(b, query, key, value, bias, scale)
    return attention(b, query, key, value, bias, scale)


def _grouped_attention(b: Builder, query: View, key: View, value: View, bias: View | None, scale: float) -> View:
    """Attention in which consecutive query heads share a head of keys and values."""
    shape, heads = b.extents(query), b.extents(key)[-3]
    group = shape[-3].over(heads)
    if group is None:
        raise Inexpressible("groups of query heads that differ")
    split = b.reshape(query, (*shape[:-3], heads, group, *shape[-2:]))
    own = None if bias is None else _in_groups(b, bias, heads, group)
    found = attention(b, split, b.unsqueeze(key, -3), b.unsqueeze(value, -3), own, scale)
    return b.reshape(found, (*shape[:-1], b.extents(value)[-1]))


def _in_groups(b: Builder, bias: View, heads: Extent, group: Extent) -> View:
    """A bias, one for each query head or one for all, with the heads in groups."""
    shape = b.extents(bias)
    if len(shape) < 3:
        return bias
    if shape[-3].is_one:
        return b.unsqueeze(bias, -3)
    return b.reshape(bias, (*shape[:-3], heads, group, *shape[-2:]))


CONTRACTIONS: dict[str, Build] = {
    "aten.mm.default": _matmul,
    "aten.bmm.default": _matmul,
    "aten.matmul.default": _matmul,
    "aten.mv.default": _matmul,
    "aten.dot.default": _matmul,
    "aten.linear.default": _linear,
    "aten.addmm.default": _addmm,
    "aten.addmv.default": _addmm,
    "aten.baddbmm.default": _addmm,
    "aten.cdist.default": _distances,
    "aten._cdist_forward.default": _distances,
    **dict.fromkeys(ATTENTION_ARGUMENTS, _attention),
}
"""ATen ops that sum products, by name. Einsum comes decomposed into these."""


def _diagonal(b: Builder, call: Call) -> View:
    if call.integer(1, "offset", 0):
        raise Inexpressible("a diagonal beside the first")
    x, (first, second) = call.view(0, "self"), (call.integer(2, "dim1", 0), call.integer(3, "dim2", 1))
    if b.extents(x)[first] != b.extents(x)[second]:
        raise Inexpressible("a diagonal of dimensions of different extents")
    return b.diagonal(x, first, second)


REDUCTIONS: dict[str, Build] = {
    "aten.sum.dim_IntList": _reduced("add"),
    "aten.sum.default": _reduced("add"),
    "aten.amax.default": _reduced("max"),
    "aten.amin.default": _reduced("min"),
    "aten.max.default": _first_extremum("max"),
    "aten.min.default": _first_extremum("min"),
    "aten.max.dim": _first_extremum("max"),
    "aten.min.dim": _first_extremum("min"),
    "aten.prod.default": _reduced("mul"),
    "aten.prod.dim_int": _reduced("mul"),
    "aten.logsumexp.default": _logsumexp,
    "aten.linalg_vector_norm.default": _vector_norm,
    "aten.diagonal.default": _diagonal,
    "aten.mean.dim": _mean,
    "aten.mean.default": _mean,
    "aten.var.correction": _variance,
    "aten._softmax.default": _softmax,
    "aten.softmax.int": _softmax,
    "aten._log_softmax.default": _log_softmax,
    "aten.log_softmax.int": _log_softmax,
    "aten.native_layer_norm.default": _layer_norm,
    "aten.layer_norm.default": _layer_norm,
    "aten.native_group_norm.default": _group_norm,
    "aten.instance_norm.default": _instance_norm,
    "aten.rms_norm.default": _rms_norm,
    "aten._fused_rms_norm.default": _rms_norm,
}
"""ATen ops that reduce, by name."""
