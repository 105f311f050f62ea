"""Elementwise ATen calls that are defined by cases: activations with a bend, comparisons, logic.

A case that overflows where it does not count is computed on min(x, 0), so that nothing infinite is multiplied by 0.
Small results of exp(x) - 1 and log(1 + x) have absolute precision only, as tanh has; ``expm1`` and ``log1p`` by
themselves promise more, and stay with PyTorch.
"""

from __future__ import annotations

from ilang_eq.tracing.build import Builder, Inexpressible, View
from ilang_eq.tracing.call import Build, Call
from ilang_eq.tracing.pointwise import Operand, exp, magnitude, negative


def elu(b: Builder, x: Operand, alpha: float, scale: float, inner: float) -> View:
    """scale·x where x > 0, else scale·alpha·(exp(inner·x) - 1)."""
    below = b.apply("min", x, 0.0)
    grown = exp(b, below if inner == 1 else b.apply("mul", inner, below))
    bent = b.apply("mul", scale * alpha, b.apply("sub", grown, 1.0))
    above = b.apply("max", x, 0.0)
    return b.apply("add", above if scale == 1 else b.apply("mul", scale, above), bent)


def leaky(b: Builder, x: Operand, slope: Operand) -> View:
    """x where x > 0, else slope·x."""
    return b.apply("add", b.apply("max", x, 0.0), b.apply("mul", slope, b.apply("min", x, 0.0)))


def softplus(b: Builder, x: Operand, beta: float = 1.0) -> View:
    """ln(1 + exp(beta·x)) / beta, as max(x, 0) + ln(1 + exp(-beta·|x|)) / beta."""
    size = magnitude(b, x)
    bend = b.apply("log", b.apply("add", 1.0, exp(b, b.apply("mul", -beta, size))))
    return b.apply("add", b.apply("max", x, 0.0), bend if beta == 1 else b.apply("mul", 1 / beta, bend))


def mish(b: Builder, x: Operand) -> View:
    """x·tanh(softplus(x)), as x·(1 - 2 / (1 + (1 + exp x)²)), where exp x is bounded: from 20 on it is x."""
    grown = b.apply("add", 1.0, exp(b, b.apply("min", x, 20.0)))
    rest = b.apply("div", 2.0, b.apply("add", 1.0, b.apply("mul", grown, grown)))
    return b.apply("mul", x, b.apply("sub", 1.0, rest))


def log_sigmoid(b: Builder, x: Operand) -> View:
    """-ln(1 + exp(-x))."""
    return negative(b, softplus(b, negative(b, x)))


def _elu(b: Builder, call: Call) -> View:
    return elu(
        b,
        call.view(0, "self"),
        call.number(1, "alpha", 1),
        call.number(2, "scale", 1),
        call.number(3, "input_scale", 1),
    )


def _celu(b: Builder, call: Call) -> View:
    alpha = call.number(1, "alpha", 1)
    if alpha == 0:
        raise Inexpressible("celu with alpha 0")
    return elu(b, call.view(0, "self"), alpha, 1.0, 1 / alpha)


def _selu(b: Builder, call: Call) -> View:
    return elu(b, call.view(0, "self"), 1.6732632423543772, 1.0507009873554805, 1.0)


def _leaky_relu(b: Builder, call: Call) -> View:
    return leaky(b, call.view(0, "self"), call.number(1, "negative_slope", 0.01))


def _prelu(b: Builder, call: Call) -> View:
    """A slope for each of the second dimension, or one for all."""
    x, slopes = call.view(0, "self"), call.view(1, "weight")
    extents = b.extents(slopes)
    if len(x.dims) > 1 and extents and not extents[0].is_one:
        slopes = View(slopes.source, slopes.axes, (*slopes.dims, *((),) * (len(x.dims) - 2)))
    return leaky(b, x, slopes)


def _softplus(b: Builder, call: Call) -> View:
    """Beyond ``threshold`` PyTorch returns x, from which this differs by exp(-threshold) at most."""
    beta = call.number(1, "beta", 1)
    if beta <= 0 or call.number(2, "threshold", 20) < 15:
        raise Inexpressible("softplus with a low threshold")
    return softplus(b, call.view(0, "self"), beta)


def _hardtanh(b: Builder, call: Call) -> View:
    low, high = call.number(1, "min_val", -1), call.number(2, "max_val", 1)
    return b.apply("min", b.apply("max", call.view(0, "self"), low), high)


def sign(b: Builder, x: Operand) -> View:
    """(x > 0) - (x < 0), so 0 for NaN, as in PyTorch."""
    return b.apply("sub", b.apply("gt", x, 0.0), b.apply("lt", x, 0.0))


def _compared(op: str) -> Build:
    return lambda b, call: b.apply(op, call.view(0, "self"), call.view(1, "other"))


PIECEWISE: dict[str, Build] = {
    "aten.elu.default": _elu,
    "aten.celu.default": _celu,
    "aten.selu.default": _selu,
    "aten.leaky_relu.default": _leaky_relu,
    "aten.prelu.default": _prelu,
    "aten.softplus.default": _softplus,
    "aten.mish.default": lambda b, call: mish(b, call.view(0, "self")),
    "aten.log_sigmoid.default": lambda b, call: log_sigmoid(b, call.view(0, "self")),
    "aten.hardtanh.default": _hardtanh,
    **dict.fromkeys(("aten.sign.default", "aten.sgn.default"), lambda b, call: sign(b, call.view(0, "self"))),
}
"""Elementwise ATen ops with cases, by name."""

COMPARISONS: dict[str, Build] = {
    **{
        f"aten.{op}.{kind}": _compared(op)
        for op in ("gt", "ge", "lt", "le", "eq", "ne")
        for kind in ("Tensor", "Scalar")
    },
    **{f"aten.logical_{op}.default": _compared(op) for op in ("and", "or", "xor")},
    **{f"aten.bitwise_{op}.Tensor": _compared(op) for op in ("and", "or", "xor")},
    **dict.fromkeys(
        ("aten.logical_not.default", "aten.bitwise_not.default"), lambda b, call: b.apply("not", call.view(0, "self"))
    ),
}
"""ATen ops that make truth values, by name: 1 or 0 inside a region, and bool where PyTorch reads them."""
