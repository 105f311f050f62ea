"""Reductions in the tiles of what reads them: a block then reads a tile from memory once, and finds it in registers.

before   i(">ij~i"),                   read by i("ij-i~ji|i:1,j:2048|i1jj'i'")   the maximum of a row, then exponentials
after    i(">ij~i|i:1,j:2048|iji'j'"), read by i("ij-i~ji|i:1,j:2048|ij1j'i'")   maxima of tiles, and repairs

What cannot be repaired is refused when it is lowered. Axes are the same if their extents are the same dimension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ilang_eq.extract.gpu_tiles import with_expr
from ilang_eq.lang.expr import Expr, Loop, OrderItem, Stage
from ilang_eq.lang.graph import Graph, Value
from ilang_eq.lang.shapes import Shapes, infer


def in_tiles_of_readers(graph: Graph) -> Graph:
    """``graph`` with every staged reduction inside its reader's loop over tiles of what it reduces over."""
    shapes = infer(graph)
    for n in range(len(graph.nodes)):
        for k, source in enumerate(graph.nodes[n].operands):
            if isinstance(source, Value) and Stage(k) in graph.nodes[n].expr.order:
                graph = _moved(graph, shapes, n, k, source.node)
    return graph


def _moved(graph: Graph, shapes: Shapes, reader: int, operand: int, producer: int) -> Graph:
    """``graph`` with one reduction staged further in; itself where its reader has no such loop."""
    mine, theirs = graph.nodes[reader].expr, graph.nodes[producer].expr
    axes = {shapes.extent(producer, axis): axis for axis in theirs.axes}
    reduced = frozenset(theirs.reduced)
    if len(axes) < len(theirs.axes):
        return graph
    order = [item for item in mine.order if item != Stage(operand)]
    before = mine.order.index(Stage(operand))
    tiles = [
        n
        for n, item in enumerate(order)
        if isinstance(item, Loop) and item.level == 0 and mine.factors[item.axis]
        if n >= before and axes.get(shapes.extent(reader, item.axis)) in reduced
    ]
    if not tiles:
        return graph
    site = max(tiles) + 1
    outer = [item for item in order[:site] if isinstance(item, Loop)]
    names = [axes.get(shapes.extent(reader, loop.axis)) for loop in outer]
    if None in names or any(loop.level for loop in outer):
        return graph
    around = {name: mine.factors[loop.axis] for name, loop in zip(names, outer, strict=True) if name is not None}
    moved = replace(mine, order=(*order[:site], Stage(operand), *order[site:]))
    return with_expr(with_expr(graph, reader, moved), producer, _in_loops(theirs, around))


def _in_loops(expr: Expr, around: Mapping[str, Sequence[int]]) -> Expr:
    """``expr`` with loops over tiles of the axes ``around`` outermost, and over elements inside."""
    splits = {**dict(expr.splits), **{axis: tuple(factors) for axis, factors in around.items() if factors}}
    elements: list[OrderItem] = []
    for item in expr.sequence:
        if not isinstance(item, Loop) or item.axis not in around:
            elements.append(item)
        elif item.level == 0 and around[item.axis]:
            elements.append(Loop(item.axis, 1))
    return replace(expr, splits=tuple(sorted(splits.items())), order=(*(Loop(axis) for axis in around), *elements))
