"""The loops of one expression in numbers: how often they run, what they cover, what has to be fetched.

Rows are candidate loops; every figure is an array of rows by tile choices. Traffic is counted by footprints: what an
operand covers is fetched into a level of the memory again for every iteration of the loops outside it, unless it stays
in that level meanwhile. The innermost loop, or the innermost loops of constant length if they are few vectors, is one
*unit* of straight code, between whose runs registers keep nothing but accumulators.

Invariants:
  * a row's loops are its nest, padded with loops of one iteration, then every axis once more: the element loops
  * a reduction's tile with too many accumulators is cut into register blocks, with loops over them in the nest
  * an axis outside the nest has its whole extent in its element loop, and that length is no constant
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ilang_eq.extract.blocking import depth, tile_axes
from ilang_eq.extract.footprint import ELEMENT_BYTES, PAGE
from ilang_eq.extract.machine import Machine
from ilang_eq.extract.micro_kernel import micro_kernel
from ilang_eq.extract.pages import translations
from ilang_eq.extract.streams import gained, rows_in_turn
from ilang_eq.rewrites.space import AxisId, Nest

Costs = NDArray[np.float64]
Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Order = tuple[AxisId, ...]
_T = TypeVar("_T", bound=np.generic)

LINE_ELEMENTS = 16

_SHARE = 0.5
"""The part of a cache that one operand's tile may fill."""

_SHARED = 0.6
"""The same of a cache that cores share, of which a thread has its part: half of the 30 MB of Zen 4's would not hold a
factor of 2048², which threw out the packed panels of 64×2048×2048 (1.16 of the time)."""

_UNIT_VECTORS = 64
"""The most vector operations in a unit (``c/registers.py``)."""


@dataclass(frozen=True)
class Processor:
    """A machine, with how many threads of it run."""

    machine: Machine
    threads: int

    def bandwidth(self, level: int) -> float:
        """Bytes per nanosecond out of ``level`` to each thread."""
        found = self.machine.levels[level]
        return min(found.bandwidth, found.bandwidth_all / self.threads)

    @property
    def slot(self) -> float:
        """Nanoseconds to issue an instruction."""
        return 1 / (self.machine.issue_width * self.machine.clock_ghz)

    @cached_property
    def capacities(self) -> Costs:
        """(levels, 1, 1, 1): bytes that one operand's tile may take in each level but the last."""
        caches = self.machine.levels[:-1]
        found = [_SHARED * level.bytes / self.threads if level.shared else _SHARE * level.bytes for level in caches]
        return np.array(found)[:, None, None, None]

    @cached_property
    def bandwidths(self) -> Costs:
        """(levels, 1, 1): ``bandwidth`` out of each level but the first."""
        return np.array([self.bandwidth(n) for n in range(1, len(self.machine.levels))])[:, None, None]


@dataclass(frozen=True, slots=True)
class Knobs:
    """Extents, and at each of G points a tile size, of every axis."""

    extents: Mapping[AxisId, int]
    tiles: Mapping[AxisId, Costs]

    @property
    def points(self) -> int:
        """G."""
        return max((len(t) for t in self.tiles.values()), default=1)


