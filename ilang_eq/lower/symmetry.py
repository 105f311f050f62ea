"""Which values stay the same when their last two axes are exchanged, as the products of a matrix with itself do.

Values are compared as what they compute from the arguments: names of axes, schedules, copies and brackets do not
matter, nor do factors that are computed apart, but alike. x − y is taken for −(y − x), so that squares of differences
count; but not where a zero divides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import prod
from typing import NamedTuple

from ilang_eq.lang.expr import Access, Literal
from ilang_eq.lang.graph import Graph, Source, Value
from ilang_eq.lang.ops import OPS

_Axes = tuple[int, ...]
"""What each axis of a value runs over, as a number: equal ones move together."""

MOST_TERMS = 16
"""The most terms or factors that are compared in any order."""


class _Signed(NamedTuple):
    """A value up to its sign: what has the same number computes the same.

    ``loose`` is what that holds for but for the sign of a zero: x − y is 0 where −(y − x) is −0.
    """

    number: int
    sign: int
    loose: bool = False

    def times(self, sign: int) -> _Signed:
        return self._replace(sign=self.sign * sign)


_Key = tuple[Source, _Axes]


@dataclass(slots=True)
class Symmetries:
    """The symmetries of a graph's values, found on demand; several threads may ask."""

    graph: Graph
    _unused: Iterator[int] = field(default_factory=count)
    _numbers: dict[object, int] = field(default_factory=dict)
    _chains: dict[tuple[str, int], tuple[_Signed, ...]] = field(default_factory=dict)
    _found: dict[_Key, _Signed] = field(default_factory=dict)

    def symmetric(self, node: int) -> bool:
        """Whether ``node`` is the same with its last two axes exchanged, but for rounding."""
        rank = len(self.graph.nodes[node].expr.output)
        if rank < 2:
            return False
        *outer, row, column = range(rank)
        return self._at(Value(node), (*outer, row, column)) == self._at(Value(node), (*outer, column, row))

    def _at(self, source: Source, axes: _Axes) -> _Signed:
        left: list[_Key] = [(source, axes)]
        while left:
            key = left[-1]
            read = self._read(*key)
            missing = [each for each in read if each not in self._found]
            if key in self._found or not missing:
                left.pop()
                self._found.setdefault(key, self._value(*key, [self._found[each] for each in read if not missing]))
            else:
                left += missing
        return self._found[source, axes]

    def _read(self, source: Source, axes: _Axes) -> list[_Key]:
        """What a value is computed from."""
        if not isinstance(source, Value):
            return []
        node = self.graph.nodes[source.node]
        of = dict(zip(node.expr.output, axes, strict=True))
        # a sum's own axes mean nothing outside it, so that numbers beyond those at hand are free
        of |= {axis: n for n, axis in enumerate(node.expr.reduced, start=max(axes, default=-1) + 1)}
        return [
            (wire, tuple(of[axis] for axis in operand.axes) if isinstance(operand, Access) else ())
            for operand, wire in zip(node.expr.operands, node.operands, strict=True)
        ]

    def _as(self, sign: int, *meaning: object, loose: bool = False) -> _Signed:
        return _Signed(self._numbers.setdefault(meaning, next(self._unused)), sign, loose)

    def _value(self, source: Source, axes: _Axes, read: Sequence[_Signed]) -> _Signed:
        if not isinstance(source, Value):
            return self._as(1, source, axes)
        node = self.graph.nodes[source.node]
        expr, (*_, last) = node.expr, read
        even = expr.op == "pow" and isinstance(right := node.operands[-1], Literal) and right.value % 2 == 0
        # the sign of a zero is that of an infinity
        base = expr.op == "pow" and len(read) == 2 and read[0].loose and not even
        if base or (expr.op == "div" and last.loose):
            return self._as(1, source, axes)
        if len(read) == 2:
            return self._binary(expr.op, read, even)
        if expr.reduced:
            sign = last.sign if expr.op == "add" else 1
            return self._as(sign, "over", len(expr.reduced), expr.op, last.times(sign), loose=last.loose)
        if OPS[expr.op].unary_form == "copy":
            return last
        if expr.op == "sub":
            return last.times(-1)._replace(loose=True)
        return self._as(1, expr.op, last, loose=last.loose)

    def _binary(self, op: str, read: Sequence[_Signed], even: bool) -> _Signed:
        first, second = read
        loose = first.loose or second.loose
        match op:
            case "add" | "mul":
                return self._chain(op, read)
            case "sub":
                return self._chain("add", (first, second.times(-1)))
            case "div":
                return self._as(first.sign * second.sign, op, first.number, second.number, loose=loose)
            case "pow" if even:
                return self._as(1, op, first.number, second)
            case _:
                return self._as(1, op, *(sorted(read) if OPS[op].commutative else read), loose=loose)

    def _chain(self, op: str, read: Sequence[_Signed]) -> _Signed:
        """Terms or factors in any order, however they are bracketed."""
        parts = [part for value in read for part in self._parts(op, value)]
        terms = sorted(parts if len(parts) <= MOST_TERMS else read)
        if op == "mul":
            sign = prod(term.sign for term in terms)
            terms = [term.times(term.sign) for term in terms]
            # two zeros of one sign make one without
            loose = any(times % 2 for term, times in Counter(terms).items() if term.loose)
        else:
            sign = terms[0].sign
            loose = any(term.loose or term.sign < 0 for term in terms)
            terms = [term.times(sign) for term in terms]
        value = self._as(sign, op, *terms, loose=loose)
        self._chains[op, value.number] = tuple(terms)
        return value

    def _parts(self, op: str, value: _Signed) -> list[_Signed]:
        if (op, value.number) not in self._chains:
            return [value]
        first, *others = self._chains[op, value.number]
        return [first.times(value.sign), *(part if op == "mul" else part.times(value.sign) for part in others)]
