"""Dataflow back to components a person would write: ``wire(unwire(g))`` is g up to the numbering of its nodes.

A value with one reader is written where it is read. One with several is written once, in front of the expression at
which its readers' paths meet again: everything between is a component that takes it as an input. So pieces are built
from the inputs up, producers before readers. A few with different wire orders are kept for each node, because which
one needs the least permuting shows only later.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TypeAlias

from ilang_eq.errors import WiringError
from ilang_eq.lang.component import Component, Leaf
from ilang_eq.lang.graph import Graph, Input, Source, Value, Wire
from ilang_eq.lang.pieces import Piece, beside, feed, identity, route, swapped

_ROOT = -1
"""The reader of the graph's outputs."""

_KEPT = 4
"""Pieces kept for one node."""

_TRIED = 16
"""Combinations of operands' pieces tried for one node; beyond, only the best of each."""

_Choices: TypeAlias = Sequence[Piece]


def unwire(graph: Graph) -> Component:
    """A component that wires to ``graph``, nodes renumbered from left to right in its text.

    Raises:
        WiringError: nothing reads one of the inputs or nodes, which no component can express.
    """
    readers = _readers(graph)
    shared = _shared(graph, readers)
    pieces: dict[int, _Choices] = {}

    def supply(sources: Iterable[Source]) -> list[_Choices]:
        return [_supplied(s, pieces, readers) for s in sources if isinstance(s, Input | Value)]

    for n in graph.order():
        node = graph.nodes[n]
        found = _applied(Leaf(node.expr), supply(node.operands))
        pieces[n] = _bind(found, {v: pieces[v.node] for v in shared.get(n, ())})
    found = [beside(parts) for parts in _combinations(supply(graph.outputs))]
    whole = _bind(found, {v: pieces[v.node] for v in shared.get(_ROOT, ())})
    inputs = tuple(map(Input, range(graph.inputs)))
    ordered = [piece for piece in whole if piece.wires == inputs] or [route(piece, inputs) for piece in whole]
    return min(ordered, key=lambda piece: piece.size).component


def _readers(graph: Graph) -> Mapping[Wire, Sequence[int]]:
    """The nodes, or the root, that read each wire, once a read."""
    readers: dict[Wire, list[int]] = {Input(k): [] for k in range(graph.inputs)}
    readers |= {Value(n): [] for n in range(len(graph.nodes))}
    for n, node in enumerate(graph.nodes):
        for source in node.operands:
            if isinstance(source, Input | Value):
                readers[source].append(n)
    for wire in graph.outputs:
        readers[wire].append(_ROOT)
    for wire, found in readers.items():
        if not found:
            name = f"input {wire.index}" if isinstance(wire, Input) else str(graph.nodes[wire.node].expr)
            raise WiringError(f"nothing reads {name}", expected="every input and value read or returned")
    return readers


def _shared(graph: Graph, readers: Mapping[Wire, Sequence[int]]) -> dict[int, list[Value]]:
    """For each node, the values with several reads whose readers' paths meet there (its post-dominance frontier).

    Immediate post-dominators by intersection, as in Cooper, Harvey and Kennedy, "A simple, fast dominance
    algorithm" (2001); one pass, because the graph is acyclic.
    """
    parent: dict[int, int] = {}
    depth = {_ROOT: 0}
    found: dict[int, list[Value]] = {}
    for n in reversed(graph.order()):
        meet, *others = readers[Value(n)]
        for other in others:
            while meet != other:
                if depth[meet] >= depth[other]:
                    meet = parent[meet]
                else:
                    other = parent[other]
        parent[n], depth[n] = meet, depth[meet] + 1
        if others:
            found.setdefault(meet, []).append(Value(n))
    return found


def _supplied(wire: Wire, pieces: Mapping[int, _Choices], readers: Mapping[Wire, Sequence[int]]) -> _Choices:
    """The ways to write one operand: in place if nobody else reads it."""
    if isinstance(wire, Value) and len(readers[wire]) == 1:
        return pieces[wire.node]
    return [identity(wire)]


def _applied(leaf: Leaf, operands: Sequence[_Choices]) -> Iterator[Piece]:
    """A leaf fed its operands, in either order if there are two."""
    wires = tuple(Input(k) for k in range(leaf.inputs))
    straight = Piece(leaf, wires)
    for parts in _combinations(operands):
        yield feed(parts, straight)
        if len(parts) == 2:
            yield feed(parts[::-1], swapped(straight))


def _bind(found: Iterable[Piece], values: Mapping[Value, _Choices]) -> _Choices:
    """Write the shared ``values`` in front of the pieces that read them, readers before what they read."""
    pieces = _best(found)
    pending = dict(values)
    while pending:
        needed = {w for choices in pending.values() for w in choices[0].wires}
        ready = {v: choices for v, choices in pending.items() if v not in needed}
        pieces = _best(whole for piece in pieces for whole in _fed_once(piece, ready))
        pending = {v: choices for v, choices in pending.items() if v in needed}
    return pieces


def _fed_once(piece: Piece, values: Mapping[Value, _Choices]) -> Iterator[Piece]:
    """``piece`` with each of ``values`` computed in front of it."""
    if any(piece.wires.count(v) > 1 for v in values):
        piece = route(piece, tuple(dict.fromkeys(piece.wires)))
    choices = [values[w] if isinstance(w, Value) and w in values else [identity(w)] for w in piece.wires]
    for parts in _combinations(choices):
        yield feed(parts, piece)


def _combinations(choices: Sequence[_Choices]) -> Iterator[tuple[Piece, ...]]:
    """One piece for each operand, in all ways if they are few."""
    few = math.prod(map(len, choices)) <= _TRIED
    return product(*(choices if few else [options[:1] for options in choices]))


def _best(found: Iterable[Piece]) -> _Choices:
    """The least awkward pieces with different wires, at most ``_KEPT``."""
    best: dict[tuple[Wire, ...], Piece] = {}
    for piece in found:
        known = best.get(piece.wires)
        if known is None or piece.size < known.size:
            best[piece.wires] = piece
    return sorted(best.values(), key=lambda piece: piece.awkwardness)[:_KEPT]
