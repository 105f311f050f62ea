"""What one expression costs on a machine, in closed form: the terms that the additive model sums.

Rows are candidate loop orders of one expression; every cost is an array of rows by tile choices, in nanoseconds of one
thread. Traffic is counted by footprints: a loop's operand is fetched into a level of the memory again for every
iteration of the loops outside it, unless what it covers stays in that level meanwhile.

Invariants:
  * a row's loops are its nest, padded with loops of one iteration, then every axis once more: the element loops
  * an axis outside the nest has its whole extent in its element loop
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ilang_eq.extract.machine import Machine, Rates
from ilang_eq.rewrites.space import AxisId, Nest

Costs = NDArray[np.float64]
Numbers = NDArray[np.int64]
Order = tuple[AxisId, ...]

_ELEMENT_BYTES = 4
_REGISTERS = 16
"""Vector registers that hold operands."""

_SHARE = 0.5
"""The part of a level that one operand's tile may fill."""

_LOOP_CYCLES = 2.0
"""Entering an innermost loop."""

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


@dataclass(frozen=True, slots=True)
class Processor:
    """A machine, with how many threads of it run."""

    machine: Machine
    threads: int

    def bandwidth(self, level: int) -> float:
        """Bytes per nanosecond out of ``level`` to each thread."""
        found = self.machine.levels[level]
        return min(found.bandwidth, found.bandwidth_all / self.threads)

    def capacities(self) -> list[float]:
        """Bytes that one operand's tile may take: in registers, then in every level."""
        registers = _REGISTERS * self.machine.vector_bits / 8
        shares = [level.bytes / (self.threads if level.shared else 1) for level in self.machine.levels]
        return [_SHARE * size for size in (registers, *shares)]


def compute(sized: SizedRows, op: str, unary: bool, reduced: Sequence[AxisId], on: Processor) -> Costs:
    """Running ``op`` at every point, every operand contiguous along the innermost loop."""
    machine, lanes = on.machine, on.machine.lanes
    entries, inner = _innermost(sized)
    vectors = np.ceil(inner / lanes)
    per_vector = np.full_like(inner, lanes / _rate(machine.vector, op, unary))
    if reduced:
        folds = np.isin(sized.rows.innermost, np.array(reduced, dtype=np.int64))[:, None]
        chain = machine.chain_cycles / machine.clock_ghz
        per_vector = np.maximum(per_vector, chain / np.where(folds, 1.0, vectors))
    return entries * np.minimum(vectors * per_vector, inner / _rate(machine.scalar, op, unary))


def entering(sized: SizedRows, on: Processor) -> Costs:
    """Entering the innermost loop, each time."""
    return _innermost(sized)[0] * (_LOOP_CYCLES / on.machine.clock_ghz)


def gathering(sized: SizedRows, axes: Sequence[AxisId], last: Sequence[AxisId | None], on: Processor) -> Costs:
    """Touching element by element an operand over ``axes`` whose layout the innermost loop crosses.

    Args:
        last: for every row, the axis along which the operand is contiguous.
    """
    innermost = sized.rows.innermost
    contiguous = np.array([-1 if axis is None or axes.count(axis) > 1 else axis for axis in last], dtype=np.int64)
    across = np.isin(innermost, np.array(axes, dtype=np.int64)) & (innermost != contiguous)
    return np.where(across[:, None], sized.outside[:, -1] / on.machine.scalar.add, 0.0)


def _innermost(sized: SizedRows) -> tuple[Costs, Costs]:
    """How often the innermost loop is entered, and how long it is."""
    if not sized.rows.loops:
        return sized.outside[:, 0], sized.outside[:, 0]
    return sized.outside[:, -2], sized.counts[:, -1]


def traffic(sized: SizedRows, axes: Sequence[AxisId], site: int, on: Processor) -> Costs:
    """Fetching an operand over ``axes`` that lives inside the first ``site`` loops, through every level."""
    mine = np.isin(sized.rows.axes, np.array(axes, dtype=np.int64))
    places = np.arange(mine.shape[1] + 1)
    elements = _covered(sized, mine)
    fetches = _fetches(sized, mine | (places[:-1] < site))
    total = np.zeros_like(elements[:, 0])
    for level, capacity in enumerate(on.capacities()[:-1]):
        fits = elements[:, site:] * _ELEMENT_BYTES <= capacity
        place = np.argmax(fits, axis=1)[:, None, :] + site
        moved = np.take_along_axis(elements, place, axis=1) * np.take_along_axis(fetches, place, axis=1)
        total += np.where(fits[:, 0], 0.0, moved[:, 0] * (_ELEMENT_BYTES / on.bandwidth(level)))
    return total


def _covered(sized: SizedRows, mine: NDArray[np.bool_]) -> Costs:
    """(rows, places, G): elements that the loops inside each place cover."""
    runs = np.where(mine[:, :, None], sized.counts, 1.0)
    return _products(runs[:, ::-1])[:, ::-1]


def _products(counts: Costs) -> Costs:
    """(rows, places, G): the product of all loops before each place."""
    products = np.ones((counts.shape[0], counts.shape[1] + 1, counts.shape[2]))
    np.cumprod(counts, axis=1, out=products[:, 1:])
    return products


def _fetches(sized: SizedRows, moves: NDArray[np.bool_]) -> Costs:
    """(rows, places, G): iterations outside each place, without the loops just outside it that move nothing."""
    last = np.maximum.accumulate(np.where(moves, np.arange(1, moves.shape[1] + 1), 0), axis=1)
    first = np.zeros((moves.shape[0], 1), dtype=last.dtype)
    return np.take_along_axis(sized.outside, np.concatenate([first, last], axis=1)[:, :, None], axis=1)


def rescaling(
    sized: SizedRows, axes: Sequence[AxisId], statistic: Sequence[AxisId], depth: int, on: Processor
) -> Costs:
    """Multiplying an accumulator over ``axes`` by a factor in every iteration of the first ``depth`` loops."""
    rates = on.machine.vector
    places = [np.isin(sized.rows.axes, np.array(a, dtype=np.int64)) for a in (axes, statistic)]
    accumulator, factors = (_covered(sized, mine)[:, depth] for mine in places)
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


def _rate(rates: Rates, op: str, unary: bool) -> float:
    name = _UNARY_RATES.get(op) if unary else None
    return getattr(rates, name or _RATES.get(op, "compare"))
