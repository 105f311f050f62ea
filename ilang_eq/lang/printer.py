"""Expressions as 𝚒 text: the inverse of the parser, ``parse(print_expr(e)) == e``."""

from __future__ import annotations

from typing import assert_never

from ilang_eq.lang.expr import Access, Expr, Literal, Operand
from ilang_eq.lang.ops import OPS


def print_expr(expr: Expr) -> str:
    """The text of a well-formed expression, without white space: ``+ijk~ij|k:16|ik!jk'0``."""
    operands = [print_operand(o) for o in expr.operands]
    symbol = OPS[expr.op].symbol
    text = symbol.join(operands) if len(operands) == 2 else symbol + operands[0]
    return f"{text}~{expr.output or '.'}{print_schedule(expr)}"


def print_schedule(expr: Expr) -> str:
    """The splits and order with their bars; nothing for a default schedule without splits."""
    if not expr.splits and not expr.order:
        return ""
    splits = ",".join(":".join((axis, *map(str, factors))) for axis, factors in expr.splits)
    return f"|{splits}|{''.join(map(str, expr.order))}"


def print_operand(operand: Operand) -> str:
    """``ij``, ``.`` or a number."""
    match operand:
        case Access(axes):
            return axes or "."
        case Literal(value):
            return print_number(value)
        case other:
            assert_never(other)


def print_number(value: float) -> str:
    """The shortest decimal that reads back as ``value``."""
    digits, e, exponent = repr(float(value) + 0.0).partition("e")
    return digits.removesuffix(".0") + (f"e{int(exponent)}" if e else "")
