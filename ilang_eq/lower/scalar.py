"""Scalar expressions of the loop IR as C text.

An op prints as an infix operator or as a call of a function in ``math.py``; which one, and with which arguments, is
decided once, by ``spell``.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from ilang_eq.lower.ir import Apply, Constant, Load, Scalar

LoadText = Callable[[Load], str]
"""How a place is written in C."""

_INFIX = {"add": ("+", 2), "sub": ("-", 2), "mul": ("*", 3), "div": ("/", 3)}
_COMPARE = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "eq": "==", "ne": "!="}
_LOGIC = {"and": "&", "or": "|", "xor": "^"}
_POWERS = {2.0: "square", 0.5: "root", 3.0: "cube", 4.0: "fourth"}
_CALLS = {
    "exp": "exp_of",
    "ln": "ln_of",
    "pow": "pow_of",
    "log": "log_of",
    "finite_or": "finite_or",
    "shift_factor": "shift_factor",
    "abs": "abs_of",
}
EXTREMA = {"max": "larger", "min": "smaller"}
"""The functions that update a running extremum, which is never NaN."""


@dataclass(frozen=True, slots=True)
class Infix:
    """``left operator right``; a higher ``precedence`` binds tighter."""

    operator: str
    precedence: int
    left: Scalar
    right: Scalar


@dataclass(frozen=True, slots=True)
class Call:
    """``function(arguments)``."""

    function: str
    arguments: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Truth:
    """A comparison, or logic on truth values, as 1.0f or 0.0f."""

    operator: str
    arguments: tuple[Scalar, ...]
    logical: bool


Spelling = Infix | Call | Truth


def spell(value: Apply) -> Spelling:
    """How ``value`` is computed in C."""
    match value.op, value.arguments:
        case ("add" | "sub" | "mul" | "div") as op, (x, y):
            operator, precedence = _INFIX[op]
            return Infix(operator, precedence, x, y)
        case ("max" | "min") as op, (x, y):
            return _extremum(op, x, y)
        case "pow", (base, Constant(exponent)):
            return _power(base, exponent, value)
        case "pow", (Constant(base), x):
            return _exponential(base, x)
        case "log", (Constant(base), x) if base == math.e:
            return Call("ln_of", (x,))
        case "log", (Constant(base), x) if 0.0 < base < math.inf and base != 1.0:
            return _logarithm(base, x)
        case op, arguments if op in _COMPARE:
            return Truth(_COMPARE[op], arguments, logical=False)
        case op, arguments if op in _LOGIC:
            return Truth(_LOGIC[op], arguments, logical=True)
        case "not", (x,):
            return Truth("==", (x, Constant(0.0)), logical=False)
        case op, arguments:
            return Call(_CALLS[op], arguments)


def _extremum(op: str, x: Scalar, y: Scalar) -> Call:
    """Against a number, one comparison is enough."""
    plain, skipping = ("larger", "max_of") if op == "max" else ("smaller", "min_of")
    match x, y:
        case _, Constant():
            return Call(plain, (x, y))
        case Constant(), _:
            return Call(plain, (y, x))
        case _:
            return Call(skipping, (x, y))


def _power(base: Scalar, exponent: float, value: Apply) -> Spelling:
    if exponent in _POWERS:
        return Call(_POWERS[exponent], (base,))
    if exponent == 1.0:
        return Infix("*", 3, base, Constant(1.0))
    if exponent == -1.0:
        return Infix("/", 3, Constant(1.0), base)
    if exponent == -0.5:
        return Infix("/", 3, Constant(1.0), Apply("pow", (base, Constant(0.5))))
    if exponent == -2.0:
        # not 1/x², which vanishes where x^-2 does not
        return Call("square", (Apply("div", (Constant(1.0), base)),))
    if isinstance(base, Constant):
        return _exponential(base.value, Constant(exponent))
    return Call("pow_of", value.arguments)


def _exponential(base: float, x: Scalar) -> Call:
    """base^x through 2^(x·log2 base), with log2 base in two floats."""
    if base == math.e:
        return Call("exp_of", (x,))
    if not 0.0 < base < math.inf or base == 1.0:
        return Call("pow_of", (Constant(base), x))
    return Call("exp2_of", (x, *_in_two(math.log2(base))))


def _logarithm(base: float, x: Scalar) -> Call:
    """The logarithm to ``base``: ln x / ln base, and the exponent of two apart."""
    return Call("log_in", (x, *_in_two(1.0 / math.log(base)), *_in_two(1.0 / math.log2(base))))


def _in_two(value: float) -> tuple[Constant, Constant]:
    """``value`` as the sum of two floats."""
    high = as_float32(value)
    return Constant(high), Constant(value - high)


def operands(spelling: Spelling) -> tuple[Scalar, ...]:
    """What ``spelling`` computes with."""
    match spelling:
        case Infix(_, _, left, right):
            return (left, right)
        case Call(_, arguments) | Truth(_, arguments):
            return arguments
        case other:
            assert_never(other)


@dataclass(slots=True)
class Printer:
    """Prints scalars. ``load`` writes a place; ``used`` collects the functions of ``math.py`` that are called."""

    load: LoadText
    used: set[str]

    def text(self, value: Scalar, around: int = 0) -> str:
        """``value`` in C, in parentheses where an operator of precedence ``around`` needs them."""
        match value:
            case Constant(number):
                return number_text(number)
            case Load():
                return self.load(value)
            case Apply():
                return self.spelled(spell(value), around)
            case other:
                assert_never(other)

    def spelled(self, spelling: Spelling, around: int) -> str:
        """``spelling`` in C, in parentheses where ``around`` needs them."""
        match spelling:
            case Infix(operator, precedence, left, right):
                # the right operand one tighter: a - (b - c) keeps its parentheses
                sentence = f"{self.text(left, precedence)} {operator} {self.text(right, precedence + 1)}"
                return f"({sentence})" if precedence < around else sentence
            case Call():
                return self.call(spelling)
            case Truth(operator, (x, y), logical):
                zero = " != 0.0f" if logical else ""
                left, right = (f"({self.text(side, 4)}{zero})" for side in (x, y))
                return f"({left} {operator} {right} ? 1.0f : 0.0f)"
            case Truth():
                raise ValueError("a comparison has two operands")
            case other:
                assert_never(other)

    def call(self, call: Call) -> str:
        """``call`` in C."""
        self.used.add(call.function)
        return f"{call.function}({', '.join(self.text(argument) for argument in call.arguments)})"


def combine(op: str, target: str, value: str) -> str | None:
    """``target ⊕ value`` as a compound assignment; None for an op that has none."""
    return f"{target} {_INFIX[op][0]}= {value}" if op in ("add", "mul") else None


def update_text(where: str, op: str, value: str, used: set[str]) -> str:
    """``where ⊕= value`` for floats."""
    if op in EXTREMA:
        used.add(EXTREMA[op])
        return f"{where} = {EXTREMA[op]}({value}, {where});"
    sentence = combine(op, where, value)
    if sentence is not None:
        return f"{sentence};"
    symbol = {"and": "&", "or": "|", "xor": "^"}[op]
    return f"{where} = ({where} != 0.0f) {symbol} ({value} != 0.0f) ? 1.0f : 0.0f;"


def as_float32(value: float) -> float:
    """``value`` rounded to float32; infinite where it does not fit."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def number_text(value: float) -> str:
    """``value`` as a float constant that C reads back exactly."""
    single = as_float32(value)
    if math.isnan(single):
        return "NAN"
    if math.isinf(single):
        return "INFINITY" if single > 0 else "-INFINITY"
    digits = next(d for n in range(6, 10) if as_float32(float(d := f"{single:.{n}g}")) == single)
    return (digits if "." in digits or "e" in digits else digits + ".0") + "f"
