"""Is an expression well formed? The invariants of ``expr.py``, each with its error.

The reference compiler's wording is not copied; its verdicts are, but for zero split factors, which are refused here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NoReturn, assert_never

from ilang_eq.errors import CheckError
from ilang_eq.lang.expr import Access, Expr, Init, Literal, Loop, Stage
from ilang_eq.lang.ops import OPS

MAX_TILE = 2**31 - 1
"""The largest product of one axis's split factors: a tile's extent fits a 32-bit integer."""

MAX_LEVELS = 32
"""The most factors of one axis: more than MAX_TILE leaves room for, unless they are ones."""

MAX_ITEMS = 26 * (MAX_LEVELS + 1) + 3
"""The most items of an order: every loop of every axis, both operands and '!'."""


@dataclass(frozen=True, slots=True)
class Positions:
    """Where the parts of an expression stand in its source: zero-based offsets, in the order of the parts."""

    source: str
    operator: int
    operands: tuple[int, ...]
    output: int
    splits: tuple[int, ...]
    order: tuple[int, ...]


def check(expr: Expr, at: Positions | None = None) -> None:
    """Raise CheckError unless ``expr`` keeps the invariants of ``expr.py``; ``at`` locates the error in the text."""
    _check_operands(expr, at)
    _check_output(expr, at)
    _check_axes_kept(expr, at)
    _check_splits(expr, at)
    _check_order(expr, at)


def _fail(
    message: str, at: Positions | None, position: int | None, expected: str, legal: tuple[str, ...] = ()
) -> NoReturn:
    source = at.source if at else None
    raise CheckError(message, source=source, position=position, expected=expected, legal=legal)


def _check_operands(expr: Expr, at: Positions | None) -> None:
    op = OPS.get(expr.op)
    if op is None:
        _fail(f"there is no op named {expr.op!r}", at, at and at.operator, "the name of an op", tuple(OPS))
    if len(expr.operands) not in (1, 2):
        _fail(f"an expression has one or two operands, not {len(expr.operands)}", at, None, "one operand or two")
    if op.binary is None and len(expr.operands) == 2:
        _fail(f"'{op.symbol}' takes one operand", at, at and at.operator, f"'{op.symbol}' before a single operand")
    for n, operand in enumerate(expr.operands):
        here = at and at.operands[n]
        match operand:
            case Access(axes):
                _check_letters(axes, at, here)
            case Literal(value):
                if not math.isfinite(value):
                    _fail("a number must be finite in double precision", at, here, "at most about 1.797e308 in size")
            case other:
                assert_never(other)


def _check_letters(axes: str, at: Positions | None, here: int | None) -> None:
    if not all("a" <= c <= "z" for c in axes):
        _fail(f"{axes!r} is no pattern", at, here, "lower-case letters a-z, one an axis")


def _check_output(expr: Expr, at: Positions | None) -> None:
    here = at and at.output
    _check_letters(expr.output, at, here)
    known = set().union(*(o.axes for o in expr.operands if isinstance(o, Access)))
    seen: set[str] = set()
    for n, axis in enumerate(expr.output):
        spot = None if here is None else here + n
        if axis not in known:
            legal = tuple(sorted(known))
            _fail(f"the output names axis {axis}, which no operand has", at, spot, "an axis of an operand", legal)
        if axis in seen:
            _fail(f"the output names axis {axis} twice", at, spot, "each axis at most once")
        seen.add(axis)


def _check_axes_kept(expr: Expr, at: Positions | None) -> None:
    if not expr.reduced:
        return
    dropped = ", ".join(expr.reduced)
    if len(expr.operands) == 2:
        message = f"a two-operand expression cannot drop axis {dropped}"
        _fail(message, at, at and at.output, "every axis of the operands; reduce in an expression of its own after it")
    op = OPS[expr.op]
    if not op.reducible:
        legal = tuple(o.symbol for o in OPS.values() if o.reducible)
        _fail(f"'{op.symbol}' cannot reduce axis {dropped}", at, at and at.operator, "an op that can reduce", legal)


def _check_splits(expr: Expr, at: Positions | None) -> None:
    seen: set[str] = set()
    for n, (axis, factors) in enumerate(expr.splits):
        here = at and at.splits[n]
        if axis not in expr.axes or len(axis) != 1:
            legal = tuple(expr.axes)
            _fail(f"axis {axis} is split, but the expression has none", at, here, "an axis of the expression", legal)
        if axis in seen:
            _fail(f"axis {axis} is split twice", at, here, "one entry an axis, such as i:16:4")
        seen.add(axis)
        _check_factors(axis, factors, at, here)


def _check_factors(axis: str, factors: tuple[int, ...], at: Positions | None, here: int | None) -> None:
    if not 1 <= len(factors) <= MAX_LEVELS:
        message = f"axis {axis} is split by {len(factors)} factors"
        _fail(message, at, here, f"one to {MAX_LEVELS} factors")
    if min(factors) < 1:
        _fail(f"a split factor of axis {axis} is {min(factors)}", at, here, "factors of at least 1")
    if math.prod(factors) > MAX_TILE:
        _fail(f"the split factors of axis {axis} are too large", at, here, f"a product of at most {MAX_TILE}")


def _check_order(expr: Expr, at: Positions | None) -> None:
    if not expr.order:
        return
    missing = {Loop(a, level): None for a in expr.axes for level in range(len(expr.factors[a]) + 1)}
    every = tuple(map(str, missing))
    seen: set[Loop | Stage | Init] = set()
    for n, item in enumerate(expr.order):
        here = at and at.order[n]
        if item in seen:
            _fail(f"the order lists {item} twice", at, here, "each loop, digit and '!' at most once")
        seen.add(item)
        match item:
            case Loop():
                if item not in missing:
                    _fail(f"the order names loop {_short(item)}, which no axis has", at, here, "a loop", every)
                del missing[item]
            case Stage(operand):
                _check_stage(expr, operand, at, here)
            case Init():
                _check_init(expr, {loop.axis for loop in missing}, at, here)
            case other:
                assert_never(other)
    if missing:
        left = ", ".join(map(str, missing))
        end = None if at is None else at.order[-1]
        _fail(f"the order leaves out loop {left}", at, end, "every loop exactly once", every)


def _check_stage(expr: Expr, operand: int, at: Positions | None, here: int | None) -> None:
    legal = tuple(str(n) for n, o in enumerate(expr.operands) if isinstance(o, Access))
    if operand not in range(len(expr.operands)):
        _fail(f"the order stages operand {operand}, which the expression lacks", at, here, "an operand", legal)
    if isinstance(expr.operands[operand], Literal):
        _fail(f"operand {operand} is a number: nothing to stage", at, here, "an operand with a producer", legal)


def _check_init(expr: Expr, open_axes: set[str], at: Positions | None, here: int | None) -> None:
    if not expr.reduced:
        _fail("'!' on an expression that reduces nothing", at, here, "an order without '!'")
    outside = [axis for axis in expr.output if axis in open_axes]
    if outside:
        message = f"'!' stands outside a loop of output axis {', '.join(outside)}"
        _fail(message, at, here, "'!' inside every loop of the output's axes")


def _short(loop: Loop) -> str:
    """A loop with absurdly many primes, kept readable."""
    return str(loop) if loop.level <= MAX_LEVELS else f"{loop.axis} with {loop.level} primes"
