"""What one expression costs on a machine, in closed form: the terms that the additive model sums.

Rows are candidate loops of one expression; every cost is an array of rows by tile choices, in nanoseconds of one
thread. Traffic is counted by footprints: what an operand covers is fetched into a level of the memory again for every
iteration of the loops outside it, unless it stays in that level meanwhile. Registers are such a level, too: the
innermost loop, or the innermost loops of constant length if they are few vectors, is one *unit* of straight code.

Invariants:
  * a row's loops are its nest, padded with loops of one iteration, then every axis once more: the element loops
  * an axis outside the nest has its whole extent in its element loop, and that length is no constant
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ilang_eq.extract.machine import Machine
from ilang_eq.rewrites.space import AxisId, Nest

Costs = NDArray[np.float64]
Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Order = tuple[AxisId, ...]

_T = TypeVar("_T", bound=np.generic)

_ELEMENT_BYTES = 4

_SHARE = 0.5
"""The part of a cache that one operand's tile may fill."""

_UNIT_VECTORS = 64
"""The most vector operations in a unit (``c/registers.py``)."""

_STRIP = 64
"""Elements that an innermost reduction takes at a time, each vector of them with an accumulator of its own."""

_SCRATCH = 4
"""Vector registers that are not free to hold accumulators."""

_LOOP_SLOTS = 2.0
"""Instructions to step and test a loop."""

_ENTRY_CYCLES = 4.0
"""Setting up a loop, and an exit that is predicted wrong now and then."""

_FOLD_CYCLES = 2.0
"""One halving of a vector of partial results."""

_SPILL_SLOTS = 4.0
"""Instructions for an accumulator that goes to memory and back."""

_GATHER_SLOTS = 4.0
"""Instructions for each element that a vector collects from places that are not neighbours."""

_RATES = {
    "add": "add",
    "sub": "add",
    "mul": "mul",
    "div": "div",
    "max": "max",
    "min": "max",
    "pow": "pow",
    "log": "pow",
}
"""The rate of each op's binary form; the others compare."""

_UNARY_RATES = {"pow": "exp", "log": "ln"}


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
    """Candidate loops of an expression over ``loops``: nests with orders of the element loops."""

    loops: tuple[AxisId, ...]
    orders: tuple[tuple[Nest, Order], ...]

    @cached_property
    def width(self) -> int:
        """The longest nest."""
        return max((len(nest) for nest, _ in self.orders), default=0)

    @cached_property
    def axes(self) -> Numbers:
        """(rows, loops): the axis of every loop, -1 for padding."""
        padded = [(*nest, *(-1,) * (self.width - len(nest)), *order) for nest, order in self.orders]
        return np.array(padded, dtype=np.int64).reshape(len(self.orders), self.width + len(self.loops))

    @cached_property
    def _kinds(self) -> Numbers:
        """(rows, loops): for each loop, where ``at`` lists how often it runs: three numbers an axis, then a one."""
        place = {axis: n for n, axis in enumerate(self.loops)}
        padding = 3 * len(self.loops)
        found = [
            [
                *(3 * place[a] for a in nest),
                *(padding for _ in range(self.width - len(nest))),
                *(3 * place[a] + (1 if a in nest else 2) for a in order),
            ]
            for nest, order in self.orders
        ]
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
        """(rows, loops): which loops run over one of ``axes``."""
        return np.isin(self.axes, np.array(axes, dtype=np.int64))

    def at(self, knobs: Knobs) -> SizedRows:
        """The rows under tile choices."""
        trips: list[Costs] = []
        for axis in self.loops:
            whole = np.full(knobs.points, float(knobs.extents[axis]))
            tile = np.minimum(knobs.tiles.get(axis, whole), whole)
            trips += [np.ceil(whole / tile), tile, whole]
        counts = np.array([*trips, np.ones(knobs.points)])[self._kinds]
        return SizedRows(self, counts, _products(counts))


@dataclass(frozen=True, slots=True)
class SizedRows:
    """Candidate loops under G tile choices.

    Args:
        rows: the loops.
        counts: (rows, loops, G): how often every loop runs.
        outside: (rows, loops + 1, G): iterations of all loops outside each place, between loops or at the ends.
    """

    rows: Rows
    counts: Costs
    outside: Costs

    def unit(self, lanes: int) -> Numbers:
        """(rows, G): the place where the unit starts."""
        loops = self.counts.shape[1]
        inside = _products(self.counts[:, self.rows.width :][:, ::-1])[:, 1:]
        fits = (inside <= _UNIT_VECTORS * lanes) & self.rows.constant[:, ::-1, None]
        length = np.logical_and.accumulate(fits, axis=1).sum(axis=1)
        return loops - np.minimum(np.maximum(length, 1), loops)

    def covered(self, axes: Sequence[AxisId]) -> Costs:
        """(rows, places, G): elements of an operand over ``axes`` that the loops inside each place cover."""
        runs = np.where(self.rows.among(axes)[:, :, None], self.counts, 1.0)
        return _products(runs[:, ::-1])[:, ::-1]

    def fetches(self, axes: Sequence[AxisId], site: int = 0) -> Costs:
        """(rows, places, G): iterations outside each place, less those of the loops just outside that move nothing.

        The first ``site`` loops always move it.
        """
        moves = self.rows.among(axes) | (np.arange(self.counts.shape[1]) < site)
        last = np.maximum.accumulate(np.where(moves, np.arange(1, moves.shape[1] + 1), 0), axis=1)
        first = np.zeros((moves.shape[0], 1), dtype=last.dtype)
        return np.take_along_axis(self.outside, np.concatenate([first, last], axis=1)[:, :, None], axis=1)


