"""Batch axes: those that no expression reduces and every argument and output has. They are set aside, and put back.

before →  ijm*ilm~ijlm >> +ijlm~ijl ...    8 heads, each on its own
after  →  jm*lm~jlm >> +jlm~jl ...         one head; every schedule of it, inside a loop over i, is one of all heads

What lacks the axis does no harm if it is a vector or a number (a scale), or is only read beside a value that has all
axes of the expression (a mask that all heads share): each of its numbers is used once for each of that value then. The
weights of a product are not: a tile uses each of theirs for many rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import assert_never

from ilang_eq.lang.expr import Access, Expr, Literal, Loop, Operand
from ilang_eq.lang.graph import Graph, Input, Node, Source, Value, Wire
from ilang_eq.lang.shapes import Dimension, Shapes, infer
from ilang_eq.lang.unscheduled import LETTERS


@dataclass(frozen=True, slots=True)
class Batch:
    """An axis that was set aside.

    Args:
        extent: what it is called, a dimension of the arguments.
        inputs: the dimension of every argument that it was, None where it was not.
        outputs: the same for the outputs.
    """

    extent: Dimension
    inputs: tuple[int | None, ...]
    outputs: tuple[int | None, ...]

    def without(self, extents: Mapping[Dimension, int]) -> dict[Dimension, int]:
        """The extents of the arguments without it."""
        found: dict[Dimension, int] = {}
        for (index, d), size in extents.items():
            own = self.inputs[index]
            if d != own:
                found[index, d - (own is not None and d > own)] = size
        return found


@dataclass(frozen=True, slots=True)
class Element:
    """What is left of a component without its batch axes, and these with their sizes, as they were set aside."""

    graph: Graph
    extents: Mapping[Dimension, int]
    batches: tuple[tuple[Batch, int], ...]

    def threads(self, threads: int) -> int:
        """The threads left for one element: the loops over batches take all if they can."""
        return 1 if prod(size for _, size in self.batches) >= threads > 1 else threads

    def whole(self, graph: Graph) -> Graph:
        """A scheduled graph of one element as that of all."""
        for batch, _ in reversed(self.batches):
            graph = with_batch(graph, batch)
        return graph


def set_aside(graph: Graph, extents: Mapping[Dimension, int], most: int) -> Element:
    """``graph`` without batch axes, as many as leave it no more than ``most`` axes, if it has that many."""
    element = Element(graph, extents, ())
    while axes_of(element.graph) > most and (found := without_batch(element.graph)) is not None:
        smaller, batch = found
        size = element.extents[batch.extent]
        element = Element(smaller, batch.without(element.extents), (*element.batches, (batch, size)))
    return element


def without_batch(graph: Graph) -> tuple[Graph, Batch] | None:
    """An unscheduled ``graph`` for one element of its first batch axis; None if it has no such axis."""
    shapes = infer(graph)
    if any(rank is None for rank in shapes.ranks):
        return None
    classes = dict.fromkeys(dim for k in range(graph.inputs) for dim in shapes.value_dims(Input(k)))
    for extent in classes:
        if _is_batch(graph, shapes, extent):
            inputs = tuple(_place(shapes.value_dims(Input(k)), extent) for k in range(graph.inputs))
            outputs = tuple(_place(shapes.value_dims(wire), extent) for wire in graph.outputs)
            nodes = tuple(_stripped(graph, shapes, n, extent) for n in range(len(graph.nodes)))
            return replace(graph, nodes=nodes), Batch(extent, inputs, outputs)
    return None


def axes_of(graph: Graph) -> int:
    """How many different axes the expressions of ``graph`` run over."""
    shapes = infer(graph)
    return len({shapes.extent(n, axis) for n, node in enumerate(graph.nodes) for axis in node.expr.axes})


def with_batch(graph: Graph, batch: Batch) -> Graph:
    """A scheduled graph of one element as that of all, with the batch's loop outside all others."""
    places: dict[Source, int | None] = {Input(k): place for k, place in enumerate(batch.inputs)}
    returned = dict(zip(graph.outputs, batch.outputs, strict=True))
    nodes = list(graph.nodes)
    for n in graph.order():
        node = graph.nodes[n]
        batched = any(places.get(source) is not None for source in node.operands)
        places[Value(n)] = (returned.get(Value(n)) or 0) if batched else None
        if batched:
            nodes[n] = _widened(node, places, places[Value(n)] or 0)
    return replace(graph, nodes=tuple(nodes))


def _is_batch(graph: Graph, shapes: Shapes, extent: Dimension) -> bool:
    def once(wire: Wire) -> bool:
        return shapes.value_dims(wire).count(extent) == 1

    if any(shapes.value_dims(Input(k)).count(extent) > 1 for k in range(graph.inputs)):
        return False
    if not all(isinstance(wire, Value) and once(wire) for wire in graph.outputs):
        return False
    for n, node in enumerate(graph.nodes):
        letters = [axis for axis in node.expr.axes if shapes.extent(n, axis) == extent]
        accesses = [operand.axes for operand in node.expr.operands if isinstance(operand, Access)]
        if len(letters) > 1 or any(axis in node.expr.reduced for axis in letters):
            return False
        if any(axes.count(axis) > 1 for axis in letters for axes in accesses):
            return False
        if letters and not _shares_little(node.expr.axes, letters[0], accesses):
            return False
    return True


def _shares_little(axes: str, letter: str, accesses: Sequence[str]) -> bool:
    """Whether what lacks ``letter`` is a vector, or read beside a value that has all ``axes``."""
    lacking = [own for own in accesses if letter not in own]
    return all(len(own) < 2 for own in lacking) or any(set(own) == set(axes) for own in accesses)


def _place(dims: tuple[Dimension, ...], extent: Dimension) -> int | None:
    return dims.index(extent) if extent in dims else None


def _stripped(graph: Graph, shapes: Shapes, n: int, extent: Dimension) -> Node:
    node = graph.nodes[n]
    (letter,) = [a for a in node.expr.axes if shapes.extent(n, a) == extent] or [""]
    if not letter:
        return node
    operands = tuple(
        Access(operand.axes.replace(letter, "")) if isinstance(operand, Access) else operand
        for operand in node.expr.operands
    )
    return replace(node, expr=Expr(node.expr.op, operands, node.expr.output.replace(letter, "")))


def _widened(node: Node, places: Mapping[Source, int | None], output: int) -> Node:
    """``node`` with the batch's letter where its operands and its own value have it, and its loop outermost."""
    expr = node.expr
    letter = next(x for x in LETTERS if x not in expr.axes)
    operands = tuple(
        _inserted(operand, letter, places.get(source))
        for operand, source in zip(expr.operands, node.operands, strict=True)
    )
    widened = _at(expr.output, letter, output)
    return replace(node, expr=replace(expr, operands=operands, output=widened, order=(Loop(letter), *expr.sequence)))


def _inserted(operand: Operand, letter: str, place: int | None) -> Operand:
    match operand:
        case Access(axes):
            return operand if place is None else Access(_at(axes, letter, place))
        case Literal():
            return operand
        case other:
            assert_never(other)


def _at(axes: str, letter: str, place: int) -> str:
    return axes[:place] + letter + axes[place:]