@dataclass(frozen=True)
class Rows:
    """Candidate loops of an expression over ``loops``, some ``reduced``: nests with orders of the element loops."""

    loops: tuple[AxisId, ...]
    orders: tuple[tuple[Nest, Order], ...]
    reduced: frozenset[AxisId] = frozenset()
    _among: dict[frozenset[AxisId], Mask] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def width(self) -> int:
        """The longest nest."""
        return max((len(nest) for nest, _ in self.orders), default=0)

    @cached_property
    def _pairs(self) -> tuple[tuple[AxisId, AxisId] | None, ...]:
        """For every row, the axes whose element loops are cut into register blocks."""
        return tuple(tile_axes(nest, order, self.reduced) for nest, order in self.orders)

    @cached_property
    def _cut(self) -> tuple[tuple[AxisId, AxisId], ...]:
        return tuple(dict.fromkeys(pair for pair in self._pairs if pair is not None))

    @cached_property
    def _outer(self) -> int:
        """The loops outside the element loops, with padding."""
        return self.width + (2 if self._cut else 0)

    def _laid_out(self, nest: Sequence[int], blocks: Sequence[int], at: int, padding: int) -> list[int]:
        """The loops of a row outside its element loops."""
        found = [*nest[:at], *blocks, *nest[at:]]
        return [*found, *(padding for _ in range(self._outer - len(found)))]

    @cached_property
    def axes(self) -> Numbers:
        """(rows, loops): the axis of every loop, -1 for padding."""
        found = [
            [*self._laid_out(nest, pair or (), depth(nest, pair) if pair else 0, -1), *order]
            for (nest, order), pair in zip(self.orders, self._pairs, strict=True)
        ]
        return np.array(found, dtype=np.int64).reshape(len(self.orders), self._outer + len(self.loops))

    @cached_property
    def _kinds(self) -> Numbers:
        """(rows, loops): for each loop, where ``at`` lists how often it runs.

        Three numbers an axis, then a one, then for every pair of ``_cut`` its blocks and the elements of one.
        """
        place = {axis: 3 * n for n, axis in enumerate(self.loops)}
        one = 3 * len(self.loops)
        blocks = {pair: one + 1 + 4 * n for n, pair in enumerate(self._cut)}
        found = []
        for (nest, order), pair in zip(self.orders, self._pairs, strict=True):
            first = blocks[pair] if pair else 0
            inside = {axis: first + 2 + n for n, axis in enumerate(pair or ())}
            elements = [inside.get(a, place[a] + (1 if a in nest else 2)) for a in order]
            cut = (first, first + 1) if pair else ()
            tiles = [place[a] for a in nest]
            found.append([*self._laid_out(tiles, cut, depth(nest, pair) if pair else 0, one), *elements])
        return np.array(found, dtype=np.int64).reshape(self.axes.shape)

    @cached_property
    def innermost(self) -> Numbers:
        """The axis of each row's innermost loop, -1 if there is no loop."""
        return self.axes[:, -1] if self.loops else np.full(len(self.orders), -1, dtype=np.int64)

    @cached_property
    def constant(self) -> Mask:
        """(rows, axes): which element loops have a constant length."""
        found = [[axis in nest for axis in order] for nest, order in self.orders]
        return np.array(found, dtype=np.bool_).reshape(len(self.orders), len(self.loops))

    def among(self, axes: Sequence[AxisId]) -> Mask:
        """(rows, loops): which loops run over one of ``axes``; found out once."""
        key = frozenset(axes)
        if key not in self._among:
            self._among[key] = _members(axes, self.loops)[self.axes]
        return self._among[key]

    def along(self, axes: Sequence[AxisId]) -> Mask:
        """(rows,): whether the innermost loop runs over one of ``axes``."""
        return self.among(axes)[:, -1] if self.loops else np.zeros(len(self.orders), dtype=np.bool_)

    def at(self, knobs: Knobs, on: Processor) -> SizedRows:
        """The rows under tile choices."""
        trips: list[Costs] = []
        for axis in self.loops:
            whole = np.full(knobs.points, float(knobs.extents[axis]))
            tile = np.minimum(knobs.tiles.get(axis, whole), whole)
            trips += [np.ceil(whole / tile), tile, whole]
        trips.append(np.ones(knobs.points))
        for row, lane in self._cut:
            rows, width = trips[3 * self.loops.index(row) + 1], trips[3 * self.loops.index(lane) + 1]
            sizes = _block_sizes(rows, width, on.machine)
            trips += [rows / sizes[0], width / sizes[1], *sizes]
        counts = np.array(trips)[self._kinds]
        return SizedRows(self, counts, _products(counts), on, knobs.extents)


def _block_sizes(rows: Costs, width: Costs, machine: Machine) -> Costs:
    """(2, G): rows and elements of the micro-kernel of tiles of ``rows`` by ``width``."""
    pairs, which = np.unique(rows + 1j * width, return_inverse=True)
    found = []
    for pair in pairs.tolist():
        whole = (int(pair.real), int(pair.imag))
        found.append(micro_kernel(*whole, machine.lanes, machine.vector_registers) or whole)
    return np.array(found, dtype=np.float64).reshape(-1, 2).T[:, which]


def _members(axes: Sequence[AxisId], loops: tuple[AxisId, ...]) -> Mask:
    """A table of which axis is one of ``axes``; its last entry is for no axis."""
    found = np.zeros(max(loops, default=0) + 2, dtype=np.bool_)
    found[[axis for axis in axes if axis in loops]] = True
    return found


