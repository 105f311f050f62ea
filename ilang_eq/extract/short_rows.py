"""Short rows that are reduced, a few side by side: the search compares whole rows with tiles of many, and leaves these.

before →  one row after the other, ``ij*j~ij`` and ``+ij~i||ij0``
after  →  four at a time, ``ij*j~ij|i:4,j:64|iji'j'`` and ``+ij~i|i:4,j:64|iji'j'0``

A short row ends before a core knows that it does, and is added up across its lanes while the next one waits. On Zen 5
the largest of each of a million rows of 16 floats take 0.58 of the time of row by row so, of 24 floats 0.60, sums of
64 0.37, of 100 0.75; with eight rows 0.62 to 1.35. Variances of rows of 100 take 0.73 of the time of what is found
without.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ilang_eq.extract.by_rows import in_rows
from ilang_eq.extract.candidate import Candidate
from ilang_eq.extract.in_order import in_memory
from ilang_eq.extract.refine import Judge, cheaper
from ilang_eq.extract.side_by_side import GAINS
from ilang_eq.lang.expr import Expr, Loop
from ilang_eq.lang.graph import Graph, Value
from ilang_eq.lang.shapes import Dimension, Shapes, infer
from ilang_eq.lower.widths import WIDTHS

ROWS = 4
"""Rows at a time."""
SHORT = range(WIDTHS[0], 129)
"""How long rows are, in floats. Sums of 12 floats that are near take 1.2 of the time, variances of 200 as well."""
WRITTEN = range(24, 129)
"""How long rows of a result are: x / √(Σ x² / n + ε) takes 1.14 of the time with 16 floats, 0.8 with 24 and 50."""
MOST = 64
"""The most floats of a row in a tile."""


def short_rows(candidate: Candidate, judge: Judge) -> Candidate:
    """``candidate`` with a few rows side by side, if nothing else goes along them, and that gains by the full model."""
    graph = in_rows(candidate.graph, judge.extents)
    if graph is None:
        return candidate
    shapes = infer(graph)
    found = _reduced(graph, shapes)
    if found is None:
        return candidate
    written = any(found[1] in shapes.value_dims(output) for output in graph.outputs)
    length = judge.extents[found[1]]
    if length not in (WRITTEN if written else SHORT):
        return candidate
    return cheaper(candidate, _in_tiles(graph, shapes, found, length), judge, GAINS)


def _reduced(graph: Graph, shapes: Shapes) -> tuple[Dimension, Dimension] | None:
    """The dimensions of all rows that are reduced and along these, if these are one, and nothing is kept along them."""
    found: set[tuple[Dimension, ...]] = set()
    for n, node in enumerate(graph.nodes):
        axes = in_memory(node.expr, shapes, n)
        if len(axes) > 1 and axes[-1] in node.expr.reduced and axes[-2] in node.expr.output:
            found.add(tuple(shapes.extent(n, axis) for axis in axes[-2:]))
    match list(found):
        case [(rows, along)] if not any(along in shapes.value_dims(value) for value in _kept(graph)):
            return rows, along
        case _:
            return None


def _kept(graph: Graph) -> list[Value]:
    """What is read more than once."""
    read = Counter(source for node in graph.nodes for source in node.operands if isinstance(source, Value))
    return [value for value, times in (read + Counter(graph.outputs)).items() if times > 1 and isinstance(value, Value)]


def _in_tiles(graph: Graph, shapes: Shapes, rows: tuple[Dimension, Dimension], length: int) -> Graph:
    """``graph`` with tiles of ``rows`` in parts of whole vectors along them."""
    width = min(MOST, -(-length // WIDTHS[0]) * WIDTHS[0])
    nodes = list(graph.nodes)
    for n, node in enumerate(nodes):
        axes = [axis for axis in in_memory(node.expr, shapes, n) if shapes.extent(n, axis) in rows]
        if axes and shapes.extent(n, axes[0]) == rows[0]:
            nodes[n] = replace(node, expr=_tiled(node.expr, axes, width))
    return replace(graph, nodes=tuple(nodes))


def _tiled(expr: Expr, axes: list[str], width: int) -> Expr:
    """``expr`` with tiles of ``axes``, rows and perhaps what is along them, right inside the loops over these."""
    order = [*expr.sequence]
    last = order.index(Loop(axes[-1])) if len(axes) > 1 else len(order) - 1
    order[last + 1 : last + 1] = [Loop(axis, 1) for axis in axes]
    splits = tuple((axis, (size,)) for axis, size in zip(axes, (ROWS, width), strict=False))
    return replace(expr, splits=(*expr.splits, *splits), order=tuple(order))
