"""Rows that are summed, several side by side: the search compares whole rows with tiles of many, and leaves these.

before →  one row after the other, ``ij*j~ij`` and ``+ij~i||ij0``
after  →  eight at a time, ``ij*j~ij|i:8,j:16|iji'j'`` and ``+ij~i|i:8,j:16|iji'j'0``

What all rows share, such as the vector of a product, comes out of the second-level cache for each row where it is long,
and for eight at once: 512×32768 times a vector takes 0.47 of the time so on Zen 4, 4096×4096 0.83. Where it stays in
the first-level cache rows do better alone: 8192×2048 1.24, 16384×1024 1.19.
"""

from __future__ import annotations

from dataclasses import replace

from ilang_eq.extract.candidate import Candidate
from ilang_eq.extract.refine import Judge, cheaper
from ilang_eq.lang.expr import Expr, Loop
from ilang_eq.lang.graph import Graph
from ilang_eq.lang.shapes import Dimension, Shapes, infer
from ilang_eq.lower.widths import WIDTHS

ROWS = 8
"""Rows at a time."""
LONG = 4096
"""The shortest rows, in floats: what shorter ones share stays in the first-level cache. Four products of 1024² with
vectors take 1.06 of the time side by side."""
GAINS = 1.035
"""How many times as long the same has to take row by row: 4096 rows of 2048 floats, which do better alone, are expected
to take 1.01 on Zen 4, and those of 4096, which take 1.12, 1.04."""


def side_by_side(candidate: Candidate, judge: Judge) -> Candidate:
    """``candidate`` with rows side by side, of one sum after the other, as far as that gains by the full model."""
    shapes = infer(candidate.graph)
    best = candidate
    for rows, along in _summed(candidate.graph, shapes):
        if judge.extents[along] >= LONG:
            best = cheaper(best, _in_tiles(best.graph, shapes, rows, along), judge, GAINS)
    return best


def _summed(graph: Graph, shapes: Shapes) -> list[tuple[Dimension, Dimension]]:
    """The dimensions of rows that are summed one after the other, each with that along a row."""
    found: dict[tuple[Dimension, Dimension], None] = {}
    for n, node in enumerate(graph.nodes):
        match _row_loops(node.expr):
            case (row, along) if row in node.expr.output and along in node.expr.reduced:
                found[shapes.extent(n, row), shapes.extent(n, along)] = None
            case _:
                pass
    return list(found)


def _row_loops(expr: Expr) -> tuple[str, str] | None:
    """The axes of the two innermost loops, if these are whole."""
    match expr.loops[-2:]:
        case (Loop(row), Loop(along)) if not expr.factors[row] and not expr.factors[along]:
            return row, along
        case _:
            return None


def _in_tiles(graph: Graph, shapes: Shapes, rows: Dimension, along: Dimension) -> Graph:
    """``graph`` with tiles wherever the two innermost loops go over ``rows``, and ``along`` them."""
    nodes = list(graph.nodes)
    for n, node in enumerate(nodes):
        loops = _row_loops(node.expr)
        if loops is not None and tuple(shapes.extent(n, axis) for axis in loops) == (rows, along):
            nodes[n] = replace(node, expr=_tiled(node.expr, *loops))
    return replace(graph, nodes=tuple(nodes))


def _tiled(expr: Expr, row: str, along: str) -> Expr:
    """``expr`` with a tile of rows in a part of whole vectors ``along`` them."""
    order = [*expr.sequence]
    last = order.index(Loop(along))
    order[last + 1 : last + 1] = [Loop(row, 1), Loop(along, 1)]
    return replace(expr, splits=(*expr.splits, (row, (ROWS,)), (along, (WIDTHS[0],))), order=tuple(order))