@dataclass(frozen=True)
class SizedRows:
    """Candidate loops under G tile choices. A *place* is between two loops, or at the ends.

    Args:
        rows: the loops.
        counts: (rows, loops, G): how often every loop runs.
        outside: (rows, places, G): iterations of all loops outside each place.
        on: the processor they run on.
        extents: of every axis.
    """

    rows: Rows
    counts: Costs
    outside: Costs
    on: Processor
    extents: Mapping[AxisId, int]
    _known: dict[Hashable, Costs] = field(default_factory=dict)

    def once(self, key: Hashable, find: Callable[[], Costs]) -> Costs:
        """What ``find`` returns, found out at the first call with ``key``; not to be changed."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = find()
        return found

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, G)."""
        return self.counts.shape[0], self.counts.shape[2]

    @cached_property
    def unit(self) -> Numbers:
        """(rows, G): the place where the unit starts."""
        loops = self.counts.shape[1]
        inside = _products(self.counts[:, loops - len(self.rows.loops) :][:, ::-1])[:, 1:]
        fits = (inside <= _UNIT_VECTORS * self.on.machine.lanes) & self.rows.constant[:, ::-1, None]
        length = np.logical_and.accumulate(fits, axis=1).sum(axis=1)
        return loops - np.minimum(np.maximum(length, 1), loops)

    @cached_property
    def _grid(self) -> tuple[Numbers, Numbers]:
        return np.arange(self.shape[0])[:, None], np.arange(self.shape[1])

    def at(self, values: NDArray[_T], places: Numbers) -> NDArray[_T]:
        """(rows, G): ``values`` at one place for every row and tile choice."""
        rows, points = self._grid
        return values[rows, places, points]

    @cached_property
    def runs(self) -> Costs:
        """(rows, G): how often the unit runs."""
        return self.at(self.outside, self.unit)

    @cached_property
    def entries(self) -> Costs:
        """(rows, G): how often the innermost loop is entered."""
        return self.outside[:, -2] if self.rows.loops else self.outside[:, 0]

    @cached_property
    def inner(self) -> Costs:
        """(rows, G): how long the innermost loop is."""
        return self.counts[:, -1] if self.rows.loops else self.outside[:, 0]

    @cached_property
    def vectors(self) -> Costs:
        """(rows, G): how many vectors the innermost loop takes in all."""
        return self.entries * np.ceil(self.inner / self.on.machine.lanes)

    def covered(self, axes: Sequence[AxisId]) -> Costs:
        """(rows, places, G): elements of an operand over ``axes`` that the loops inside each place cover."""
        key = ("covered", frozenset(axes), 0)
        if key not in self._known:
            runs = np.where(self.rows.among(axes)[:, :, None], self.counts, 1.0)
            self._known[key] = _products(runs[:, ::-1])[:, ::-1]
        return self._known[key]

    def fetches(self, axes: Sequence[AxisId], site: int) -> Costs:
        """(rows, places, G): iterations outside each place, less those of the loops just outside that move nothing.

        The first ``site`` loops always move it.
        """
        key = ("fetches", frozenset(axes), site)
        if key not in self._known:
            moves = self.rows.among(axes) | (np.arange(self.counts.shape[1]) < site)
            last = np.zeros((moves.shape[0], moves.shape[1] + 1), dtype=np.int64)
            np.maximum.accumulate(np.where(moves, np.arange(1, moves.shape[1] + 1), 0), axis=1, out=last[:, 1:])
            self._known[key] = self.outside[self._grid[0], last]
        return self._known[key]

    def caching(self, axes: Sequence[AxisId], site: int, along: AxisId | None = None) -> Costs:
        """(levels, rows, G): nanoseconds to move an operand out of each level but the first: what is not further in.

        Args:
            along: the last axis of an operand that lies in memory whole: then short rows of it compete for few sets.
        """
        key = ("caching", frozenset(axes), (site, along))
        if key not in self._known:
            taken, fetched = (self.covered(axes) * waste * ELEMENT_BYTES for waste in self._line_waste(along))
            moved = fetched * self.fetches(axes, site)
            overflows = (taken > self.on.capacities * self._usable(along))[:, :, site:]
            place = overflows.sum(axis=2) + site
            rows, points = self._grid
            self._known[key] = np.where(overflows[:, :, 0], moved[rows, place, points] / self.on.bandwidths, 0.0)
        return self._known[key]

    def walks(self, axes: Sequence[AxisId], site: int, row: Sequence[AxisId]) -> Costs:
        """(rows, G): nanoseconds to find the addresses of an operand's pages, where its rows have gaps between them.

        Args:
            row: the last axes of an operand that lies in memory whole, of which short ones are a row together; none of
                any other.
        """
        row, length = self._row(row)
        if not row or row[-1] not in self.rows.loops or length * ELEMENT_BYTES < PAGE // 2:
            return np.zeros(self.shape)
        run = self.covered(row)
        pages = self.covered(axes) / run
        total = np.zeros(self.shape)
        for entries, cost, _ in translations(self.on.machine):
            overflows = (pages > _SHARE * entries)[:, site:]
            place = overflows.sum(axis=1) + site
            apart = self.at(2 * run <= length, place)
            total += np.where(apart & overflows[:, 0], self.at(pages * self.fetches(axes, site), place) * cost, 0.0)
        return total

    def _row(self, axes: Sequence[AxisId]) -> tuple[Sequence[AxisId], int]:
        """The last of ``axes`` that make half a page or more, or all, and how many elements these have."""
        first, length = len(axes), 1
        while first and length * ELEMENT_BYTES < PAGE // 2:
            first -= 1
            length *= self.extents[axes[first]]
        return axes[first:], length

    def abreast(self, axes: Sequence[AxisId]) -> Costs:
        """(rows, G): how near the rows of an argument that a tile reads side by side come to what they gain at most."""
        tiled = self.counts.shape[1] - len(self.rows.loops)
        runs, stretch = np.ones(self.shape), np.full(self.shape, float(ELEMENT_BYTES))
        apart, stride = PAGE, ELEMENT_BYTES
        for axis in reversed(axes):
            tile = self.covered((axis,))[:, tiled]
            if stride <= PAGE:
                stretch = stretch * tile
            else:
                runs = runs * tile
                apart = stride if apart == PAGE else apart
            stride *= self.extents[axis]
        return gained(rows_in_turn(runs, apart, stretch))

    def _line_waste(self, along: AxisId | None) -> tuple[Costs, Costs]:
        """(rows, places, G), or one number: elements in the lines of an operand in memory for each that is used.

        First of those that have to stay, then of those fetched: a loop along the line shares it between iterations.
        """
        if along is None or along not in self.rows.loops:
            return np.ones(()), np.ones(())
        inside = self.covered((along,))
        run = inside.copy()
        just_outside = (self.rows.axes == along)[:, :, None]
        run[:, 1:] = np.where(just_outside, inside[:, :-1], inside[:, 1:])
        staying, fetched = (LINE_ELEMENTS / np.minimum(elements, LINE_ELEMENTS) for elements in (inside, run))
        return staying, fetched

    def _usable(self, along: AxisId | None) -> Costs:
        """(levels, rows, places, G), or one number: the part of a cache's share that rows of an operand can fall into.

        Rows that compete for few sets have these to themselves.
        """
        if along is None or along not in self.rows.loops:
            return np.ones(())
        stride = self.extents[along] * ELEMENT_BYTES
        apart = [math.gcd(stride, int(level.way_bytes)) for level in self.on.machine.levels[:-1]]
        run = np.maximum(self.covered((along,)), LINE_ELEMENTS)
        return np.minimum(1.0, run * (ELEMENT_BYTES / (np.array(apart)[:, None, None, None] * _SHARE)))

    @cached_property
    def share(self) -> Costs:
        """(rows, G): the busiest thread's part, when the outermost loop's iterations are dealt out."""
        if not self.rows.loops:
            return np.ones(self.shape)
        elements = self.counts.shape[1] - len(self.rows.loops)
        first = np.array([0 if nest else elements for nest, _ in self.rows.orders])
        count = self.counts[self._grid[0][:, 0], first]
        return np.asarray(np.ceil(count / self.on.threads) / count, dtype=np.float64)


def _products(counts: Costs) -> Costs:
    """(rows, places, G): the product of all loops before each place."""
    products = np.ones((counts.shape[0], counts.shape[1] + 1, counts.shape[2]))
    np.cumprod(counts, axis=1, out=products[:, 1:])
    return products
