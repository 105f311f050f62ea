"""Which values stay the same when their last two axes are exchanged, as the products of a matrix with itself do.

Values are compared as what they compute from the arguments: names of axes, schedules, copies and brackets do not
matter, nor do factors that are computed apart, but alike. x − y is taken for −(y − x), so that squares of differences
count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
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
    """A value up to its sign. What has the same number computes the same."""

    number: int
    sign: int

    def times(self, sign: int) -> _Signed:
        return _Signed(self.number, self.sign * sign)


@dataclass(slots=True)
class Symmetries:
    """The symmetries of a graph's values, found on demand."""

    graph: Graph
    _numbers: dict[object, int] = field(default_factory=dict)
    _chains: dict[tuple[str, int], tuple[_Signed, ...]] = field(default_factory=dict)
    _found: dict[tuple[Source, _Axes], _Signed] = field(default_factory=dict)

    def symmetric(self, node: int) -> bool:
        """Whether ``node`` is the same with its last two axes exchanged, but for rounding."""
        rank = len(self.graph.nodes[node].expr.output)
        if rank < 2:
            return False
        *outer, row, column = range(rank)
        return self._at(Value(node), (*outer, row, column)) == self._at(Value(node), (*outer, column, row))

    def _at(self, source: Source, axes: _Axes) -> _Signed:
        if (source, axes) not in self._found:
            value = self._node(source.node, axes) if isinstance(source, Value) else self._as(1, source, axes)
            self._found[source, axes] = value
        return self._found[source, axes]

    def _as(self, sign: int, *meaning: object) -> _Signed:
        return _Signed(self._numbers.setdefault(meaning, len(self._numbers)), sign)

    def _node(self, n: int, axes: _Axes) -> _Signed:
        node = self.graph.nodes[n]
        expr, unused = node.expr, max(axes, default=-1) + 1
        of = dict(zip(expr.output, axes, strict=True))
        # a sum's own axes mean nothing outside it, so that numbers beyond those at hand are free
        of |= {axis: unused + k for k, axis in enumerate(expr.reduced)}
        read = [
            self._at(wire, tuple(of[axis] for axis in operand.axes) if isinstance(operand, Access) else ())
            for operand, wire in zip(expr.operands, node.operands, strict=True)
        ]
        if len(read) == 2:
            return self._binary(expr.op, read, node.operands[1])
        (value,) = read
        if expr.reduced:
            sign = value.sign if expr.op == "add" else 1
            return self._as(sign, "over", len(expr.reduced), expr.op, value.times(sign))
        if OPS[expr.op].unary_form == "copy":
            return value
        return value.times(-1) if expr.op == "sub" else self._as(1, expr.op, value)

    def _binary(self, op: str, read: Sequence[_Signed], right: Source) -> _Signed:
        first, second = read
        match op:
            case "add" | "mul":
                return self._chain(op, read)
            case "sub":
                return self._chain("add", (first, second.times(-1)))
            case "div":
                return self._as(first.sign * second.sign, op, first.number, second.number)
            case "pow" if isinstance(right, Literal) and right.value % 2 == 0:
                return self._as(1, op, first.number, second)
            case _:
                return self._as(1, op, *(sorted(read) if OPS[op].commutative else read))

    def _chain(self, op: str, read: Sequence[_Signed]) -> _Signed:
        """Terms or factors in any order, however they are bracketed."""
        parts = [part for value in read for part in self._parts(op, value)]
        terms = sorted(parts if len(parts) <= MOST_TERMS else read)
        if op == "mul":
            sign, terms = prod(term.sign for term in terms), sorted(term.times(term.sign) for term in terms)
        else:
            sign = terms[0].sign
            terms = [term.times(sign) for term in terms]
        value = self._as(sign, op, *terms)
        self._chains[op, value.number] = tuple(terms)
        return value

    def _parts(self, op: str, value: _Signed) -> list[_Signed]:
        if (op, value.number) not in self._chains:
            return [value]
        first, *others = self._chains[op, value.number]
        return [first.times(value.sign), *(part if op == "mul" else part.times(value.sign) for part in others)]
