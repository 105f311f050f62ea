"""Rows that others are added to, in registers: tiles that are all of an axis are no part of the search.

before →  a row in memory, ``+ikj~ij||ikj``
after  →  all of the row in registers, ``+ikj~ij|j:512|ijkj'``

A store waits for what is added, and the next one to the same float for that: while it comes from memory, little else is
under way. Sums over the middle axis of 64×512×512 take 0.35 of the time so on Zen 4, those of 128×512×256 0.34.
"""

from __future__ import annotations

from dataclasses import replace

from ilang_eq.extract.candidate import Candidate
from ilang_eq.extract.refine import Judge, cheaper
from ilang_eq.lang.expr import Expr, Loop
from ilang_eq.lang.graph import Graph
from ilang_eq.lang.shapes import Dimension, Shapes, infer
from ilang_eq.lower.widths import WIDTHS

LONGEST = 512
"""The longest row, in floats, that is held: as many as 32 registers of the widest vectors."""


def held(candidate: Candidate, judge: Judge) -> Candidate:
    """``candidate`` with rows in registers, along one axis after the other, as far as that gains by the full model."""
    shapes = infer(candidate.graph)
    best = candidate
    for dimension, reduced in _added_to(candidate.graph, shapes).items():
        extent = judge.extents[dimension]
        if WIDTHS[0] <= extent <= LONGEST:
            tile = -(-extent // WIDTHS[0]) * WIDTHS[0]
            best = cheaper(best, _in_registers(best.graph, shapes, dimension, reduced, tile), judge)
    return best


def _added_to(graph: Graph, shapes: Shapes) -> dict[Dimension, set[Dimension]]:
    """The dimensions along which rows are added to rows, each with those that are reduced meanwhile."""
    found: dict[Dimension, set[Dimension]] = {}
    for n, node in enumerate(graph.nodes):
        expr = node.expr
        if expr.reduced and _last_is_whole(expr) and expr.loops[-1].axis in expr.output:
            reduced = {shapes.extent(n, axis) for axis in expr.reduced}
            found.setdefault(shapes.extent(n, expr.loops[-1].axis), set()).update(reduced)
    return found


def _last_is_whole(expr: Expr) -> bool:
    """Whether the innermost loop goes through all of its axis."""
    return bool(expr.loops) and not expr.factors[expr.loops[-1].axis]


def _in_registers(graph: Graph, shapes: Shapes, dimension: Dimension, reduced: set[Dimension], tile: int) -> Graph:
    """``graph`` with tiles of ``dimension`` around what is ``reduced``, where it is innermost."""
    nodes = list(graph.nodes)
    for n, node in enumerate(nodes):
        if _last_is_whole(node.expr) and shapes.extent(n, node.expr.loops[-1].axis) == dimension:
            inside = {axis for axis in node.expr.axes if shapes.extent(n, axis) in reduced}
            nodes[n] = replace(node, expr=_tiled(node.expr, inside, tile))
    return replace(graph, nodes=tuple(nodes))


def _tiled(expr: Expr, inside: set[str], tile: int) -> Expr:
    """``expr`` with a tile of its innermost axis, around the loops over the axes ``inside``."""
    axis = expr.loops[-1].axis
    order = [Loop(axis, 1) if item == Loop(axis) else item for item in expr.sequence]
    first = next(n for n, item in enumerate(order) if isinstance(item, Loop) and item.axis in {*inside, axis})
    order.insert(first, Loop(axis))
    return replace(expr, splits=(*expr.splits, (axis, (tile,))), order=tuple(order))
