"""Schedules for tensor cores out of those that the additive model proposes.

A product's tiles are such as the cores' instructions fill, and copies lie as in memory, so that 16 bytes move at once.
Where a product is computed inside another's loops, its sums stay in registers: loops over tiles of a result come before
those that its reductions are over, so that sums of one tile alone are under way.

    before   i("ij*jk~ikj|i:16,j:8,k:16|ij0kj'i'k'") >> i("+ikj~ik|i:16,j:8,k:16|ijkj'i'k'0")
    after    i("ij*jk~ikj|i:64,j:32,k:64|ikj0j'i'k'") >> i("+ikj~ik|i:64,j:32,k:64|ikjj'i'k'0")

Nothing is decided here, as in ``gpu_staging.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ilang_eq.extract.gpu_staging import DEPTHS, Pair, copied, is_staged, names_of, pairs_of, tiled
from ilang_eq.extract.gpu_tiles import NodeAxis, reduced_axes, retiled, tied, with_expr, without_copies
from ilang_eq.lang.expr import Loop
from ilang_eq.lang.graph import Graph, Value

TILES = ((128, 128), (128, 64), (64, 64), (256, 128), (64, 256))
"""Tiles of the last two axes of a product that is a kernel of its own."""
INSIDE = (
    (64, 16, 64), (64, 32, 64), (64, 64, 64), (64, 128, 64), (64, 256, 64),
    (64, 32, 128), (64, 64, 128), (128, 32, 64), (128, 64, 64), (128, 32, 128), (128, 64, 128), (128, 128, 128),
)  # fmt: skip
"""Tiles where a product is inside another's loops: of axes that nothing reduces, of those that something does, and of
those that the product inside has not: it is computed again for each of their tiles."""


def in_registers(graph: Graph, as_in_memory: bool = False) -> Iterator[Graph]:
    """Variants of ``graph`` whose products inside other loops keep their sums in registers."""
    graph = without_copies(graph)
    pairs = pairs_of(graph)
    if any(is_staged(graph, pair.reduction) for pair in pairs):
        for depth in DEPTHS:
            for sizes in INSIDE:
                made = _sums_first(_in_tiles(graph, pairs, sizes, depth), pairs)
                yield copied(made, pairs, depth, as_in_memory)


def core_variants(graph: Graph) -> Iterator[Graph]:
    """Variants of ``graph`` whose products fit tensor cores."""
    yield from in_registers(graph, as_in_memory=True)
    graph = without_copies(graph)
    pairs = pairs_of(graph)
    alone = [pair for pair in pairs if not is_staged(graph, pair.reduction)]
    for depth in DEPTHS if alone else ():
        for sizes in TILES:
            made = graph
            for pair in alone:
                made = tiled(made, pair, sizes)
            yield copied(made, pairs, depth, as_in_memory=True)


def _in_tiles(graph: Graph, pairs: Sequence[Pair], sizes: tuple[int, int, int], depth: int) -> Graph:
    """``graph`` with tiles of ``sizes``, as in ``INSIDE``, wherever it has any; of ``depth`` where only products go."""
    kept, reduced, apart = sizes
    over = reduced_axes(graph)
    sums = [(pair.reduction, graph.nodes[pair.reduction].expr) for pair in pairs]
    results = tied(graph, ((n, axis) for n, expr in sums for axis in expr.output))
    deep = tied(graph, ((n, axis) for n, expr in sums for axis in expr.reduced)) - results
    inside = [p.pairing for p in pairs if any(p.reduction in _sources(graph, q.pairing) for q in pairs if q is not p)]
    theirs = tied(graph, ((n, axis) for n in inside for axis in graph.nodes[n].expr.axes))

    def size(axis: NodeAxis) -> int:
        if axis in over:
            return depth if axis in deep else reduced
        return kept if axis in theirs else apart

    return retiled(graph, size)


def _sources(graph: Graph, node: int) -> frozenset[int]:
    """The nodes that ``node`` is computed from."""
    direct = {source.node for source in graph.nodes[node].operands if isinstance(source, Value)}
    return frozenset(direct).union(*(_sources(graph, n) for n in direct))


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
