"""Schedules of the same structure in other tiles, for a GPU: what its variants are made of.

before   i("+ik~ki|i:4:8|iki'i''") >> ...          tiles in tiles, which are for the registers of a processor
after    i("+ik~ki|i:64|iki'") >> ...              one tile for a block, whose binding finds the threads' own
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import prod
from typing import TypeVar

from ilang_eq.lang.expr import Access, Expr, Loop, OrderItem, Stage
from ilang_eq.lang.graph import Graph, Node, Source, Value, Wire

_T = TypeVar("_T")
NodeAxis = tuple[int, str]
"""An axis of a node."""


def retiled(graph: Graph, size: Callable[[NodeAxis], int]) -> Graph:
    """``graph`` with single tiles of ``size`` along the axes of nodes that have any."""
    nodes = []
    for n, node in enumerate(in_single_tiles(graph).nodes):
        splits = tuple((axis, (size((n, axis)),)) for axis, _ in node.expr.splits)
        nodes.append(replace(node, expr=replace(node.expr, splits=splits)))
    return replace(graph, nodes=tuple(nodes))


def reduced_axes(graph: Graph) -> frozenset[NodeAxis]:
    """What some reduction is over, in all nodes."""
    return tied(graph, ((n, axis) for n, node in enumerate(graph.nodes) for axis in node.expr.reduced))


def tied(graph: Graph, axes: Iterable[NodeAxis]) -> frozenset[NodeAxis]:
    """``axes`` of nodes, and those that are such an axis of what is read, or of who reads."""
    ties = [
        ((reader, mine), (source.node, theirs))
        for reader, node in enumerate(graph.nodes)
        for source, access in zip(node.operands, node.expr.operands, strict=True)
        if isinstance(source, Value) and isinstance(access, Access)
        for mine, theirs in zip(access.axes, graph.nodes[source.node].expr.output, strict=True)
    ]
    found = set(axes)
    while more := {end for tie in ties for end in tie if found & set(tie)} - found:
        found |= more
    return frozenset(found)


def in_single_tiles(graph: Graph) -> Graph:
    """``graph`` without tiles inside tiles, which are for the registers of a processor: the binding finds those."""
    return replace(graph, nodes=tuple(replace(node, expr=_in_single_tiles(node.expr)) for node in graph.nodes))


def _in_single_tiles(expr: Expr) -> Expr:
    innermost = {axis: len(factors) for axis, factors in expr.splits}
    order: list[OrderItem] = []
    for item in expr.sequence:
        if not isinstance(item, Loop) or item.level == 0:
            order.append(item)
        elif item.level == innermost[item.axis]:
            order.append(Loop(item.axis, 1))
    splits = tuple((axis, (prod(factors),)) for axis, factors in expr.splits)
    return replace(expr, splits=splits, order=tuple(order)) if splits != expr.splits else expr


def with_expr(graph: Graph, number: int, expr: Expr) -> Graph:
    """``graph`` with another expression at node ``number``."""
    nodes = list(graph.nodes)
    nodes[number] = replace(nodes[number], expr=expr)
    return replace(graph, nodes=tuple(nodes))


def without_copies(graph: Graph) -> Graph:
    """``graph`` without copies of values, staged or whole: their readers read what was copied."""
    nodes = list(graph.nodes)
    for n, node in enumerate(nodes):
        for k, source in enumerate(node.operands):
            access = node.expr.operands[k]
            if isinstance(source, Value) and isinstance(access, Access):
                found = _source_of(graph.nodes[source.node], access)
                if found is not None:
                    order = tuple(item for item in node.expr.order if item != Stage(k))
                    expr = replace(node.expr, operands=_with(node.expr.operands, k, found[1]), order=order)
                    node = nodes[n] = Node(expr, _with(node.operands, k, found[0]))
    return _reached(replace(graph, nodes=tuple(nodes)))


def _source_of(copy: Node, access: Access) -> tuple[Source, Access] | None:
    """What a reader at ``access`` of ``copy`` reads instead; None if that is no copy."""
    expr = copy.expr
    if expr.op != "add" or len(expr.operands) != 1 or expr.reduced:
        return None
    (read,) = expr.operands
    if not isinstance(read, Access) or sorted(read.axes) != sorted(expr.output):
        return None
    names = dict(zip(expr.output, access.axes, strict=True))
    return copy.operands[0], Access("".join(names[axis] for axis in read.axes))


def _with(items: tuple[_T, ...], position: int, item: _T) -> tuple[_T, ...]:
    return (*items[:position], item, *items[position + 1 :])


def _reached(graph: Graph) -> Graph:
    """``graph`` without nodes that nothing comes of."""
    wanted = {wire.node for wire in graph.outputs if isinstance(wire, Value)}
    for n in reversed(graph.order()):
        if n in wanted:
            wanted |= {s.node for s in graph.nodes[n].operands if isinstance(s, Value)}
    number = {n: k for k, n in enumerate(sorted(wanted))}

    def source(old: Source) -> Source:
        return Value(number[old.node]) if isinstance(old, Value) else old

    def output(old: Wire) -> Wire:
        return Value(number[old.node]) if isinstance(old, Value) else old

    nodes = (graph.nodes[n] for n in sorted(wanted))
    kept = tuple(Node(node.expr, tuple(source(s) for s in node.operands)) for node in nodes)
    return replace(graph, nodes=kept, outputs=tuple(output(wire) for wire in graph.outputs))
