"""All axes without tiles, in the order in which they lie in memory, everything computed where it is read.

before →  ``ij*2~ji|i:256|iji'`` and ``^ji~ij|i:256|iji'0``, three columns of 256 rows at a time
after  →  ``ij*2~ij`` and ``^ij~ij||ij0``, which is one loop over all elements

Neighbours of this kind run as one (``lower/collapsing.py``), which no walk over tile sizes comes to: without one of its
tiles alone, rows are as short as before.
"""

from __future__ import annotations

from dataclasses import replace

from ilang_eq.errors import ScheduleError
from ilang_eq.extract.candidate import Candidate
from ilang_eq.extract.refine import Judge, cheaper
from ilang_eq.extract.sites import GAINS
from ilang_eq.lang.expr import Expr, Loop, OrderItem, Stage
from ilang_eq.lang.graph import Graph, Node
from ilang_eq.lang.shapes import Shapes, infer
from ilang_eq.lower import lower
from ilang_eq.lower.collapsing import collapsed
from ilang_eq.lower.walk import extents_of

LOSES = 1.2
"""How many times as long one loop over everything may take by the model, which takes rows several at a time for quicker
than they are: sums of 64×56×56×32 take 0.77 of the time in one loop on Zen 3, where it has 1.17, exponentials 0.68 and
1.12."""


def in_order(candidate: Candidate, judge: Judge) -> Candidate:
    """``candidate`` without tiles and in order, if that gains by the full model."""
    graph = candidate.graph
    shapes = infer(graph)
    if all(len(node.expr.axes) < 2 for node in graph.nodes):
        return candidate
    nodes = (replace(node, expr=_in_order(node, shapes, n)) for n, node in enumerate(graph.nodes))
    other = Graph(graph.inputs, tuple(nodes), graph.outputs)
    return cheaper(candidate, other, judge, 1 / LOSES if _is_one_loop(other) else GAINS)


def _is_one_loop(graph: Graph) -> bool:
    """Whether ``graph`` is a loop over everything, kernel by kernel."""
    try:
        kernels = collapsed(lower(graph, alternatives=False)).kernels
    except ScheduleError:
        return False
    return all(len(set(extents_of(kernel.body))) == 1 for kernel in kernels)


def _in_order(node: Node, shapes: Shapes, n: int) -> Expr:
    """The expression of ``node``, number ``n``, with one loop for each axis, and what is staged inside them all."""
    loops = (Loop(axis) for axis in in_memory(node.expr, shapes, n))
    staged = (item for item in node.expr.order if isinstance(item, Stage))
    return ordered(node.expr, (*loops, *staged))


def in_memory(expr: Expr, shapes: Shapes, n: int) -> list[str]:
    """The axes of ``expr``, number ``n``, in the order of the dimensions that they run over."""
    return sorted(expr.axes, key=lambda axis: shapes.extent(n, axis))


def ordered(expr: Expr, order: tuple[OrderItem, ...]) -> Expr:
    """``expr`` without splits, in ``order``, which is left out if it is the usual one."""
    usual = replace(expr, splits=(), order=())
    made = replace(usual, order=order)
    return usual if made.sequence == usual.sequence else made
