"""Walks over loop IR: statements, loads, and where a variable occurs in a place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal as Choice
from typing import assert_never

from ilang_eq.lower.ir import (
    Accumulate,
    Apply,
    Assign,
    Comment,
    Constant,
    Declare,
    Extent,
    For,
    Index,
    Load,
    Scalar,
    Statement,
)

Stride = Choice["none", "unit", "far", "uneven"]
"""How a place moves with a variable: not at all, to the next float, by a constant number of floats, or otherwise."""


def walk(statements: Sequence[Statement]) -> Iterator[Statement]:
    """Every statement, loops before what they contain."""
    left = list(reversed(statements))
    while left:
        statement = left.pop()
        yield statement
        if isinstance(statement, For):
            left.extend(reversed(statement.body))


def code(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """``statements`` without comments."""
    return tuple([s for s in statements if not isinstance(s, Comment)])


def loads(value: Scalar) -> tuple[Load, ...]:
    """Every place that ``value`` reads."""
    match value:
        case Load():
            return (value,)
        case Constant():
            return ()
        case Apply(_, arguments):
            return tuple([load for argument in arguments for load in loads(argument)])
        case other:
            assert_never(other)


def updates(statements: Sequence[Statement]) -> Iterator[Assign | Accumulate]:
    """Every assignment and accumulation."""
    return (s for s in walk(statements) if isinstance(s, Assign | Accumulate))


def places(statements: Sequence[Statement]) -> Iterator[Load]:
    """Every place that is read or written; one that is accumulated into, once."""
    for update in updates(statements):
        yield update.target
        yield from loads(update.value)


def touches(statement: Statement, buffer: str) -> bool:
    """Whether ``statement`` reads or writes ``buffer`` anywhere in it."""
    left = [statement]
    while left:
        match left.pop():
            case For(body=body):
                left.extend(body)
            case Assign(target, value) | Accumulate(target, _, value):
                if target.buffer == buffer or reads(value, buffer):
                    return True
            case Declare() | Comment():
                pass
            case other:
                assert_never(other)
    return False


def reads(value: Scalar, buffer: str) -> bool:
    """Whether ``value`` reads ``buffer``."""
    match value:
        case Load(name):
            return name == buffer
        case Constant():
            return False
        case Apply(_, arguments):
            return any(reads(argument, buffer) for argument in arguments)
        case other:
            assert_never(other)


def involves(place: Load, value: Scalar, buffer: str) -> bool:
    """Whether ``value``, which is kept at ``place``, lies in ``buffer`` or is computed from it."""
    return place.buffer == buffer or reads(value, buffer)


def declared_in(statements: Sequence[Statement]) -> tuple[str, ...]:
    """The locals declared at any depth."""
    return tuple(s.buffer for s in walk(statements) if isinstance(s, Declare))


def buffers_of(statements: Sequence[Statement]) -> tuple[str, ...]:
    """The buffers that are read or written, by first appearance."""
    return tuple(dict.fromkeys(place.buffer for place in places(statements)))


def extents_of(statements: Sequence[Statement]) -> Iterator[Extent]:
    """The extents that decide how often loops run."""
    return (extent for s in walk(statements) if isinstance(s, For) for extent in (s.extent, *s.without))


def mentions(place: Load, variable: str) -> bool:
    """Whether ``place`` moves with ``variable``."""
    return any(variable in index.variables for index in place.indices)


def stride(place: Load, variable: str) -> Stride:
    """How ``place`` moves with ``variable``."""
    if not mentions(place, variable):
        return "none"
    if any(variable in index.variables and index.divisor != 1 for index in place.indices):
        return "uneven"
    *outer, last = place.indices
    alone = not any(variable in index.variables for index in outer) and last.variables.count(variable) == 1
    return "unit" if alone else "far"


def replace_variable(value: Scalar, variable: str, by: tuple[str, ...]) -> Scalar:
    """``value`` with ``variable`` read as the sum of ``by``."""
    match value:
        case Load():
            return substituted(value, variable, by)
        case Constant():
            return value
        case Apply(op, arguments):
            return Apply(op, tuple(replace_variable(a, variable, by) for a in arguments))
        case other:
            assert_never(other)


def substituted(place: Load, variable: str, by: tuple[str, ...]) -> Load:
    """``place`` with ``variable`` read as the sum of ``by``."""
    indices = []
    for index in place.indices:
        parts = tuple(v for old in index.variables for v in (by if old == variable else (old,)))
        indices.append(Index(parts, index.divisor))
    return Load(place.buffer, tuple(indices))


def replace_in_body(body: Sequence[Statement], variable: str, by: tuple[str, ...]) -> tuple[Statement, ...]:
    """A loop-free ``body`` with ``variable`` read as the sum of ``by``."""
    replaced: list[Statement] = []
    for statement in body:
        match statement:
            case Assign(target, value):
                replaced.append(Assign(substituted(target, variable, by), replace_variable(value, variable, by)))
            case Accumulate(target, op, value):
                place = substituted(target, variable, by)
                replaced.append(Accumulate(place, op, replace_variable(value, variable, by)))
            case _:
                replaced.append(statement)
    return tuple(replaced)
