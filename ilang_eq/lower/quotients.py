"""Division by what does not move: a reciprocal is found once, and multiplied by.

A product with it is within 1.5 ulp of the quotient, if it is a normal number. Otherwise it has lost digits, or
overflowed where the quotient need not: then there has to be division after all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ilang_eq.lower.ir import Accumulate, Apply, Assign, Constant, Load, Scalar
from ilang_eq.lower.walk import loads

INVERSE = Load("inverse", ())
"""The reciprocal, a variable of its own."""
LEAST_NORMAL = "1.17549435e-38f"
"""2⁻¹²⁶, as C spells it."""


def divisors(value: Scalar) -> Sequence[Scalar]:
    """All that ``value`` divides by."""
    if not isinstance(value, Apply):
        return ()
    inside = [d for argument in value.arguments for d in divisors(argument)]
    return [*inside, value.arguments[1]] if value.op == "div" else inside


def multiplied(update: Assign | Accumulate, divisor: Load) -> Assign | Accumulate:
    """``update`` with products with ``INVERSE`` for quotients by ``divisor``."""
    match update:
        case Assign(target, value):
            return Assign(target, _product(value, divisor))
        case Accumulate(target, op, value):
            return Accumulate(target, op, _product(value, divisor))


def _product(value: Scalar, divisor: Load) -> Scalar:
    match value:
        case Load() | Constant():
            return value
        case Apply("div", (x, d)) if d == divisor and any(True for _ in loads(x)):
            return Apply("mul", (_product(x, divisor), INVERSE))
        case Apply(op, arguments):
            return Apply(op, tuple(_product(argument, divisor) for argument in arguments))
        case other:
            assert_never(other)
