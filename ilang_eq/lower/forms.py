"""How a value depends on a statistic x that is still being reduced (design 5.3).

A value v separates from x as v = u + shift·x, or as v = u · x^power · e^(rate·x), with u free of x; it may do both, or
neither. The table below says how every op carries the two forms along. From Neptune's repair function and RedFuser's
decomposability test; no shape of computation is looked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ilang_eq.lang.expr import Expr, Literal


@dataclass(frozen=True, slots=True)
class Factor:
    """x^power · e^(rate·x)."""

    power: float = 0.0
    rate: float = 0.0

    def to(self, exponent: float) -> Factor:
        """The factor raised to ``exponent``."""
        return Factor(self.power * exponent, self.rate * exponent)

    def times(self, other: Factor) -> Factor:
        """The product of two factors of the same statistic."""
        return Factor(self.power + other.power, self.rate + other.rate)

    @property
    def positive(self) -> bool:
        """Whether the factor is positive whatever x is."""
        return self.power == 0


@dataclass(frozen=True, slots=True)
class Form:
    """The separations of one value; a None is one that does not exist.

    ``rows`` names, per dimension of the statistic, the axis of the value's expression that indexes it. ``divided`` is
    whether it was divided by on the way, even where that has cancelled since: then it must not read as 0. ``tame``
    says that while x is unfinished nothing on the way overflows that would not with the finished x: the exponents in
    which x stands are bounded from above, and no such power is divided by.
    """

    rows: str
    shift: float | None
    factor: Factor | None
    divided: bool = False
    tame: bool = True


FREE = Form("", 0.0, Factor())
"""A value that does not depend on the statistic at all."""


def read_form(rows: str) -> Form:
    """The form of the statistic itself."""
    return Form(rows, 1.0, Factor(power=1.0))


def apply_form(expr: Expr, operands: tuple[Form | None, ...], bounded: bool = False) -> Form | None:
    """The form of a pointwise ``expr`` whose operands have forms (None: no form at all, not even free).

    Args:
        expr: one operation.
        operands: their forms.
        bounded: whether ``expr``, if it is a power, has an exponent that is bounded while x is unfinished.
    """
    given = [form for form in operands if form is not None]
    if len(given) < len(operands):
        return None
    bound = {form.rows for form in given if form is not FREE}
    if not bound:
        return FREE
    if len(bound) > 1:
        return None
    if len(given) == 1:
        shift, factor = _unary(expr.op, given[0])
    else:
        shift, factor = _binary(expr, given[0], given[1])
    divided = any(form.divided for form in given) or _divides(expr, given)
    tame = all(form.tame for form in given) and (bounded or not raises(expr, given)) and not _inverts(expr, given)
    return None if shift is None and factor is None else Form(bound.pop(), shift, factor, divided, tame)


def raises(expr: Expr, operands: Sequence[Form | None]) -> bool:
    """Whether ``expr`` is a power with the statistic in its exponent."""
    exponent = operands[-1]
    return expr.op == "pow" and exponent is not None and exponent.shift not in (0, None)


def _inverts(expr: Expr, operands: Sequence[Form]) -> bool:
    """Whether ``expr`` takes the reciprocal of a power with the statistic in its exponent: that may underflow."""
    match expr.op:
        case "div":
            below = operands[-1].factor
        case "pow" if isinstance(expr.operands[-1], Literal) and expr.operands[-1].value < 0:
            below = operands[0].factor
        case _:
            return False
    return below is not None and below.rate != 0


def _divides(expr: Expr, operands: Sequence[Form]) -> bool:
    """Whether ``expr`` takes a power of the statistic that is infinite or undefined at 0."""
    match expr.op:
        case "div":
            below = operands[-1].factor
            return below is not None and below.power != 0
        case "pow":
            base = operands[0].factor
            return len(operands) == 2 and base is not None and base.power != 0
        case _:
            return False


def _unary(op: str, v: Form) -> tuple[float | None, Factor | None]:
    match op:
        case "add" | "mul" | "max" | "min":
            return v.shift, v.factor
        case "sub":
            return (None if v.shift is None else -v.shift), v.factor
        case "div":
            return None, (None if v.factor is None else v.factor.to(-1))
        case "pow":
            return None, _exponential(math.e, v)
        case _:
            return None, None


def _binary(expr: Expr, a: Form, b: Form) -> tuple[float | None, Factor | None]:
    left, right = (o.value if isinstance(o, Literal) else None for o in expr.operands)
    match expr.op:
        case "add":
            return _sum(a.shift, b.shift, 1), _common(a, b)
        case "sub":
            return _sum(a.shift, b.shift, -1), _common(a, b)
        case "mul":
            by = left if left is not None else right
            of = b if left is not None else a
            return _scaled(of.shift, by), _product(a.factor, b.factor)
        case "div":
            by = None if right is None or right == 0 else 1 / right
            return _scaled(a.shift, by), _product(a.factor, None if b.factor is None else b.factor.to(-1))
        case "pow" if left is not None and left > 0:
            return None, _exponential(left, b)
        case "pow" if right is not None and right == int(right) and a.factor is not None:
            return None, a.factor.to(right)
        case "max" | "min":
            same = a.factor if a.factor == b.factor and a.factor is not None and a.factor.positive else None
            return (a.shift if a.shift == b.shift else None), same
        case _:
            return None, None


def _sum(a: float | None, b: float | None, sign: int) -> float | None:
    return None if a is None or b is None else a + sign * b


def _common(a: Form, b: Form) -> Factor | None:
    return a.factor if a.factor == b.factor else None


def _scaled(shift: float | None, by: float | None) -> float | None:
    return None if shift is None or by is None else shift * by


def _product(a: Factor | None, b: Factor | None) -> Factor | None:
    return None if a is None or b is None else a.times(b)


def _exponential(base: float, v: Form) -> Factor | None:
    return None if v.shift is None else Factor(rate=v.shift * math.log(base))


def reduce_form(expr: Expr, v: Form | None) -> Form | None:
    """The form that survives a reduction: ⊕ must distribute over the separation, and keep the statistic's rows.

    This is the test h(y₁⊕y₂, x, x') = h(y₁, x, x') ⊕ h(y₂, x, x'): sums distribute over factors, max and min over
    shifts and over positive factors, a product over neither.
    """
    if v is None or v is FREE:
        return v
    if any(axis in expr.reduced for axis in v.rows):
        return None
    match expr.op:
        case "add":
            kept = replace(v, shift=None)
        case "max" | "min":
            kept = replace(v, factor=v.factor if v.factor is not None and v.factor.positive else None)
        case _:
            return None
    return None if kept.shift is None and kept.factor is None else kept
