"""Elementwise ATen calls as expressions.

Every function takes a builder and operands and returns the value of the last expression. Functions that 𝚒 lacks are
composed: tanh, sigmoid and SiLU of exponentials, erf and GELU of a logistic function of a polynomial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ilang_eq.tracing.build import Builder, Inexpressible, View
from ilang_eq.tracing.call import Build, Call
from ilang_eq.tracing.extents import Extent

Operand = View | float

_NORMAL_CDF = (
    1.5957685367667513,
    0.07266829839296023,
    -6.605352454453383e-05,
    -0.00011054673642506086,
    7.948136413508255e-06,
    -2.675660806027954e-07,
    3.6278473737603417e-09,
)
"""Odd coefficients of P, where 1 / (1 + exp(-P(x))) is the normal distribution function Φ.

A minimax fit of x·Φ(x): its largest error over the reals is 6.6e-8, so GELU in float32 is as exact as its arithmetic.
"""


def negative(b: Builder, x: Operand) -> View:
    """-x."""
    return b.apply("sub", x)


def exp(b: Builder, x: Operand) -> View:
    """e to the x."""
    return b.apply("pow", x)


def sqrt(b: Builder, x: Operand) -> View:
    """The square root."""
    return b.apply("pow", x, 0.5)


def magnitude(b: Builder, x: Operand) -> View:
    """|x|."""
    return b.apply("max", x, negative(b, x))


def over_one_plus_exp(b: Builder, top: Operand, x: Operand) -> View:
    """top / (1 + exp(x)): the logistic function, SiLU and GELU are of this form."""
    return b.apply("div", top, b.apply("add", 1.0, exp(b, x)))


def sigmoid(b: Builder, x: Operand) -> View:
    """1 / (1 + exp(-x))."""
    return over_one_plus_exp(b, 1.0, negative(b, x))


def silu(b: Builder, x: Operand) -> View:
    """x / (1 + exp(-x))."""
    return over_one_plus_exp(b, x, negative(b, x))


def tanh(b: Builder, x: Operand) -> View:
    """1 - 2 / (1 + exp(2x)): exact to the rounding of 1, so small results have absolute precision only."""
    return b.apply("sub", 1.0, over_one_plus_exp(b, 2.0, b.apply("mul", 2.0, x)))


def cosh(b: Builder, x: Operand) -> View:
    """(exp(x) + exp(-x)) / 2, as h/2·h + 1/2/h/h with h = exp(x/2), which overflows no sooner than the result."""
    half = exp(b, b.apply("mul", 0.5, x))
    grown = b.apply("mul", b.apply("mul", 0.5, half), half)
    return b.apply("add", grown, b.apply("div", b.apply("div", 0.5, half), half))


def power(b: Builder, x: Operand, exponent: Operand) -> View:
    """x to a power; small whole ones as products, which hold for negative x too and cost less."""
    if not isinstance(exponent, float):
        return b.apply("pow", x, exponent)
    if exponent == 1.0:
        return b.apply("mul", x, 1.0)
    if exponent in (2.0, 3.0, 4.0):
        square = b.apply("mul", x, x)
        return square if exponent == 2.0 else b.apply("mul", square, x if exponent == 3.0 else square)
    if exponent < 0 and exponent == int(exponent):
        return b.apply("div", 1.0, power(b, x, -exponent))
    return b.apply("pow", x, exponent)


def polynomial(b: Builder, x: Operand, coefficients: Sequence[float]) -> Operand:
    """Horner's rule; the constant coefficient first."""
    *rest, value = coefficients
    result: Operand = value
    for coefficient in reversed(rest):
        result = b.apply("add", coefficient, b.apply("mul", result, x))
    return result


def _minus_logit_of_normal(b: Builder, x: Operand, scale: float) -> View:
    """-P(scale·x), with the scale in the coefficients."""
    square = b.apply("mul", x, x)
    scaled = [-c * scale ** (2 * k + 1) for k, c in enumerate(_NORMAL_CDF)]
    return b.apply("mul", polynomial(b, square, scaled), x)


def gelu(b: Builder, x: Operand) -> View:
    """x·Φ(x), to 7e-8."""
    return over_one_plus_exp(b, x, _minus_logit_of_normal(b, x, 1.0))


def gelu_tanh(b: Builder, x: Operand) -> View:
    """x·(1 + tanh z)/2 with z = √(2/π)·(x + 0.044715·x³), which is x / (1 + exp(-2z))."""
    slope = -2 * math.sqrt(2 / math.pi)
    square = b.apply("mul", x, x)
    inner = polynomial(b, square, (slope, 0.044715 * slope))
    return over_one_plus_exp(b, x, b.apply("mul", inner, x))


def erf(b: Builder, x: Operand) -> View:
    """2·Φ(√2·x) - 1, to 2e-7."""
    return b.apply("sub", over_one_plus_exp(b, 2.0, _minus_logit_of_normal(b, x, math.sqrt(2))), 1.0)


def where(b: Builder, condition: Operand, x: Operand, y: Operand) -> View:
    """x where the condition is 1, y where it is 0.

    max(x + ln c, y + ln(1 - c)): adding 0 changes nothing, adding -inf loses to any number, and a NaN from inf - inf is
    what 𝚒's max skips. So it holds for every x and y but NaN.
    """
    kept = b.apply("add", x, b.apply("log", condition))
    other = b.apply("add", y, b.apply("log", b.apply("sub", 1.0, condition)))
    return b.apply("max", kept, other)


def _unary(function: Callable[[Builder, Operand], View]) -> Build:
    return lambda b, call: function(b, call.view(0, "self"))


