"""From positions to named axes: every axis of a whole graph gets one number, wherever it flows.

An axis flows from an operand's dimension to the axis that reads it. Numbers follow the dataflow from the outputs, so
renaming the axis letters of an expression changes nothing. Where one numbering cannot serve every reader of an array
(a value read at ``ik`` and at ``jk`` by expressions that have both i and j, or at a diagonal), later readers get one of
their own: a separate ``Read`` of an input, a ``View`` of a value.

Invariants of ``Terms``:
  * operands are positions of earlier nodes; equal nodes appear once
  * distinct axes of one expression have distinct numbers, and axes are numbered from 0 without gaps
"""

from __future__ import annotations

from dataclasses import dataclass

from ilang_eq.lang.expr import Access, Literal
from ilang_eq.lang.graph import Graph, Input, Value, Wire
from ilang_eq.lang.shapes import infer
from ilang_eq.rewrites.space import Apply, AxisId, ENode, Number, Read, Reduce, View

Owner = tuple[str, int, int]
"""Whose dimensions are being named: ("node", n, 0), or naming g of ("input", k, g) or of value ("view", n, g)."""

Place = tuple[Owner, str | int]
"""An axis letter of a node, or a dimension of a naming."""


@dataclass(frozen=True, slots=True)
class Terms:
    """A graph over named axes. ``extents[a]`` is the (input, dimension) that axis a runs over."""

    nodes: tuple[ENode, ...]
    outputs: tuple[tuple[int | Input, tuple[AxisId, ...]], ...]
    extents: tuple[tuple[int, int], ...]


def name_axes(graph: Graph) -> Terms:
    """The graph's live expressions over named axes.

    Raises:
        ShapeError: ranks that contradict each other.
    """
    shapes = infer(graph)
    ties, views = _tie(graph)
    live, names = _number(graph, ties)
    builder = _Builder(graph, names, views)
    for n in graph.order():
        if n in live:
            builder.add(n)
    outputs = tuple((builder.output(wire), _wire_axes(graph, names, wire)) for wire in graph.outputs)
    first = {axis: place for place, axis in reversed(names.items())}
    extents = tuple(shapes.extent(*first[axis]) for axis in range(len(first)))
    return Terms(builder.nodes, outputs, extents)


class _Ties:
    """Union-find over places, in which no two places of one owner ever meet."""

    def __init__(self) -> None:
        self._parents: dict[Place, Place] = {}
        self._members: dict[Place, dict[Owner, str | int]] = {}

    def root(self, place: Place) -> Place:
        if place not in self._parents:
            self._parents[place] = place
            self._members[place] = {place[0]: place[1]}
        while self._parents[place] != place:
            self._parents[place] = self._parents[self._parents[place]]
            place = self._parents[place]
        return place

    def tie(self, pairs: list[tuple[Place, Place]]) -> bool:
        """Join every pair, or none if that would make two places of one owner the same."""
        leaders: dict[Place, Place] = {}
        joined: dict[Place, dict[Owner, str | int]] = {}

        def leader(place: Place) -> Place:
            place = self.root(place)
            while place in leaders:
                place = leaders[place]
            return place

        for a, b in pairs:
            first, second = leader(a), leader(b)
            if first != second:
                one = joined.get(first) or self._members[first]
                two = joined.get(second) or self._members[second]
                if any(one.get(owner, name) != name for owner, name in two.items()):
                    return False
                leaders[second] = first
                joined[first] = one | two
        for loser, winner in leaders.items():
            self._parents[loser] = winner
            del self._members[loser]
        self._members.update({root: members for root, members in joined.items() if root not in leaders})
        return True


