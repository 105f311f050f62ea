"""A graph without its schedule: what to compute, in canonical axis names."""

from __future__ import annotations

from dataclasses import replace

from ilang_eq.lang.expr import Access, Expr
from ilang_eq.lang.graph import Graph

LETTERS = "ijklmnopqrstuvwxyzabcdefgh"


def unscheduled(graph: Graph) -> Graph:
    """``graph`` with default schedules, its axes renamed by first appearance: the output's first."""
    return replace(graph, nodes=tuple(replace(node, expr=_plain(node.expr)) for node in graph.nodes))


def _plain(expr: Expr) -> Expr:
    letters = dict(zip(expr.axes, LETTERS, strict=False))

    def renamed(axes: str) -> str:
        return "".join(letters[axis] for axis in axes)

    operands = tuple(Access(renamed(o.axes)) if isinstance(o, Access) else o for o in expr.operands)
    return Expr(expr.op, operands, renamed(expr.output))
