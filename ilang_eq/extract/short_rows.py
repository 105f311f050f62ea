"""Short rows that are reduced, a few side by side: the search compares whole rows with tiles of many, and leaves these.

before →  one row after the other, ``ij*j~ij`` and ``+ij~i||ij0``
after  →  four at a time, ``ij*j~ij|i:4,j:64|iji'j'`` and ``+ij~i|i:4,j:64|iji'j'0``

A short row ends before a core knows that it does, and is added up across its lanes while the next one waits. On Zen 5
the largest of each of a million rows of 16 floats take 0.58 of the time of row by row so, of 24 floats 0.60, sums of
64 0.37, of 100 0.75; with eight rows 0.62 to 1.35. Of what is found without, variances of rows of 100 take 0.6 of the
time, softmax of 24, 50, 64, 100 and 128 floats 0.87, 0.97, 0.98, 0.82 and 0.80.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ilang_eq.extract.by_rows import in_rows
from ilang_eq.extract.candidate import Candidate
from ilang_eq.extract.in_order import in_memory
from ilang_eq.extract.refine import Judge, cheaper
from ilang_eq.extract.side_by_side import GAINS
from ilang_eq.lang.expr import Expr, Loop, Stage
from ilang_eq.lang.graph import Graph, Value
from ilang_eq.lang.shapes import Dimension, Shapes, infer
from ilang_eq.lower.widths import WIDTHS

ROWS = 4
"""Rows at a time."""
SHORT = range(WIDTHS[0], 129)
"""How long rows are, in floats. Sums of 12 floats that are near take 1.2 of the time, variances of 200 as well."""
WRITTEN = range(24, 129)
"""How long rows of a result are: x / √(Σ x² / n + ε) takes 1.14 of the time with 16 floats, 0.8 with 24 and 50. But not
those beside which exponentials are only added up: x - ln Σ e^x takes 1.1 to 1.4."""
MOST = 64
"""The most floats of a row in a tile."""


def short_rows(candidate: Candidate, judge: Judge) -> Candidate:
    """``candidate`` with a few rows side by side, if that gains by the full model."""
    graph = in_rows(candidate.graph, judge.extents)
    if graph is None:
        return candidate
    shapes = infer(graph)
    found = _reduced(graph, shapes)
    length = judge.extents[found[1]] if found is not None else 0
    if found is None or length not in _lengths(graph, shapes, found[1]):
        return candidate
    if length < MOST and length % WIDTHS[0] and _reductions(graph, shapes, found[1]) > 1:
        # each of several passes would be over what is left of rows alone: variances of 24 floats take 1.6 of the time
        return candidate
    return cheaper(candidate, _in_tiles(graph, shapes, found, length), judge, GAINS)


def _reductions(graph: Graph, shapes: Shapes, along: Dimension) -> int:
    return sum(shapes.extent(n, axis) == along for n, node in enumerate(graph.nodes) for axis in node.expr.reduced)


def _lengths(graph: Graph, shapes: Shapes, along: Dimension) -> range:
    """How long rows have to be."""
    if not any(along in shapes.value_dims(output) for output in graph.outputs):
        return SHORT
    once = _costly(graph) - _kept(graph)
    return range(0) if any(along in shapes.value_dims(value) for value in once) else WRITTEN


def _reduced(graph: Graph, shapes: Shapes) -> tuple[Dimension, Dimension] | None:
    """The dimensions of all rows that are reduced and along these, if these are one.

    What several read along them has to be worth keeping: differences from a mean, computed in four rows for
    each reader, take 1.4 of the time that they take in 64.
    """
    found: set[tuple[Dimension, ...]] = set()
    for n, node in enumerate(graph.nodes):
        axes = in_memory(node.expr, shapes, n)
        if len(axes) > 1 and axes[-1] in node.expr.reduced and axes[-2] in node.expr.output:
            found.add(tuple(shapes.extent(n, axis) for axis in axes[-2:]))
    match list(found):
        case [(rows, along)] if not any(along in shapes.value_dims(value) for value in _kept(graph) - _costly(graph)):
            return rows, along
        case _:
            return None


def _kept(graph: Graph) -> set[Value]:
    """What several read."""
    sources = [source for node in graph.nodes for source in set(node.operands)]
    read = Counter(source for source in (*sources, *graph.outputs) if isinstance(source, Value))
    return {value for value, times in read.items() if times > 1}


def _costly(graph: Graph) -> set[Value]:
    """Exponentials and logarithms."""
    functions = (n for n, node in enumerate(graph.nodes) if node.expr.op in ("pow", "log"))
    return {Value(n) for n in functions if len(graph.nodes[n].operands) == 1}


def _in_tiles(graph: Graph, shapes: Shapes, rows: tuple[Dimension, Dimension], length: int) -> Graph:
    """``graph`` with tiles of ``rows`` in parts of whole vectors along them."""
    width = min(MOST, -(-length // WIDTHS[0]) * WIDTHS[0])
    nodes, kept = list(graph.nodes), _kept(graph)
    for n, node in enumerate(nodes):
        axes = [axis for axis in in_memory(node.expr, shapes, n) if shapes.extent(n, axis) in rows]
        if axes and shapes.extent(n, axes[0]) == rows[0]:
            staged = [k for k, source in enumerate(node.operands) if source in kept]
            nodes[n] = replace(node, expr=_tiled(_kept_first(node.expr, axes[0], staged), axes, width))
    return replace(graph, nodes=tuple(nodes))


def _kept_first(expr: Expr, row: str, operands: Sequence[int]) -> Expr:
    """``expr`` with ``operands`` computed for all of a row, before what is done with them."""
    moved = [item for item in expr.order if isinstance(item, Stage) and item.operand in operands]
    if not moved:
        return expr
    order = [item for item in expr.order if item not in moved]
    at = order.index(Loop(row)) + 1
    while at < len(order) and isinstance(order[at], Stage):
        at += 1
    order[at:at] = moved
    return replace(expr, order=tuple(order))


def _tiled(expr: Expr, axes: list[str], width: int) -> Expr:
    """``expr`` with tiles of ``axes``, rows and perhaps what is along them, right inside the loops over these."""
    order = [*expr.sequence]
    last = order.index(Loop(axes[-1])) if len(axes) > 1 else len(order) - 1
    order[last + 1 : last + 1] = [Loop(axis, 1) for axis in axes]
    splits = tuple((axis, (size,)) for axis, size in zip(axes, (ROWS, width), strict=False))
    return replace(expr, splits=(*expr.splits, *splits), order=tuple(order))
