"""Axes without their tiles: a step from tiles to none is further than those that a walk takes.

before →  rows in tiles of 32, ``+ij~i|i:32|ii'j0`` and ``ij/i~ij|i:32|i1i'j``
after  →  one row after the other, ``+ij~i||ij0`` and ``ij/i~ij||i1j``, each written while the next one is computed

In the search, an axis that may have tiles has some, or another structure. Axes of large outputs (``lower/late.py``) are
few enough to try; elsewhere the model is not to be trusted with it, and has the variance of rows take 1.13 of the time.
And a tile that has all of its axis is none: 2048×1000×200 in a block of 1000 steps takes 1.1 of the time on Zen 3, as
sums come from memory, and go there again.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace
from math import prod

from ilang_eq.extract.candidate import Candidate
from ilang_eq.extract.footprint import Extents
from ilang_eq.extract.refine import Judge, cheaper
from ilang_eq.lang.expr import Expr, Loop
from ilang_eq.lang.graph import Graph
from ilang_eq.lang.shapes import Dimension, Shapes, infer
from ilang_eq.lower.streamed import STREAMED_FLOATS

LOSES = 1.005
"""How many times as long the same without tiles may take: the model knows no better, and a sum of rows without them may
read what it sums as that is computed (``sites.py``)."""


def untiled(candidate: Candidate, judge: Judge) -> Candidate:
    """``candidate`` without the tiles of all axes or of one after the other, as far as the full model sees no loss."""
    shapes = infer(candidate.graph)
    best = candidate
    for dimension in _of_one_tile(candidate.graph, shapes, judge.extents):
        best = cheaper(best, _rewritten(best.graph, shapes, {dimension}, _without_outermost), judge, 1.0 / LOSES)
    large = _of_large_outputs(candidate.graph, shapes, judge.extents)
    tiled = [dimension for dimension in _tiled(candidate.graph, shapes) if dimension in large]
    for dimensions in ({*tiled}, *({dimension} for dimension in tiled)):
        best = cheaper(best, _rewritten(best.graph, shapes, dimensions, whole), judge, 1.0 / LOSES)
    return best


def _tiled(graph: Graph, shapes: Shapes) -> tuple[Dimension, ...]:
    """The dimensions that have tiles, by first appearance."""
    found = (shapes.extent(n, axis) for n, node in enumerate(graph.nodes) for axis, _ in node.expr.splits)
    return tuple(dict.fromkeys(found))


def _of_one_tile(graph: Graph, shapes: Shapes, extents: Extents) -> list[Dimension]:
    """The dimensions all of which is in each of their tiles."""
    smallest: dict[Dimension, int] = {}
    for n, node in enumerate(graph.nodes):
        for axis, factors in node.expr.splits:
            dimension = shapes.extent(n, axis)
            smallest[dimension] = min(prod(factors), smallest.get(dimension, extents[dimension]))
    return [dimension for dimension, tile in smallest.items() if tile >= extents[dimension]]


def _of_large_outputs(graph: Graph, shapes: Shapes, extents: Extents) -> set[Dimension]:
    """The dimensions of outputs whose rows may be written late."""
    outputs = [shapes.value_dims(output) for output in graph.outputs]
    return {d for dims in outputs if prod(extents[each] for each in dims) >= STREAMED_FLOATS for d in dims}


def _rewritten(
    graph: Graph, shapes: Shapes, dimensions: Set[Dimension], without: Callable[[Expr, set[str]], Expr]
) -> Graph:
    """``graph`` ``without`` some loops over ``dimensions``."""
    nodes = list(graph.nodes)
    for n, node in enumerate(nodes):
        axes = {axis for axis in node.expr.axes if shapes.extent(n, axis) in dimensions}
        nodes[n] = replace(node, expr=without(node.expr, axes))
    return replace(graph, nodes=tuple(nodes))


def whole(expr: Expr, axes: Set[str]) -> Expr:
    """``expr`` with one loop over each of ``axes``, where the outermost is."""
    splits = tuple(split for split in expr.splits if split[0] not in axes)
    order = tuple(s for s in expr.order if not (isinstance(s, Loop) and s.axis in axes and s.level > 0))
    return replace(expr, splits=splits, order=order)


def _without_outermost(expr: Expr, axes: set[str]) -> Expr:
    """``expr`` without the loop over the tiles of each of ``axes`` that are split."""
    split = {axis for axis, _ in expr.splits} & axes
    splits = tuple((axis, factors[axis in split :]) for axis, factors in expr.splits)
    order = (_further_out(item) if isinstance(item, Loop) and item.axis in split else item for item in expr.order)
    return replace(
        expr,
        splits=tuple((axis, factors) for axis, factors in splits if factors),
        order=tuple(item for item in order if item is not None),
    )


def _further_out(loop: Loop) -> Loop | None:
    return Loop(loop.axis, loop.level - 1) if loop.level else None
