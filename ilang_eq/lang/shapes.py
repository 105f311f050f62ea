"""Ranks and extents of a graph: which dimensions of which inputs must agree, and what they are called.

Every axis of every expression runs over a dimension of some input. Dimensions tied by shared axes form a *class*,
named by its lowest (input, dimension) pair.

Invariants of ``Shapes``:
  * every class has a member that is an input's dimension, and is named by the lowest
  * ``ties`` lists the classes with several input dimensions, sorted, the name first
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from ilang_eq.errors import ShapeError
from ilang_eq.lang.expr import Access, Expr, Literal
from ilang_eq.lang.graph import Graph, Input, Source, Value

Dimension: TypeAlias = tuple[int, int]
"""(input, dimension) of a graph."""

_Axis: TypeAlias = tuple[int, str]
_Place: TypeAlias = Dimension | _Axis


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """What ``infer`` found. ``ranks`` has None for an input that is only passed through."""

    graph: Graph
    ranks: tuple[int | None, ...]
    ties: tuple[tuple[Dimension, ...], ...]
    _names: Mapping[_Place, Dimension]

    def extent(self, node: int, axis: str) -> Dimension:
        """The class that ``axis`` of ``node`` runs over."""
        return self._names[node, axis]

    def input_extent(self, index: int, dim: int) -> Dimension:
        """The class of a dimension of an input; its own for an input that no expression reads."""
        return self._names.get((index, dim), (index, dim))

    def value_dims(self, source: Source) -> tuple[Dimension, ...]:
        """The classes of a value's dimensions.

        Raises:
            ShapeError: ``source`` is an input that is only passed through, so its rank is unknown.
        """
        match source:
            case Input(index):
                rank = self.ranks[index]
                if rank is None:
                    raise ShapeError(f"input {index} is only passed through: it has any rank")
                return tuple(self.input_extent(index, d) for d in range(rank))
            case Value(node):
                return tuple(self.extent(node, axis) for axis in self.graph.nodes[node].expr.output)
            case Literal():
                return ()
            case other:
                assert_never(other)

    def bind(self, shapes: Sequence[tuple[int, ...]]) -> dict[Dimension, int]:
        """The extent of every dimension of every input, given the inputs' shapes.

        Raises:
            ShapeError: the number of shapes or a rank is wrong, an extent is negative, or tied extents differ.
        """
        if len(shapes) != len(self.ranks):
            raise ShapeError(f"{len(shapes)} shapes given", expected=f"{len(self.ranks)}, one an input")
        for index, (shape, rank) in enumerate(zip(shapes, self.ranks, strict=True)):
            if rank is not None and len(shape) != rank:
                raise ShapeError(
                    f"input {index} has shape {_shown(shape)}, of rank {len(shape)}", expected=self._reading(index)
                )
            if any(extent < 0 for extent in shape):
                raise ShapeError(f"input {index} has shape {_shown(shape)}", expected="extents of at least 0")
        extents = {(k, d): int(n) for k, shape in enumerate(shapes) for d, n in enumerate(shape)}
        for first, *others in self.ties:
            for other in others:
                if extents[other] != extents[first]:
                    raise ShapeError(self._mismatch(first, other, extents), expected="equal extents")
        return extents

    def _reading(self, index: int) -> str:
        """Who reads an input, and at what rank."""
        for node in self.graph.nodes:
            for operand, source in zip(node.expr.operands, node.operands, strict=True):
                if source == Input(index) and isinstance(operand, Access):
                    return f"rank {len(operand.axes)}: {node.expr} reads it as {operand.axes or '.'}"
        raise AssertionError(f"nothing reads input {index}")

    def _mismatch(self, first: Dimension, other: Dimension, extents: dict[Dimension, int]) -> str:
        """One sentence: both dimensions, both extents, and the axes between them."""
        axes = [f"axis {axis} of {self.graph.nodes[node].expr}" for node, axis in _path(self.graph, first, other)]
        if len(axes) > 3:
            axes = [axes[0], f"{len(axes) - 2} more", axes[-1]]
        return (
            f"dimension {other[1]} of input {other[0]} has extent {extents[other]}, but dimension {first[1]} of "
            f"input {first[0]}, tied to it by {', '.join(axes)}, has extent {extents[first]}"
        )


def infer(graph: Graph) -> Shapes:
    """Ranks of the inputs, and the class of every axis; in time nearly linear in the graph.

    Raises:
        ShapeError: an input or a value is read at two ranks.
    """
    ranks = _ranks(graph)
    parents: dict[_Place, _Place] = {}
    for a, b in _ties(graph):
        _join(parents, a, b)
    names: dict[_Place, Dimension] = {}
    for index, rank in enumerate(ranks):
        for dim in range(rank or 0):
            names.setdefault(_root(parents, (index, dim)), (index, dim))
    classes: dict[Dimension, list[Dimension]] = {}
    for index, rank in enumerate(ranks):
        for dim in range(rank or 0):
            classes.setdefault(names[_root(parents, (index, dim))], []).append((index, dim))
    named = {place: names[_root(parents, place)] for place in parents}
    ties = tuple(tuple(members) for members in classes.values() if len(members) > 1)
    return Shapes(graph, ranks, ties, named)


def whole_shapes(shapes: Iterable[Iterable[int]]) -> tuple[tuple[int, ...], ...]:
    """The shapes of inputs as tuples of whole numbers.

    Raises:
        ShapeError: they are anything else.
    """
    try:
        given = tuple(shapes)
    except TypeError:
        raise ShapeError(f"shapes is {shapes!r}", expected="one shape an input, such as [(2048, 64)]") from None
    return tuple(_whole_shape(shape, index) for index, shape in enumerate(given))


def _whole_shape(shape: Iterable[int], index: int) -> tuple[int, ...]:
    try:
        return tuple(operator.index(n) for n in shape)
    except TypeError:
        expected = "whole numbers, such as (2048, 64)"
        raise ShapeError(f"the shape of input {index} is {shape!r}", expected=expected) from None


def _ranks(graph: Graph) -> tuple[int | None, ...]:
    """The rank each input is read at; values are checked against their readers on the way."""
    ranks: list[int | None] = [None] * graph.inputs
    readers: dict[int, tuple[Expr, Access]] = {}
    for node in graph.nodes:
        for operand, source in zip(node.expr.operands, node.operands, strict=True):
            if isinstance(operand, Literal):
                continue
            reader = node.expr, operand
            match source:
                case Input(index):
                    if ranks[index] not in (None, len(operand.axes)):
                        both = f"{_reading(*readers[index])}, and {_reading(*reader)}"
                        raise ShapeError(f"input {index} is read at two ranks: {both}")
                    ranks[index] = len(operand.axes)
                    readers[index] = reader
                case Value(producer):
                    made = graph.nodes[producer].expr
                    if len(made.output) != len(operand.axes):
                        raise ShapeError(f"{made} makes a value of rank {len(made.output)}, but {_reading(*reader)}")
                case Literal():
                    raise ShapeError(f"{node.expr} reads a number where its operand is {operand.axes or '.'}")
                case other:
                    assert_never(other)
    return tuple(ranks)


def _reading(expr: Expr, operand: Access) -> str:
    return f"{expr} reads it as {operand.axes or '.'}, of rank {len(operand.axes)}"


def _ties(graph: Graph) -> list[tuple[_Place, _Place]]:
    """Pairs of places that range over the same extent: an axis, and the dimension it reads."""
    pairs: list[tuple[_Place, _Place]] = []
    for n, node in enumerate(graph.nodes):
        for operand, source in zip(node.expr.operands, node.operands, strict=True):
            match operand, source:
                case Access(axes), Input(index):
                    pairs.extend(((index, d), (n, axis)) for d, axis in enumerate(axes))
                case Access(axes), Value(producer):
                    made = graph.nodes[producer].expr.output
                    pairs.extend(((producer, b), (n, a)) for a, b in zip(axes, made, strict=True))
                case _:
                    pass
    return pairs


def _root(parents: dict[_Place, _Place], place: _Place) -> _Place:
    """The place that stands for ``place``'s class; halves the path it walks."""
    while parents.setdefault(place, place) != place:
        parents[place] = parents[parents[place]]
        place = parents[place]
    return place


def _join(parents: dict[_Place, _Place], a: _Place, b: _Place) -> None:
    parents[_root(parents, a)] = _root(parents, b)


def _path(graph: Graph, start: Dimension, goal: Dimension) -> list[_Axis]:
    """The axes on a shortest way between two tied dimensions."""
    links: dict[_Place, list[_Place]] = {}
    for a, b in _ties(graph):
        links.setdefault(a, []).append(b)
        links.setdefault(b, []).append(a)
    came: dict[_Place, _Place] = {start: start}
    queue: deque[_Place] = deque([start])
    while goal not in came:
        place = queue.popleft()
        for near in links[place]:
            if near not in came:
                came[near] = place
                queue.append(near)
    back: list[_Axis] = []
    place = came[goal]
    while place != start:
        node, axis = place
        if isinstance(axis, str):
            back.append((node, axis))
        place = came[place]
    return back[::-1]


def _shown(shape: Sequence[int]) -> str:
    return "(" + ", ".join(map(str, shape)) + (",)" if len(shape) == 1 else ")")
