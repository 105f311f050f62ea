"""Division by what a loop does not move: a vector division takes as long as sixteen multiplications.

before →  for j: out[j] = x[j] / d
after  →  inverse = 1 / d;  if it is a normal number: for j: out[j] = x[j] * inverse;  else as before

The product is within 1.5 ulp of the quotient. Where the inverse is no normal number, it has lost digits, or overflowed
where the quotient need not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from ilang_eq.lower.ir import Accumulate, Apply, Assign, Constant, For, Load, Scalar, Statement
from ilang_eq.lower.walk import declared_in, loads, mentions, updates

INVERSE = Load("inverse", ())
"""The reciprocal, a variable of its own."""


@dataclass(frozen=True, slots=True)
class Inverted:
    """A loop's ``body`` with the division by ``divisor`` replaced by a multiplication by ``INVERSE``."""

    divisor: Load
    body: tuple[Statement, ...]


def inverted(loop: For) -> Inverted | None:
    """An innermost ``loop`` without division; None unless all that it divides by is one place that it does not move."""
    written = {update.target.buffer for update in updates(loop.body)} | set(declared_in(loop.body))
    divisors = {d for update in updates(loop.body) for d in _divisors(update.value)}
    match list(divisors):
        case [Load() as d] if not mentions(d, loop.variable) and d.buffer not in written:
            return Inverted(d, tuple(_multiplied(s, d) for s in loop.body))
        case _:
            return None


def _divisors(value: Scalar) -> Sequence[Scalar]:
    if not isinstance(value, Apply):
        return ()
    inside = [d for argument in value.arguments for d in _divisors(argument)]
    return [*inside, value.arguments[1]] if value.op == "div" else inside


def _multiplied(statement: Statement, divisor: Load) -> Statement:
    match statement:
        case Assign(target, value):
            return Assign(target, _product(value, divisor))
        case Accumulate(target, op, value):
            return Accumulate(target, op, _product(value, divisor))
        case _:
            return statement


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
