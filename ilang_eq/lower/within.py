"""Loop IR taken apart and put together again: statements with the loops around them, places moved elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, assert_never

from ilang_eq.lower.ir import Accumulate, Apply, Assign, Comment, Constant, Declare, For, Index, Load, Scalar, Statement
from ilang_eq.lower.walk import mentions


class Enclosed(NamedTuple):
    """An update and the loops around it, outermost first, from some block inwards."""

    statement: Assign | Accumulate
    around: tuple[For, ...]

    def moving(self) -> Enclosed:
        """The same with only those loops that the target moves with."""
        return self._replace(around=tuple(x for x in self.around if mentions(self.statement.target, x.variable)))


def enclosed(statements: Sequence[Statement], around: tuple[For, ...] = ()) -> Iterator[Enclosed]:
    """Every update of ``statements``, in order."""
    left = [(statement, around) for statement in reversed(statements)]
    while left:
        statement, loops = left.pop()
        match statement:
            case For():
                inside = (*loops, statement)
                left.extend([(inner, inside) for inner in reversed(statement.body)])
            case Assign() | Accumulate():
                yield Enclosed(statement, loops)
            case Declare() | Comment():
                pass
            case other:
                assert_never(other)


def nested(loops: Sequence[For], *body: Statement) -> tuple[Statement, ...]:
    """``body`` inside copies of ``loops``, outermost first."""
    inner: tuple[Statement, ...] = body
    for loop in reversed(loops):
        inner = (replace(loop, body=inner, parallel=False, reduces=False),)
    return inner


def moved(statement: Statement, to: Callable[[Load], Load]) -> Statement:
    """``statement`` with every place it touches mapped by ``to``."""
    match statement:
        case For():
            return replace(statement, body=tuple(moved(inner, to) for inner in statement.body))
        case Assign(target, value):
            return Assign(to(target), _moved_value(value, to))
        case Accumulate(target, op, value):
            return Accumulate(to(target), op, _moved_value(value, to))
        case Declare() | Comment():
            return statement
        case other:
            assert_never(other)


def _moved_value(value: Scalar, to: Callable[[Load], Load]) -> Scalar:
    match value:
        case Load():
            return to(value)
        case Constant():
            return value
        case Apply(op, arguments):
            return Apply(op, tuple(_moved_value(argument, to) for argument in arguments))
        case other:
            assert_never(other)


def deepened(loop: For, variable: str, outer: str) -> For:
    """``loop`` where what was the position ``variable`` is ``outer`` + ``variable``; bounds inside follow."""

    def place(load: Load) -> Load:
        return Load(load.buffer, tuple(replace(i, variables=spread(i.variables)) for i in load.indices))

    def spread(variables: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(v for old in variables for v in ((outer, old) if old == variable else (old,)))

    def bounds(inner: For) -> For:
        body = tuple(bounds(s) if isinstance(s, For) else s for s in inner.body)
        return replace(inner, outer=spread(inner.outer), first=spread(inner.first), body=body)

    body = tuple(bounds(s) if isinstance(s, For) else s for s in loop.body)
    return replace(loop, body=tuple(moved(s, place) for s in body))


def offset(variable: str, divisor: int = 1) -> Index:
    """The index of one variable."""
    return Index((variable,), divisor)
