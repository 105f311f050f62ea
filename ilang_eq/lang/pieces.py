"""Pieces: components that remember which wire each of their inputs wants, and the ways to join them.

    x reads into f, both into g    (I & f) >> g         wires [x]
    independent operands           (f | g) >> h         f's wires, then g's
    a further input                f >> g               f's wires, then the input: the spare-input rule

Invariants of ``Piece``:
  * ``wires`` has one entry per input of ``component``; an entry may repeat
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

from ilang_eq.lang.component import Chain, Component, Fanout, I, Pair, Swap
from ilang_eq.lang.graph import Input, Wire


@dataclass(frozen=True, slots=True)
class Piece:
    """A component, what its inputs want, and how many leaves, identities and swaps it is written with."""

    component: Component
    wires: tuple[Wire, ...]
    size: int = 1

    @property
    def awkwardness(self) -> int:
        """How much text this piece costs, with what it will take to put its wires in order."""
        ranks = [w.index if isinstance(w, Input) else -1 - w.node for w in self.wires]
        repeats = len(self.wires) - len(set(self.wires))
        descents = sum(a > b for a, b in pairwise(ranks))
        return self.size + 3 * repeats + 2 * descents


def identity(wire: Wire) -> Piece:
    """A wire, passed on."""
    return Piece(I, (wire,))


def swapped(piece: Piece) -> Piece:
    """The same function with its first two inputs exchanged, written at the first stage that has both."""
    first, *rest = _stages(piece.component)
    if first.inputs < 2:
        first, rest = piece.component, []
    size = piece.size + (-2 if isinstance(first, Swap) else 2)
    toggled = first.of if isinstance(first, Swap) else Swap(first)
    return Piece(reduce(Chain, rest, toggled), piece.wires[1::-1] + piece.wires[2:], size)


def beside(parts: Sequence[Piece]) -> Piece:
    """One piece with the outputs of all parts, in order; parts that start with the same wires share them."""
    groups: list[Piece] = []
    for part in parts:
        groups = _joined(groups, part)
    return reduce(_pair, groups)


def feed(parts: Sequence[Piece], body: Piece) -> Piece:
    """``body`` with its inputs taken from the parts' outputs, in order."""
    kept = list(parts)
    seen = Counter(w for part in parts for w in part.wires)
    spare: list[Wire] = []
    while kept and kept[-1].component is I and seen[kept[-1].wires[0]] == 1:
        spare.insert(0, kept.pop().wires[0])
    if not kept:
        return Piece(body.component, tuple(spare), body.size)
    block = beside(kept)
    return Piece(_chain(block.component, body.component), (*block.wires, *spare), block.size + body.size)


def route(piece: Piece, target: tuple[Wire, ...]) -> Piece:
    """The same function, wanting each of ``target`` once and in that order; these are the wires of ``piece``."""
    if piece.wires == target:
        return piece
    block = beside([identity(w) for w in piece.wires])
    if block.wires == target:
        return Piece(_chain(block.component, piece.component), target, block.size + piece.size)
    counts = Counter(piece.wires)
    sorted_piece = _permuted(piece, tuple(w for w in target for _ in range(counts[w])))
    return feed([beside([identity(w)] * counts[w]) for w in target], sorted_piece)


def _joined(groups: list[Piece], part: Piece) -> list[Piece]:
    """``groups`` with ``part`` after them: merged into the last ones if it starts as they do."""
    if not part.wires:
        return [*groups, part]
    for start in reversed(range(len(groups))):
        if groups[start].wires[:1] != part.wires[:1]:
            continue
        wires = tuple(w for group in groups[start:] for w in group.wires)
        short, long = sorted((wires, part.wires), key=len)
        earlier = {w for group in groups[:start] for w in group.wires}
        if long[: len(short)] == short and earlier.isdisjoint(long):
            block = reduce(_pair, groups[start:])
            return [*groups[:start], Piece(Fanout(block.component, part.component), long, block.size + part.size)]
    return [*groups, part]


def _pair(a: Piece, b: Piece) -> Piece:
    return Piece(Pair(a.component, b.component), a.wires + b.wires, a.size + b.size)


def _stages(component: Component) -> list[Component]:
    """f, g, h of ``f >> g >> h``."""
    stages: list[Component] = []
    while isinstance(component, Chain):
        stages.append(component.right)
        component = component.left
    return [component, *reversed(stages)]


def _chain(first: Component, body: Component) -> Component:
    """``first >> body``, without parentheses where (f >> g) >> h = f >> (g >> h): f feeds no more than g takes."""
    stages = _stages(body)
    if first.outputs > stages[0].inputs:
        return Chain(first, body)
    return reduce(Chain, stages, first)


def _permuted(piece: Piece, goal: tuple[Wire, ...]) -> Piece:
    """``piece`` with its wires in the order of ``goal``: odd-even transposition sort, a layer of ``~`` a round."""
    places: dict[Wire, list[int]] = {}
    for place, wire in reversed(list(enumerate(goal))):
        places.setdefault(wire, []).append(place)
    ranks = [places[wire].pop() for wire in piece.wires]
    parity = 0
    while ranks != sorted(ranks):
        swaps = [k for k in range(parity, len(ranks) - 1, 2) if ranks[k] > ranks[k + 1]]
        piece = _transposed(piece, swaps)
        for k in swaps:
            ranks[k], ranks[k + 1] = ranks[k + 1], ranks[k]
        parity = 1 - parity
    return piece


def _transposed(piece: Piece, swaps: Sequence[int]) -> Piece:
    """``piece`` with wires k and k + 1 exchanged for each k in ``swaps``."""
    if not swaps:
        return piece
    if swaps == [0]:
        return swapped(piece)
    layer: list[Component] = []
    wires = list(piece.wires)
    for k in swaps:
        layer.extend([I] * (k - sum(part.inputs for part in layer)))
        layer.append(Swap(Pair(I, I)))
        wires[k], wires[k + 1] = wires[k + 1], wires[k]
    size = sum(2 * part.inputs for part in layer)
    return Piece(_chain(reduce(Pair, layer), piece.component), tuple(wires), size + piece.size)
