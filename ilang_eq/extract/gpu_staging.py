"""Schedules for a GPU out of those that the additive model proposes, which knows processors only.

Where a reduction takes products (or any pairs) of what lies in memory, its operands are copied tile by tile into
locals, which the binding keeps in shared memory; and reductions that are kernels of their own get tiles of the sizes
that blocks like. Nothing is decided here: all of them are judged by the cost model on their lowered loops, and
one that cannot be lowered is dropped there.

    before   i("ik*kj~ijk|i:64,j:64|ijki'j'") >> i("+ijk~ij|i:64,j:64|ijki'j'0")
    after    (i("+ik~ki|i:64,k:16|ikk'i'") | i("+kj~kj|j:64,k:16|jkk'j'"))
             >> i("ki*kj~ijk|i:64,j:64,k:16|ijk10k'i'j'") >> i("+ijk~ij|i:64,j:64,k:16|ijkk'i'j'0")
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from ilang_eq.extract.gpu_online import in_tiles_of_readers
from ilang_eq.extract.gpu_tiles import reduced_axes, retiled, with_expr, without_copies
from ilang_eq.lang.expr import Access, Expr, Loop, OrderItem, Stage
from ilang_eq.lang.graph import Graph, Input, Node, Value

DEPTHS = (16, 32)
"""Elements of a reduced axis in one copy."""
TILES = ((64, 64), (128, 128), (128, 64), (32, 32))
"""Tiles of the last two axes of a result."""

SIZES = ((64, 64), (64, 256), (16, 256), (1, 2048), (1, 4096), (1, 16384))
"""Tiles of schedules as they are: of axes that nothing reduces, and of those that something does."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A reduction, and the pairing of two operands that it alone reads, by their nodes."""

    reduction: int
    pairing: int


def variants(graph: Graph) -> Iterator[Graph]:
    """``graph`` itself, then its variants for a GPU, each once."""
    seen = {graph}
    yield graph
    for candidate in _candidates(graph):
        if candidate not in seen:
            seen.add(candidate)
            yield candidate


def _candidates(graph: Graph) -> Iterator[Graph]:
    pairs = pairs_of(graph)
    for kept, reduced in SIZES:
        made = _in_sizes(graph, kept, reduced)
        yield made
        yield in_tiles_of_readers(made)
        if pairs and kept == reduced:
            yield copied(made, pairs, DEPTHS[0])
    for depth in DEPTHS if pairs else ():
        yield copied(graph, pairs, depth)
    plain = without_copies(graph)
    pairs = pairs_of(plain)
    alone = [pair for pair in pairs if not is_staged(plain, pair.reduction)]
    for depth, tiles in product(DEPTHS, TILES) if alone else ():
        made = plain
        for pair in alone:
            made = tiled(made, pair, tiles)
        yield copied(made, pairs, depth)


def _in_sizes(graph: Graph, kept: int, reduced: int) -> Graph:
    """``graph`` with tiles of ``reduced`` along what some reduction is over, else of ``kept``, wherever it has any."""
    over = reduced_axes(graph)
    return retiled(graph, lambda axis: reduced if axis in over else kept)


def pairs_of(graph: Graph) -> list[Pair]:
    """The reductions of ``graph`` that read a pairing of two operands, which nothing else reads."""
    found: list[Pair] = []
    for n, node in enumerate(graph.nodes):
        source = node.operands[0]
        if not node.expr.reduced or not isinstance(source, Value) or len(graph.readers(source.node)) != 1:
            continue
        below = graph.nodes[source.node]
        accesses = [o for o in below.expr.operands if isinstance(o, Access)]
        plain = all(len(set(access.axes)) == len(access.axes) for access in accesses)
        whole = isinstance(node.expr.operands[0], Access) and sorted(node.expr.operands[0].axes) == sorted(
            node.expr.axes
        )
        if not below.expr.reduced and len(accesses) == 2 and plain and whole:
            found.append(Pair(n, source.node))
    return found


def is_staged(graph: Graph, node: int) -> bool:
    """Whether a reader computes ``node`` inside its own loops."""
    return any(Stage(k) in graph.nodes[reader].expr.order for reader, k in graph.readers(node))