def _products(counts: Costs) -> Costs:
    """(rows, places, G): the product of all loops before each place."""
    products = np.ones((counts.shape[0], counts.shape[1] + 1, counts.shape[2]))
    np.cumprod(counts, axis=1, out=products[:, 1:])
    return products


def _at(values: NDArray[_T], places: Numbers) -> NDArray[_T]:
    """(rows, G): ``values`` at one place for every row and tile choice."""
    return np.take_along_axis(values, places[:, None, :], axis=1)[:, 0]


@dataclass(frozen=True, slots=True)
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

    def capacity(self, level: int) -> float:
        """Bytes that one operand's tile may take in a level."""
        found = self.machine.levels[level]
        return _SHARE * found.bytes / (self.threads if found.shared else 1)


SLOTS, ARITHMETIC, FIRST_LEVEL, CHAIN, APART = range(5)
"""The resources of a core: instruction slots, arithmetic units, bytes through the first-level cache, and the wait for
accumulators, which overlap; and what does not overlap with them."""

Demand = Costs
"""(resources, rows, G): the nanoseconds that some work would take if each resource were the only limit."""


def seconds_of(demand: Demand) -> Costs:
    """(rows, G): the time of ``demand``, in nanoseconds: the scarcest resource's, and what is apart."""
    return demand[:APART].max(axis=0) + demand[APART]


def nothing(sized: SizedRows) -> Demand:
    """No demand."""
    return np.zeros((5, *sized.outside[:, 0].shape))


def computing(sized: SizedRows, rate: str, on: Processor) -> Demand:
    """Running an operation of the rate named ``rate`` at every point."""
    entries, inner = _innermost(sized)
    vectors = np.ceil(inner / on.machine.lanes)
    vector, scalar = (getattr(rates, rate) for rates in (on.machine.vector, on.machine.scalar))
    demand = nothing(sized)
    demand[SLOTS] = entries * vectors * on.slot
    demand[ARITHMETIC] = entries * np.minimum(vectors * on.machine.lanes / vector, inner / scalar)
    return demand


def looping(sized: SizedRows, on: Processor) -> Demand:
    """Stepping the loop of the unit, or the loop around it if the unit is straight code, and entering that."""
    demand = nothing(sized)
    if sized.rows.loops:
        unit = sized.unit(on.machine.lanes)
        entries, inner = _innermost(sized)
        straight = sized.rows.constant[:, -1:]
        steps = np.where(straight, _at(sized.outside, unit), entries * np.ceil(inner / on.machine.lanes))
        nearest = _at(_nearest(sized.counts > 1), np.maximum(unit - 1, 0))
        entered = np.where(straight, _at(sized.outside, np.maximum(nearest - 1, 0)), entries)
        demand[SLOTS] = steps * _LOOP_SLOTS * on.slot
        demand[APART] = entered * _ENTRY_CYCLES / on.machine.clock_ghz
    return demand


def reading(
    sized: SizedRows, axes: Sequence[AxisId], last: Sequence[AxisId | None], site: int, on: Processor
) -> Demand:
    """Fetching an operand over ``axes`` that lives inside the first ``site`` loops.

    Args:
        last: for every row, the axis along which the operand is contiguous.
    """
    unit = sized.unit(on.machine.lanes)
    within = _at(sized.covered(axes), unit)
    times = within * np.where(within > 1, _at(sized.outside, unit), _at(sized.fetches(axes, site), unit))
    demand = _moving(sized, times, axes, last, on)
    demand[APART] = _caching(sized, axes, site, on)
    return demand


def accumulating(
    sized: SizedRows, axes: Sequence[AxisId], last: Sequence[AxisId | None], site: int, on: Processor
) -> Demand:
    """Adding into a buffer over ``axes`` inside the first ``site`` loops: in registers if it stays there, or in place."""
    machine, unit = on.machine, sized.unit(on.machine.lanes)
    cycle = 1 / machine.clock_ghz
    within = _at(sized.covered(axes), unit)
    held, folds = _held(sized, axes, unit), _folds(sized, axes)
    moves = within * _at(sized.fetches(axes, site), unit)
    demand = _moving(sized, 2 * np.where(held, moves, sized.outside[:, -1]), axes, last, on)
    entries, inner = _innermost(sized)
    registers = np.where(folds, within, np.ceil(within / machine.lanes))
    chains = registers * np.where(folds, np.maximum(1.0, np.minimum(inner, _STRIP) / machine.lanes), 1.0)
    waiting = entries * np.ceil(inner / machine.lanes) / chains * machine.chain_cycles * cycle
    spilled = np.maximum(0.0, registers - (machine.vector_registers - _SCRATCH))
    folding = np.where(folds, moves * np.log2(machine.lanes) * _FOLD_CYCLES * cycle, 0.0)
    demand[SLOTS] += np.where(held, spilled * _at(sized.outside, unit) * _SPILL_SLOTS * on.slot, 0.0)
    demand[CHAIN] = np.where(held, waiting, 0.0)
    demand[APART] = np.where(held, folding, 0.0) + 2 * _caching(sized, axes, site, on)
    return demand


