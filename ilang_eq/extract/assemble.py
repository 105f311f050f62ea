"""From a choice of states to the scheduled expressions that say the same.

An axis keeps one letter throughout the component. A tile loop over axis a of T elements is the split ``a:T`` with loop
``a`` in the nest and ``a'`` among the element loops; a tile of one element is no split, and the axis's only loop is in
the nest. Where the tile is cut into blocks of B elements, it is the split ``a:T/B:B``, with a loop ``a'`` over blocks.

Invariants:
  * an intermediate is laid out in the order in which its own innermost loops write it, an output as it is returned
  * a staged operand's digit stands right after the loops it is staged under, reductions first, so that what they share
    is complete for the others; an inlined operand's digit stands last
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from ilang_eq.extract.fusions import Argument, Computed, Operand
from ilang_eq.extract.states import State
from ilang_eq.extract.structure import Structure
from ilang_eq.lang.expr import Access, Expr, Literal, Loop, OrderItem, Stage
from ilang_eq.lang.expr import Operand as Written
from ilang_eq.lang.graph import Graph, Input, Node, Source, Value, Wire
from ilang_eq.rewrites.space import Apply, AxisId, ClassId, Number, Variant

_LETTERS = "ijklmnopqrstuvwxyzabcdefgh"

Axes = tuple[AxisId, ...]

_Digits = tuple[tuple[int, int | None], ...]
"""Staged operands, each with the number of tile loops that it is staged under; None if it is inlined."""


@dataclass(frozen=True, slots=True)
class Block:
    """How a class's tile is cut: the loops over blocks stand inside ``depth`` tile loops.

    ``sizes`` are the elements of a block along the axes that are cut; they divide the tiles.
    """

    depth: int
    sizes: Mapping[AxisId, int]


UNCUT = Block(0, {})


@dataclass(frozen=True, slots=True)
class Schedule:
    """A choice of extraction.

    Args:
        states: the state of every class that is computed.
        sites: for every (reader, class read), inside how many of the reader's tile loops; 0 if in memory.
        tiles: the tile size of every axis.
        blocks: of the classes whose tiles are cut once more.
    """

    states: Mapping[ClassId, State]
    sites: Mapping[tuple[ClassId, ClassId], int]
    tiles: Mapping[AxisId, int]
    blocks: Mapping[ClassId, Block] = field(default_factory=dict)


def assemble(structure: Structure, schedule: Schedule) -> Graph:
    """The dataflow graph of scheduled expressions, producers first; it has what the outputs need and nothing else."""
    builder = _Builder(structure, schedule)
    outputs = tuple(builder.output(wire, axes) for wire, axes in structure.space.outputs)
    return Graph(structure.inputs, tuple(builder.nodes), outputs)


@dataclass(frozen=True, slots=True)
class _Made:
    """A value that a node computes: its place among the nodes, and its layout."""

    node: int
    axes: Axes


@dataclass(slots=True)
class _Builder:
    structure: Structure
    schedule: Schedule
    nodes: list[Node] = field(default_factory=list)
    made: dict[ClassId, _Made] = field(default_factory=dict)

    def output(self, wire: ClassId | Input, axes: Axes) -> Wire:
        """What the component returns; another layout of something returned before is a copy."""
        if isinstance(wire, Input):
            return wire
        found = self._computed(wire)
        if found.axes == axes:
            return Value(found.node)
        names = _letters(axes)
        copy = Expr("add", (Access(_spelt(found.axes, names)),), _spelt(axes, names))
        self.nodes.append(Node(copy, (Value(found.node),)))
        return Value(len(self.nodes) - 1)

    def _computed(self, c: ClassId) -> _Made:
        """The value of a class that is materialised or staged, with all that it needs."""
        if c not in self.made:
            state = self.schedule.states[c]
            self.made[c] = self._member(state, state.root, {})
        return self.made[c]

    def _member(self, state: State, member: Variant, inlined: dict[ClassId, _Made]) -> _Made:
        """One member of ``state``'s fusion, after what it reads."""
        variants = {v.of: v for v in state.fusion.inlined}
        found: dict[ClassId, _Made] = {}
        for operand in self.structure.operands(member):
            match operand:
                case Computed(of) if of in variants:
                    if of not in inlined:
                        inlined[of] = self._member(state, variants[of], inlined)
                    found[of] = inlined[of]
                case Computed(of):
                    found[of] = self._computed(of)
                case Argument() | Number():
                    pass
                case other:
                    assert_never(other)
        made = _Made(len(self.nodes), self._layout(state, member))
        self.nodes.append(self._node(state, member, found, made.axes))
        return made

    def _layout(self, state: State, member: Variant) -> Axes:
        """The order of the dimensions that ``member`` writes."""
        if member == state.root and member.of in self.structure.layouts:
            return self.structure.layouts[member.of]
        last = {axis: place for place, (axis, _) in enumerate(self._loops(state))}
        return tuple(sorted(self.structure.axes(member.of), key=last.__getitem__))

    def _block(self, state: State) -> Block:
        return self.schedule.blocks.get(state.root.of, UNCUT)

    def _loops(self, state: State) -> list[tuple[AxisId, int]]:
        """All loops as (axis, level), from the outside in; an axis whose tiles are single elements has no inner one."""
        block = self._block(state)
        inside = [axis for axis in state.order if axis not in state.nest or self.schedule.tiles[axis] > 1]
        cut = [(axis, 1) for axis in inside if axis in block.sizes]
        elements = [(axis, (axis in state.nest) + (axis in block.sizes)) for axis in inside]
        tiles = [(axis, 0) for axis in state.nest]
        return [*tiles[: block.depth], *cut, *tiles[block.depth :], *elements]

    def _factors(self, state: State, axis: AxisId) -> tuple[int, ...]:
        tile, size = self.schedule.tiles[axis], self._block(state).sizes.get(axis)
        return (tile,) if size is None else (tile // size, size)

    def _node(self, state: State, member: Variant, found: Mapping[ClassId, _Made], layout: Axes) -> Node:
        sources = tuple(_source(operand, found) for operand in self.structure.operands(member))
        return Node(self._expr(state, member, found, layout), sources)

    def _expr(self, state: State, member: Variant, found: Mapping[ClassId, _Made], layout: Axes) -> Expr:
        """What ``member`` computes, scheduled; written once for all schedules that have it do the same."""
        block = self._block(state)
        digits = self._digits(state, member)
        tiles = tuple(self.schedule.tiles[axis] for axis in state.nest)
        read = tuple((of, made.axes) for of, made in found.items())
        cut = (block.depth, *block.sizes.items())
        key = (member, state.nest, state.order, layout, tiles, cut, digits, read)
        expr = self.structure.written.get(key)
        if expr is None:
            expr = self.structure.written[key] = self._written(state, member, found, layout, digits)
        return expr

    def _written(
        self, state: State, member: Variant, found: Mapping[ClassId, _Made], layout: Axes, digits: _Digits
    ) -> Expr:
        names = _letters(self.structure.loops(member))
        split = [axis for axis in state.nest if self.schedule.tiles[axis] > 1]
        return _plain(
            Expr(
                self.structure.node(member).op,
                tuple(_read(operand, found, names) for operand in self.structure.operands(member)),
                _spelt(layout, names),
                tuple((names[axis], self._factors(state, axis)) for axis in sorted(split)),
                self._order(state, names, digits),
            )
        )

    def _order(self, state: State, names: Mapping[AxisId, str], digits: _Digits) -> tuple[OrderItem, ...]:
        """The loops, with every staged operand's digit after those it is staged under."""
        items: list[OrderItem] = []
        depth = 0
        for axis, level in self._loops(state):
            items.append(Loop(names[axis], level))
            if level == 0 and axis in state.nest:
                depth += 1
                items.extend(Stage(k) for k, site in digits if site == depth)
        items.extend(Stage(k) for k, site in digits if site is None)
        return tuple(items)

    def _digits(self, state: State, member: Variant) -> _Digits:
        """Operands with the number of tile loops that they are staged under, None if inlined; reductions first."""
        inlined = {v.of for v in state.fusion.inlined}
        found: list[tuple[bool, int, int | None]] = []
        for k, operand in enumerate(self.structure.operands(member)):
            if isinstance(operand, Computed) and operand.of in inlined:
                found.append((True, k, None))
            elif isinstance(operand, Computed) and self.schedule.sites[state.root.of, operand.of]:
                producer = self.structure.node(self.schedule.states[operand.of].root)
                found.append((isinstance(producer, Apply), k, self.schedule.sites[state.root.of, operand.of]))
        return tuple((k, site) for _, k, site in sorted(found, key=lambda digit: digit[:2]))


def _read(operand: Operand, found: Mapping[ClassId, _Made], names: Mapping[AxisId, str]) -> Written:
    """An operand as it is written."""
    match operand:
        case Argument(_, axes):
            return Access(_spelt(axes, names))
        case Number(value):
            return Literal(value)
        case Computed(of):
            return Access(_spelt(operand.names(found[of].axes), names))
        case other:
            assert_never(other)


def _source(operand: Operand, found: Mapping[ClassId, _Made]) -> Source:
    """Where an operand comes from."""
    match operand:
        case Argument(index):
            return Input(index)
        case Number(value):
            return Literal(value)
        case Computed(of):
            return Value(found[of].node)
        case other:
            assert_never(other)


def _letters(axes: Axes) -> dict[AxisId, str]:
    """A letter for every axis: its own, or one that is free where an axis's number is beyond the alphabet."""
    own = {axis: _LETTERS[axis] for axis in axes if axis < len(_LETTERS)}
    free = (letter for letter in _LETTERS if letter not in own.values())
    return own | {axis: next(free) for axis in axes if axis not in own}


def _spelt(axes: Axes, names: Mapping[AxisId, str]) -> str:
    return "".join(names[axis] for axis in axes)


def _plain(expr: Expr) -> Expr:
    """``expr``, its order left out if it is the default."""
    default = tuple(Loop(axis, level) for axis in expr.axes for level in range(len(expr.factors[axis]) + 1))
    return replace(expr, order=()) if expr.order == default else expr