def _tie(graph: Graph) -> tuple[_Ties, frozenset[tuple[int, int]]]:
    """Every axis tied to the dimensions it reads, and the (node, operand) reads of values that need a ``View``.

    Values come before inputs: a second naming of an input is free, one of a value costs a copy.
    """
    ties = _Ties()
    views: list[tuple[int, int]] = []
    namings: dict[tuple[str, int], int] = {}
    reads = [(n, k) for n in graph.order() for k in range(len(graph.nodes[n].operands))]
    for n, k in reads:
        match graph.nodes[n].operands[k], graph.nodes[n].expr.operands[k]:
            case Value(producer), Access(axes):
                made = [(("node", producer, 0), letter) for letter in graph.nodes[producer].expr.output]
                if not ties.tie([(place, (("node", n, 0), a)) for place, a in zip(made, axes, strict=True)]):
                    views.append((n, k))
                    _tie_naming(ties, namings, ("view", producer), n, axes)
            case _:
                pass
    for n, k in reads:
        match graph.nodes[n].operands[k], graph.nodes[n].expr.operands[k]:
            case Input(index), Access(axes):
                _tie_naming(ties, namings, ("input", index), n, axes)
            case _:
                pass
    return ties, frozenset(views)


def _tie_naming(ties: _Ties, namings: dict[tuple[str, int], int], array: tuple[str, int], node: int, axes: str) -> None:
    """Tie a read to the first naming of the array that it fits, or to a new one; a diagonal fits none."""
    for g in range(namings.get(array, 0) + 1):
        if ties.tie([(((*array, g), d), (("node", node, 0), axis)) for d, axis in enumerate(axes)]):
            namings[array] = max(namings.get(array, 0), g + 1)
            return


_Names = dict[tuple[int, str], AxisId]
"""The number of each axis letter of each live node."""


def _number(graph: Graph, ties: _Ties) -> tuple[frozenset[int], _Names]:
    """The nodes that the outputs need, and their axes numbered by first visit from the outputs."""
    numbers: dict[Place, AxisId] = {}
    names: _Names = {}
    live: set[int] = set()
    stack = [wire.node for wire in reversed(graph.outputs) if isinstance(wire, Value)]
    while stack:
        n = stack.pop()
        if n not in live:
            live.add(n)
            node = graph.nodes[n]
            for letter in node.expr.axes:
                names[n, letter] = numbers.setdefault(ties.root((("node", n, 0), letter)), len(numbers))
            stack.extend(source.node for source in reversed(node.operands) if isinstance(source, Value))
    return frozenset(live), names


def _wire_axes(graph: Graph, names: _Names, wire: Wire) -> tuple[AxisId, ...]:
    """A wire's dimensions; none for an input that is passed through, whose rank nothing says."""
    return tuple(names[wire.node, a] for a in graph.nodes[wire.node].expr.output) if isinstance(wire, Value) else ()


class _Builder:
    """Nodes as terms, equal ones shared. Producers must be added before their readers."""

    def __init__(self, graph: Graph, names: _Names, views: frozenset[tuple[int, int]]) -> None:
        self._graph = graph
        self._names = names
        self._views = views
        self._positions: dict[ENode, int] = {}
        self._values: dict[int, int] = {}

    @property
    def nodes(self) -> tuple[ENode, ...]:
        return tuple(self._positions)

    def output(self, wire: Wire) -> int | Input:
        return wire if isinstance(wire, Input) else self._values[wire.node]

    def add(self, n: int) -> None:
        node = self._graph.nodes[n]
        operands = tuple(self._operand(n, k) for k in range(len(node.operands)))
        reduced = tuple(sorted(self._names[n, letter] for letter in node.expr.reduced))
        term = Reduce(node.expr.op, reduced, operands[0]) if reduced else Apply(node.expr.op, operands)
        self._values[n] = self._position(term)

    def _operand(self, n: int, k: int) -> int:
        node = self._graph.nodes[n]
        match node.operands[k], node.expr.operands[k]:
            case Input(index), Access(letters):
                return self._position(Read(index, self._letters(n, letters)))
            case Value(producer), Access(letters):
                value = self._values[producer]
                if (n, k) not in self._views:
                    return value
                source = self._letters(producer, self._graph.nodes[producer].expr.output)
                return self._position(View(value, source, self._letters(n, letters)))
            case _, Literal(number):
                return self._position(Number(number))
            case source, operand:
                raise AssertionError(f"operand {operand} cannot read {source}")

    def _letters(self, n: int, letters: str) -> tuple[AxisId, ...]:
        return tuple(self._names[n, letter] for letter in letters)

    def _position(self, term: ENode) -> int:
        return self._positions.setdefault(term, len(self._positions))
