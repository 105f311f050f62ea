"""Schedules for tensor cores out of those that the additive model proposes.

A product's tiles are such as the cores' instructions fill, and copies lie as in memory, so that 16 bytes move at once.
Where a product is computed inside another's loops, its sums stay in registers: loops over tiles of a result come before
those that its reductions are over, so that sums of one tile alone are under way.

    before   i("ij*jk~ikj|i:16,j:8,k:16|ij0kj'i'k'") >> i("+ikj~ik|i:16,j:8,k:16|ijkj'i'k'0")
    after    i("ij*jk~ikj|i:64,j:32,k:64|ikj0j'i'k'") >> i("+ikj~ik|i:64,j:32,k:64|ikjj'i'k'0")

Nothing is decided here, as in ``gpu_staging.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from ilang_eq.extract.gpu_staging import (
    DEPTHS,
    Pair,
    copied,
    in_single_tiles,
    is_staged,
    names_of,
    pairs_of,
    tiled,
    with_expr,
)
from ilang_eq.lang.expr import Access, Loop, Stage
from ilang_eq.lang.graph import Graph, Node, Source, Value, Wire

_T = TypeVar("_T")

TILES = ((128, 128), (128, 64), (64, 64), (256, 128))
"""Tiles of the last two axes of a product that is a kernel of its own."""
INSIDE = ((64, 32, 64), (64, 64, 64), (128, 32, 128), (64, 16, 64), (64, 32, 128), (64, 64, 128))
"""Tiles where a product is inside another's loops: of axes that nothing reduces, of those that something does, and of
those that the product inside has not: it is computed again for each of their tiles."""


def in_registers(graph: Graph, as_in_memory: bool = False) -> Iterator[Graph]:
    """Variants of ``graph`` whose products inside other loops keep their sums in registers."""
    graph = in_single_tiles(_unpacked(graph))
    pairs = pairs_of(graph)
    if any(is_staged(graph, pair.reduction) for pair in pairs):
        for depth in DEPTHS:
            for sizes in INSIDE:
                yield copied(_sums_first(_in_tiles(graph, pairs, sizes), pairs), pairs, depth, as_in_memory)


def core_variants(graph: Graph) -> Iterator[Graph]:
    """Variants of ``graph`` whose products fit tensor cores."""
    yield from in_registers(graph, as_in_memory=True)
    graph = _unpacked(graph)
    pairs = pairs_of(graph)
    alone = [pair for pair in pairs if not is_staged(graph, pair.reduction)]
    for depth in DEPTHS if alone else ():
        for sizes in TILES:
            made = graph
            for pair in alone:
                made = tiled(made, pair, sizes)
            yield copied(made, pairs, depth, as_in_memory=True)


def _unpacked(graph: Graph) -> Graph:
    """``graph`` without copies of whole values, whose readers read what was copied."""
    nodes = list(graph.nodes)
    for n, node in enumerate(nodes):
        for k, source in enumerate(node.operands):
            access = node.expr.operands[k]
            if isinstance(source, Value) and isinstance(access, Access) and not _stages(node, k):
                found = _source_of(graph.nodes[source.node], access)
                if found is not None:
                    expr = replace(node.expr, operands=_with(node.expr.operands, k, found[1]))
                    node = nodes[n] = Node(expr, _with(node.operands, k, found[0]))
    return _reached(replace(graph, nodes=tuple(nodes)))


def _stages(node: Node, operand: int) -> bool:
    return Stage(operand) in node.expr.order


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


def _in_tiles(graph: Graph, pairs: Sequence[Pair], sizes: tuple[int, int, int]) -> Graph:
    """``graph`` with tiles of ``sizes``, as in ``INSIDE``, wherever it has any."""
    kept, reduced, apart = sizes
    over = _tied(graph, ((n, axis) for n, node in enumerate(graph.nodes) for axis in node.expr.reduced))
    inside = [pair.pairing for pair in pairs if is_staged(graph, pair.reduction)]
    theirs = _tied(graph, ((n, axis) for n in inside for axis in graph.nodes[n].expr.axes))

    def size(axis: tuple[int, str]) -> int:
        return reduced if axis in over else kept if axis in theirs else apart

    nodes = []
    for n, node in enumerate(graph.nodes):
        splits = tuple((axis, (size((n, axis)),)) for axis, _ in node.expr.splits)
        nodes.append(replace(node, expr=replace(node.expr, splits=splits)))
    return replace(graph, nodes=tuple(nodes))


def _tied(graph: Graph, axes: Iterable[tuple[int, str]]) -> frozenset[tuple[int, str]]:
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


def _sums_first(graph: Graph, pairs: Sequence[Pair]) -> Graph:
    """``graph`` with its loops over tiles of results outside those over what they are reduced over."""
    results = {n: node.expr.output for n, node in enumerate(graph.nodes)}
    for pair in pairs:
        names = names_of(graph, pair)
        results[pair.pairing] = "".join(names[axis] for axis in results[pair.reduction])
    for n, output in results.items():
        expr = graph.nodes[n].expr
        first = [loop for loop in expr.loops if loop.level == 0 and loop.axis in output]
        rest = [item for item in expr.sequence if not isinstance(item, Loop) or item not in first]
        if any(loop.level for loop in expr.loops):
            graph = with_expr(graph, n, replace(expr, order=(*first, *rest)))
    return graph
