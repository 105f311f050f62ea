"""Row by row, without tiles: all that a row needs is computed where it is needed, as far as that is in rows, too.

before →  ``+ij~i|i:4,j:128|iji'j'``, ``i/4096~i|i:4|`` and ``ij-i~ij|i:4,j:128|iji'j'``, each for all rows at once
after  →  ``+ij~i``, ``i/4096~i||i0`` and ``ij-i~ij||i1j``: the mean of a row, and then the row less that

In the search a class knows of those that it reads, not of those that these read: that a row is near, as its mean was
computed just before, in two steps, speaks for no structure. And no walk over tile sizes comes here. Where nothing goes
over more than an argument or an output has, this is one candidate more: batch norm of 8192×512 takes 0.69 of the time
on Zen 3, the variance of 300 rows of 100,000 floats 0.83. Products need tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from ilang_eq.extract.candidate import Candidate
from ilang_eq.extract.footprint import Extents
from ilang_eq.extract.in_order import in_memory, ordered
from ilang_eq.extract.refine import Judge, cheaper
from ilang_eq.extract.sites import GAINS
from ilang_eq.lang.expr import Access, Expr, Loop, OrderItem, Stage
from ilang_eq.lang.graph import Graph, Node, Value
from ilang_eq.lang.shapes import Shapes, infer

Orders = Sequence[Sequence[str]]
"""The axes of each node, as they lie in memory: those of rows come first."""


def by_rows(candidate: Candidate, judge: Judge) -> Candidate:
    """``candidate`` row by row, if that gains by the full model, and goes over no more than is in memory anyway."""
    found = in_rows(candidate.graph, judge.extents)
    return candidate if found is None else cheaper(candidate, found, judge, GAINS)


def in_rows(graph: Graph, extents: Extents) -> Graph | None:
    """``graph`` row by row; None if it goes over more than is in memory anyway."""
    shapes = infer(graph)
    if not _goes_over_arrays(graph, shapes, extents):
        return None
    orders = [in_memory(node.expr, shapes, n) for n, node in enumerate(graph.nodes)]
    nodes = (replace(node, expr=_in_rows(node, graph, orders, orders[n])) for n, node in enumerate(graph.nodes))
    return replace(graph, nodes=tuple(nodes))


def _goes_over_arrays(graph: Graph, shapes: Shapes, extents: Extents) -> bool:
    """Whether no expression has more iterations than the largest argument or output has elements."""
    ranks = ((k, rank) for k, rank in enumerate(shapes.ranks) if rank is not None)
    arguments = [[shapes.input_extent(k, d) for d in range(rank)] for k, rank in ranks]
    outputs = [shapes.value_dims(wire) for wire in graph.outputs if isinstance(wire, Value)]
    largest = max(prod(extents[d] for d in dims) for dims in (*arguments, *outputs))
    exprs = enumerate(node.expr for node in graph.nodes)
    return all(prod(extents[shapes.extent(n, axis)] for axis in expr.axes) <= largest for n, expr in exprs)


def _in_rows(node: Node, graph: Graph, orders: Orders, order: Sequence[str]) -> Expr:
    """The expression of ``node`` with loops in ``order``, and what comes in rows where a row begins."""
    staged: dict[int, list[OrderItem]] = {}
    for k, (operand, source) in enumerate(zip(node.expr.operands, node.operands, strict=True)):
        if isinstance(operand, Access) and isinstance(source, Value):
            producer = graph.nodes[source.node].expr
            rows = len(operand.axes)
            mine, theirs = set(order[:rows]), set(orders[source.node][:rows])
            if rows and mine == set(operand.axes) and theirs == set(producer.output):
                staged.setdefault(rows, []).append(Stage(k))
    items = (item for n, axis in enumerate(order, 1) for item in (Loop(axis), *staged.get(n, ())))
    return ordered(node.expr, tuple(items))