def _moving(
    sized: SizedRows, times: Costs, axes: Sequence[AxisId], last: Sequence[AxisId | None], on: Processor
) -> Demand:
    """Moving ``times`` elements between registers and the first-level cache."""
    innermost = sized.rows.innermost
    along = np.isin(innermost, np.array(axes, dtype=np.int64))
    contiguous = np.array([-1 if axis is None or axes.count(axis) > 1 else axis for axis in last], dtype=np.int64)
    each = np.where(along, np.where(innermost == contiguous, 1 / on.machine.lanes, _GATHER_SLOTS), 1.0)
    demand = nothing(sized)
    demand[SLOTS] = times * each[:, None] * on.slot
    demand[FIRST_LEVEL] = times * (_ELEMENT_BYTES / on.bandwidth(0))
    return demand


def _caching(sized: SizedRows, axes: Sequence[AxisId], site: int, on: Processor) -> Costs:
    """Moving an operand into the caches: into each, what is not in it already."""
    elements, fetches = sized.covered(axes), sized.fetches(axes, site)
    total = np.zeros_like(elements[:, 0])
    for level in range(len(on.machine.levels) - 1):
        fits = elements[:, site:] * _ELEMENT_BYTES <= on.capacity(level)
        place = np.argmax(fits, axis=1) + site
        moved = _at(elements, place) * _at(fetches, place)
        total += np.where(fits[:, 0], 0.0, moved * (_ELEMENT_BYTES / on.bandwidth(level + 1)))
    return total


def _folds(sized: SizedRows, axes: Sequence[AxisId]) -> Mask:
    """(rows, 1): whether the innermost loop of a reduction to ``axes`` reduces."""
    return ~np.isin(sized.rows.innermost, np.array(axes, dtype=np.int64))[:, None]


def _held(sized: SizedRows, axes: Sequence[AxisId], unit: Numbers) -> Mask:
    """(rows, G): whether a reduction's accumulators stay in registers: the unit, or the loop around it, comes back."""
    if not sized.rows.loops:
        return np.ones(unit.shape, dtype=np.bool_)
    runs = sized.counts > 1
    around = np.maximum(unit - 1, 0)
    moving = _at(_nearest(runs & sized.rows.among(axes)[:, :, None]), around)
    comes_back = (unit > 0) & (_at(_nearest(runs), around) > moving)
    return _folds(sized, axes) | (sized.rows.constant[:, -1:] & comes_back)


def _nearest(loops: Mask) -> Numbers:
    """(rows, loops, G): one more than the position of the last of ``loops`` up to each, 0 if there is none."""
    return np.maximum.accumulate(np.where(loops, np.arange(1, loops.shape[1] + 1)[:, None], 0), axis=1)


def _innermost(sized: SizedRows) -> tuple[Costs, Costs]:
    """How often the innermost loop is entered, and how long it is."""
    if not sized.rows.loops:
        return sized.outside[:, 0], sized.outside[:, 0]
    return sized.outside[:, -2], sized.counts[:, -1]


def rescaling(
    sized: SizedRows, axes: Sequence[AxisId], statistic: Sequence[AxisId], depth: int, on: Processor
) -> Costs:
    """Multiplying an accumulator over ``axes`` by a factor in every iteration of the first ``depth`` loops."""
    rates = on.machine.vector
    accumulator, factors = (sized.covered(a)[:, depth] for a in (axes, statistic))
    each = accumulator * (1 / rates.mul + 2 * _ELEMENT_BYTES / on.bandwidth(0)) + factors / rates.exp
    return sized.outside[:, depth] * each


def share_of_one_thread(sized: SizedRows, on: Processor) -> Costs:
    """The part of the work that the busiest thread has when the outermost loop's iterations are dealt out."""
    rows = sized.rows
    if not rows.loops:
        return np.ones_like(sized.outside[:, 0])
    first = np.array([0 if nest else rows.width for nest, _ in rows.orders])
    count = np.take_along_axis(sized.counts, first[:, None, None], axis=1)[:, 0]
    return np.asarray(np.ceil(count / on.threads) / count, dtype=np.float64)


def rate_of(op: str, unary: bool) -> str:
    """The name in ``machine.Rates`` at which ``op`` runs."""
    return (_UNARY_RATES.get(op) if unary else None) or _RATES.get(op, "compare")
