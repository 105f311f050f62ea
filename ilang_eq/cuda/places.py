"""Rewrites of the places that statements touch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import assert_never

from ilang_eq.lower.ir import (
    Accumulate,
    Apply,
    Assign,
    Comment,
    Constant,
    Declare,
    For,
    Index,
    Load,
    Scalar,
    Statement,
)

Change = Callable[[Load], Load]


def moved(body: Sequence[Statement], change: Change) -> tuple[Statement, ...]:
    """``body`` with every place changed."""
    return tuple(_statement(statement, change) for statement in body)


def summed(body: Sequence[Statement], variable: str, parts: tuple[str, ...]) -> tuple[Statement, ...]:
    """``body`` with ``variable`` read as the sum of ``parts``, bounds included."""

    def spread(variables: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(v for old in variables for v in (parts if old == variable else (old,)))

    def change(place: Load) -> Load:
        indices = tuple(Index(spread(index.variables), index.divisor) for index in place.indices)
        return Load(place.buffer, indices)

    def bounds(statement: Statement) -> Statement:
        if not isinstance(statement, For):
            return statement
        return replace(statement, outer=spread(statement.outer), body=tuple(bounds(s) for s in statement.body))

    return tuple(bounds(statement) for statement in moved(body, change))


def _statement(statement: Statement, change: Change) -> Statement:
    match statement:
        case For():
            return replace(statement, body=moved(statement.body, change))
        case Assign(target, value):
            return Assign(change(target), _scalar(value, change))
        case Accumulate(target, op, value):
            return Accumulate(change(target), op, _scalar(value, change))
        case Declare() | Comment():
            return statement
        case other:
            assert_never(other)


def _scalar(value: Scalar, change: Change) -> Scalar:
    match value:
        case Load():
            return change(value)
        case Constant():
            return value
        case Apply(op, arguments):
            return Apply(op, tuple(_scalar(argument, change) for argument in arguments))
        case other:
            assert_never(other)