def names_of(graph: Graph, pair: Pair) -> dict[str, str]:
    """The pairing's names of the reduction's axes."""
    read = graph.nodes[pair.reduction].expr.operands[0]
    assert isinstance(read, Access), "a reduction reads a value"
    return dict(zip(read.axes, graph.nodes[pair.pairing].expr.output, strict=True))


def tiled(graph: Graph, pair: Pair, tiles: tuple[int, int]) -> Graph:
    """Both expressions in tiles of the result's last two axes, the reduction between tile and element loops."""
    reduction = graph.nodes[pair.reduction].expr
    names = names_of(graph, pair)
    output = reduction.output
    last = output[-2:]
    sizes = dict(zip(last, tiles[len(tiles) - len(last) :], strict=True))
    outer = [Loop(axis) for axis in output + reduction.reduced]
    inner = [Loop(axis, 1) for axis in output if axis in sizes]
    splits = tuple((axis, (size,)) for axis, size in sizes.items())
    made = replace(reduction, splits=splits, order=(*outer, *inner, Stage(0)))
    pairing = graph.nodes[pair.pairing].expr
    below = replace(
        pairing,
        splits=tuple((names[axis], factors) for axis, factors in splits),
        order=tuple(Loop(names[loop.axis], loop.level) for loop in (*outer, *inner)),
    )
    return with_expr(with_expr(graph, pair.reduction, made), pair.pairing, below)


def copied(graph: Graph, pairs: Sequence[Pair], depth: int, as_in_memory: bool = False) -> Graph:
    """Copies of every operand in memory, in tiles of ``depth`` along reduced axes that have none.

    Copies have the reduced axes first, unless they are to be ``as_in_memory``.
    """
    for pair in pairs:
        names = names_of(graph, pair)
        reduction = graph.nodes[pair.reduction].expr
        for axis in reduction.reduced:
            if not reduction.factors[axis]:
                graph = with_expr(graph, pair.reduction, _split(graph.nodes[pair.reduction].expr, axis, depth))
                graph = with_expr(graph, pair.pairing, _split(graph.nodes[pair.pairing].expr, names[axis], depth))
        reduced = "" if as_in_memory else "".join(names[axis] for axis in reduction.reduced)
        for k, source in enumerate(graph.nodes[pair.pairing].operands):
            if isinstance(source, Input):
                graph = _with_copy(graph, pair.pairing, k, reduced)
    return graph


def _split(expr: Expr, axis: str, depth: int) -> Expr:
    """``expr`` with an axis in tiles, its two loops where the one was."""
    order: list[OrderItem] = []
    for item in expr.sequence:
        order += [Loop(axis), Loop(axis, 1)] if item == Loop(axis) else [item]
    return replace(expr, splits=tuple(sorted((*expr.splits, (axis, (depth,))))), order=tuple(order))


def _with_copy(graph: Graph, reader: int, operand: int, reduced: str) -> Graph:
    """``graph`` with a copy of an input staged where the loops over its tiles end; itself where that is too deep."""
    node = graph.nodes[reader]
    access = node.expr.operands[operand]
    assert isinstance(access, Access), "an input is read at axes"
    order = list(node.expr.sequence)
    tiles = [
        n for n, item in enumerate(order) if isinstance(item, Loop) and item.level == 0 and item.axis in access.axes
    ]
    site = max(tiles, default=-1) + 1
    split = [axis for axis in access.axes if node.expr.factors[axis]]
    deep = any(isinstance(item, Loop) and item.level for item in order[:site])
    if deep or len(split) < 2:
        return graph
    axes = "".join(sorted(access.axes, key=lambda axis: axis not in reduced))
    loops = [item for item in order if isinstance(item, Loop) and item.axis in axes]
    # the copy runs over its own tile in the order that its reader's loops have it
    copy = Expr("add", (access,), axes, tuple(s for s in node.expr.splits if s[0] in axes), tuple(loops))
    operands = (*node.operands[:operand], Value(len(graph.nodes)), *node.operands[operand + 1 :])
    accesses = (*node.expr.operands[:operand], Access(axes), *node.expr.operands[operand + 1 :])
    order.insert(site, Stage(operand))
    made = Node(replace(node.expr, operands=accesses, order=tuple(order)), operands)
    nodes = (*graph.nodes[:reader], made, *graph.nodes[reader + 1 :], Node(copy, (node.operands[operand],)))
    return replace(graph, nodes=nodes)
