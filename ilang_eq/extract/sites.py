"""Sites further in for values that several read: each reader may want one of its own.

before →  e = exp(x[i] - m[i]) for all j of a row i:
          a sum and then a division read it, ``+ij~i||i0j`` and ``ij/i~ij||i10j``
after  →  the same, but the sum reads each element as it is computed: ``+ij~i||ij0``

In the search, all readers of a value find it at one site (``states.py``). Sites of their own are few enough to try; a
sum in parts, ``+ij~i|j:128|i0jj'``, goes over all of a row there: parts are staged as such, or in front of it.
None further out gained in any of 160 components. And what is in memory for one reader alone, where that begins with
the same loops: the last steps may have made them so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import takewhile

from ilang_eq.extract.candidate import Candidate
from ilang_eq.extract.refine import Judge
from ilang_eq.extract.untiled import whole
from ilang_eq.lang.expr import Expr, Loop, OrderItem, Stage
from ilang_eq.lang.graph import Graph, Value
from ilang_eq.lang.shapes import Shapes, infer

GAINS = 1.01
"""How many times as long the same with the old site has to take: the model knows no better."""


def resited(candidate: Candidate, judge: Judge) -> Candidate:
    """``candidate`` with sites further in for one reader after the other, as far as each gains by the full model."""
    best = candidate
    while True:
        found = best
        for graph in _moved(best.graph):
            seconds = judge.seconds(graph, min(found.cost, best.cost / GAINS))
            if seconds < min(found.cost, best.cost / GAINS):
                found = replace(best, graph=graph, cost=seconds)
        if found is best:
            return best
        best = found


def _moved(graph: Graph) -> Iterator[Graph]:
    """``graph`` with one operand further in: staged for several readers, or in memory for one."""
    readers = Counter(source for node in graph.nodes for source in node.operands if isinstance(source, Value))
    readers.update(wire for wire in graph.outputs if isinstance(wire, Value))
    shapes = infer(graph)
    for n, node in enumerate(graph.nodes):
        order = node.expr.sequence
        for operand, source in enumerate(node.operands):
            if not isinstance(source, Value):
                continue
            exprs: Iterable[Expr] = ()
            if Stage(operand) not in order and readers[source] == 1:
                exprs = _from_memory(node.expr, operand, _shared(graph, shapes, source.node, n))
            elif Stage(operand) in order and readers[source] > 1:
                exprs = (e for own in _with_and_without_parts(node.expr) for e in _further_in(own, operand))
            for expr in exprs:
                yield replace(graph, nodes=(*graph.nodes[:n], replace(node, expr=expr), *graph.nodes[n + 1 :]))


def _shared(graph: Graph, shapes: Shapes, producer: int, reader: int) -> int:
    """How many loops both begin with, before the producer sums anything."""
    made, read = graph.nodes[producer].expr, graph.nodes[reader].expr
    whole = list(takewhile(lambda loop: loop.axis not in made.reduced, made.loops))
    alike = (
        a.level == b.level
        and made.factors[a.axis] == read.factors[b.axis]
        and shapes.extent(producer, a.axis) == shapes.extent(reader, b.axis)
        for a, b in zip(whole, read.loops, strict=False)
    )
    return sum(1 for _ in takewhile(bool, alike))


def _from_memory(expr: Expr, operand: int, site: int) -> Iterator[Expr]:
    """``expr`` with ``operand`` staged under ``site`` loops, if there are any."""
    if site:
        yield replace(expr, order=_staged([*expr.sequence], operand, site))


def _with_and_without_parts(expr: Expr) -> Iterator[Expr]:
    """``expr``, and without parts of what it sums, in which no element comes as it is computed."""
    yield expr
    parts = {axis for axis, _ in expr.splits if axis in expr.reduced}
    if parts:
        yield whole(expr, parts)


def _further_in(expr: Expr, operand: int) -> Iterator[Expr]:
    """``expr`` with ``operand`` staged under more loops, after what else is staged there."""
    rest = [item for item in expr.order if item != Stage(operand)]
    before = expr.order.index(Stage(operand))
    now = sum(isinstance(item, Loop) for item in expr.order[:before])
    loops = sum(isinstance(item, Loop) for item in rest)
    for site in range(now + 1, loops + 1):
        yield replace(expr, order=_staged(rest, operand, site))


def _staged(order: list[OrderItem], operand: int, site: int) -> tuple[OrderItem, ...]:
    """``order`` with ``operand`` last of what is staged under ``site`` loops."""
    loops = [n for n, item in enumerate(order) if isinstance(item, Loop)]
    end = loops[site] if site < len(loops) else len(order)
    return (*order[:end], Stage(operand), *order[end:])
