"""Large spaces in pieces: each is searched by itself, and the best schedules are put together.

Elimination is exact, but its tables grow with the width of what it is given. So a large space is cut (``cuts.py``) into
pieces that are small enough. Equal pieces (the blocks of a deep model) are searched once. What is lost is fusion across
a cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ilang_eq.extract.candidate import Candidate
from ilang_eq.extract.cuts import Segment, between_products, split, without_copies
from ilang_eq.extract.elimination import TooWide
from ilang_eq.lang.graph import Graph, Input, Node, Source, Value, Wire
from ilang_eq.rewrites.space import ClassId, Space

Propose = Callable[[Space, Mapping[tuple[int, int], int]], list[Candidate]]
"""The search of one piece: its space, and the extents of its axes."""

LIMITS = (10, 6, 4)
"""Expressions of the component that a piece may have, without pointwise ones that one other reads; the next where it
turns out too wide for elimination."""


def propose_in_segments(
    space: Space,
    extents: Mapping[tuple[int, int], int],
    k: int,
    propose: Propose,
    limits: tuple[int, ...] = LIMITS,
) -> list[Candidate]:
    """The best schedules of ``space`` in pieces of at most ``limits[0]`` decisive expressions, cheapest first.

    The first takes the best of every piece; each of the others the next best of one. Empty if a piece has none, or
    is too wide at every limit.
    """
    limit, *smaller = limits
    sizes = [extents[dimension] for dimension in space.extents]
    return _propose_pieces(split(space, sizes, limit), k, propose, tuple(smaller))


def propose_between_products(
    space: Space, extents: Mapping[tuple[int, int], int], k: int, propose: Propose
) -> list[Candidate]:
    """The best schedules of ``space`` cut before its sums of products, cheapest first; none if there is nothing to cut.

    What a product reads is put in memory where it is no larger than the arguments: then each product can run in the
    loops that suit it best, where fusion would dictate those of another.
    """
    sizes = [extents[dimension] for dimension in space.extents]
    pieces = between_products(space, sizes)
    return _propose_pieces(pieces, k, propose, LIMITS[1:]) if pieces else []


def _propose_pieces(pieces: Sequence[Segment], k: int, propose: Propose, smaller: tuple[int, ...]) -> list[Candidate]:
    """The best schedules of all ``pieces``; a piece too wide for elimination is cut by the limits ``smaller``."""
    known: list[tuple[Segment, list[Candidate]]] = []
    found: list[list[Candidate]] = []
    for piece in pieces:
        equal = (c for other, c in known if other.space == piece.space and other.extents == piece.extents)
        candidates = next(equal, None)
        if candidates is None:
            candidates = _searched(piece, propose)
            if candidates is None:
                candidates = propose_in_segments(piece.space, piece.extents, k, propose, smaller) if smaller else []
            known.append((piece, candidates))
        if not candidates:
            return []
        found.append(candidates)
    best = [candidates[0] for candidates in found]
    changes = sorted(
        (candidate.cost - best[s].cost, s, n)
        for s, candidates in enumerate(found)
        for n, candidate in enumerate(candidates)
        if n > 0
    )
    choices = [best, *([*best[:s], found[s][n], *best[s + 1 :]] for _, s, n in changes[: k - 1])]
    return [_stitched(pieces, choice) for choice in choices]


def _searched(piece: Segment, propose: Propose) -> list[Candidate] | None:
    """The schedules of one piece; None if it is too wide even without packing."""
    for space in (piece.space, without_copies(piece.space)):
        try:
            return propose(space, piece.extents)
        except TooWide:
            continue
    return None


def _stitched(pieces: Sequence[Segment], choice: Sequence[Candidate]) -> Candidate:
    """One graph from the chosen graphs of all pieces, less what no output needs in the end."""
    nodes: list[Node] = []
    made: dict[ClassId, Source] = {}
    outputs: tuple[Source, ...] = ()
    for piece, candidate in zip(pieces, choice, strict=True):
        first = len(nodes)
        inputs = [source if isinstance(source, Input) else made[source] for source in piece.sources]

        def moved(source: Source, first: int = first, inputs: Sequence[Source] = inputs) -> Source:
            match source:
                case Input(index):
                    return inputs[index]
                case Value():
                    return Value(source.node + first)
                case _:
                    return source

        nodes += [replace(node, operands=tuple(map(moved, node.operands))) for node in candidate.graph.nodes]
        outputs = tuple(map(moved, candidate.graph.outputs))
        if piece.result is not None:
            made[piece.result] = outputs[0]
    wires = tuple(wire for wire in outputs if isinstance(wire, Input | Value))
    return Candidate(_live(nodes, wires), sum(c.cost for c in choice), {}, any(c.unusual for c in choice))


def _live(nodes: Sequence[Node], outputs: tuple[Wire, ...]) -> Graph:
    needed: set[int] = set()
    stack = [wire.node for wire in outputs if isinstance(wire, Value)]
    while stack:
        n = stack.pop()
        if n not in needed:
            needed.add(n)
            stack.extend(s.node for s in nodes[n].operands if isinstance(s, Value))
    number = {Value(old): Value(new) for new, old in enumerate(sorted(needed))}
    kept = [nodes[n] for n in sorted(needed)]
    inputs = {s.index for node in kept for s in node.operands if isinstance(s, Input)}
    inputs |= {wire.index for wire in outputs if isinstance(wire, Input)}
    return Graph(
        1 + max(inputs, default=-1),
        tuple(replace(node, operands=tuple(_renumbered(s, number) for s in node.operands)) for node in kept),
        tuple(number[wire] if isinstance(wire, Value) else wire for wire in outputs),
    )


def _renumbered(source: Source, number: Mapping[Value, Value]) -> Source:
    return number[source] if isinstance(source, Value) else source