def _binary(op: str, right: str = "other") -> Build:
    return lambda b, call: b.apply(op, call.view(0, "self"), call.view(1, right))


def _reversed(op: str) -> Build:
    return lambda b, call: b.apply(op, call.view(1, "other"), call.view(0, "self"))


def _scaled(op: str) -> Build:
    """``self op alpha·other``."""

    def build(b: Builder, call: Call) -> View:
        other, alpha = call.view(1, "other"), call.number(2, "alpha", 1)
        return b.apply(op, call.view(0, "self"), other if alpha == 1 else b.apply("mul", alpha, other))

    return build


def _divide(b: Builder, call: Call) -> View:
    if call.given(2, "rounding_mode"):
        raise Inexpressible("division that rounds to whole numbers")
    return b.apply("div", call.view(0, "self"), call.view(1, "other"))


def _power(b: Builder, call: Call) -> View:
    exponent = call.node.value(1, "exponent")
    return power(
        b, call.view(0, "self"), float(exponent) if isinstance(exponent, int | float) else call.view(1, "exponent")
    )


def _gelu(b: Builder, call: Call) -> View:
    form = gelu_tanh if call.node.value(1, "approximate", "none") == "tanh" else gelu
    return form(b, call.view(0, "self"))


def _clamp(b: Builder, call: Call) -> View:
    view = call.view(0, "self")
    if call.given(1, "min"):
        view = b.apply("max", view, call.view(1, "min"))
    return b.apply("min", view, call.view(2, "max")) if call.given(2, "max") else view


def _lerp(b: Builder, call: Call) -> View:
    """self + weight·(end - self)."""
    start = call.view(0, "self")
    return b.apply("add", start, b.apply("mul", call.view(2, "weight"), b.apply("sub", call.view(1, "end"), start)))


def _where(b: Builder, call: Call) -> View:
    return where(b, call.view(0, "condition"), call.view(1, "self"), call.view(2, "other"))


def _batch_norm(b: Builder, call: Call) -> View:
    """(x - mean)·weight / √(variance + epsilon) + bias, by channels, with the statistics that were kept."""
    x = call.view(0, "input")
    behind = (b.extents(x)[1], *(Extent() for _ in x.dims[2:]))

    def channels(position: int, name: str) -> View:
        return b.reshape(call.view(position, name), behind)

    scale = b.apply("pow", b.apply("add", channels(4, "running_var"), call.number(6, "eps")), -0.5)
    scale = b.apply("mul", channels(1, "weight"), scale) if call.given(1, "weight") else scale
    scaled = b.apply("mul", b.apply("sub", x, channels(3, "running_mean")), scale)
    return b.apply("add", scaled, channels(2, "bias")) if call.given(2, "bias") else scaled


POINTWISE: dict[str, Build] = {
    "aten.add.Tensor": _scaled("add"),
    "aten.add.Scalar": _scaled("add"),
    "aten.sub.Tensor": _scaled("sub"),
    "aten.sub.Scalar": _scaled("sub"),
    "aten.rsub.Scalar": _reversed("sub"),
    "aten.mul.Tensor": _binary("mul"),
    "aten.mul.Scalar": _binary("mul"),
    "aten.div.Tensor": _divide,
    "aten.div.Scalar": _divide,
    **dict.fromkeys(("aten.maximum.default", "aten.fmax.default"), _binary("max")),
    **dict.fromkeys(("aten.minimum.default", "aten.fmin.default"), _binary("min")),
    "aten.pow.Tensor_Scalar": _power,
    "aten.pow.Tensor_Tensor": _power,
    "aten.pow.Scalar": _binary("pow", "exponent"),
    "aten.neg.default": _unary(negative),
    "aten.exp.default": _unary(exp),
    "aten.exp2.default": _unary(lambda b, x: b.apply("pow", 2.0, x)),
    "aten.log.default": _unary(lambda b, x: b.apply("log", x)),
    "aten.log2.default": _unary(lambda b, x: b.apply("log", 2.0, x)),
    "aten.log10.default": _unary(lambda b, x: b.apply("log", 10.0, x)),
    "aten.sqrt.default": _unary(sqrt),
    "aten.rsqrt.default": _unary(lambda b, x: b.apply("pow", x, -0.5)),
    "aten.reciprocal.default": _unary(lambda b, x: b.apply("div", x)),
    "aten.abs.default": _unary(magnitude),
    "aten.relu.default": _unary(lambda b, x: b.apply("max", 0.0, x)),
    "aten.sigmoid.default": _unary(sigmoid),
    "aten.silu.default": _unary(silu),
    "aten.tanh.default": _unary(tanh),
    "aten.cosh.default": _unary(cosh),
    "aten.erf.default": _unary(erf),
    "aten.gelu.default": _gelu,
    **dict.fromkeys(("aten.clamp.default", "aten.clamp.Tensor"), _clamp),
    "aten.clamp_min.default": lambda b, call: b.apply("max", call.view(0, "self"), call.view(1, "min")),
    "aten.clamp_max.default": lambda b, call: b.apply("min", call.view(0, "self"), call.view(1, "max")),
    "aten.square.default": _unary(lambda b, x: b.apply("mul", x, x)),
    **dict.fromkeys(("aten.lerp.Scalar", "aten.lerp.Tensor"), _lerp),
    "aten.where.self": _where,
    "aten._native_batch_norm_legit_no_training.default": _batch_norm,
}
"""Elementwise ATen ops, by name. ``maximum`` and ``minimum`` skip a NaN, where torch passes it on."""
