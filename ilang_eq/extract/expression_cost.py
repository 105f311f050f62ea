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
    """Candidate loop orders of an expression over ``loops``, under tile choices."""

    loops: tuple[AxisId, ...]
    orders: tuple[tuple[Nest, Order], ...]
    knobs: Knobs

    @cached_property
    def width(self) -> int:
        """The longest nest."""
        return max((len(nest) for nest, _ in self.orders), default=0)

    @cached_property
    def axes(self) -> NDArray[np.int64]:
        """(rows, loops): the axis of every loop, -1 for padding."""
        padded = [(*nest, *(-1,) * (self.width - len(nest)), *order) for nest, order in self.orders]
        return np.array(padded, dtype=np.int64).reshape(len(self.orders), self.width + len(self.loops))

    @cached_property
    def counts(self) -> Costs:
        """(rows, loops, points): how often every loop runs."""
        points = self.knobs.points
        whole = {a: np.full(points, float(self.knobs.extents[a])) for a in self.loops}
        tile = {a: np.minimum(self.knobs.tiles[a], whole[a]) for a in self.loops if a in self.knobs.tiles}
        outer = {a: np.ceil(whole[a] / tile[a]) for a in tile}
        one = np.ones(points)
        table = [
            [
                *(outer[a] for a in nest),
                *(one for _ in range(self.width - len(nest))),
                *(tile[a] if a in nest else whole[a] for a in order),
            ]
            for nest, order in self.orders
        ]
        return np.array(table).reshape(len(self.orders), self.width + len(self.loops), points)

    @cached_property
    def outside(self) -> Costs:
        """(rows, loops + 1, points): iterations of all loops outside each place, between loops or at the ends."""
        ones = np.ones((self.counts.shape[0], 1, self.counts.shape[2]))
        return np.concatenate([ones, np.cumprod(self.counts, axis=1)], axis=1)

    @cached_property
    def innermost(self) -> NDArray[np.int64]:
        """The axis of each row's innermost loop, -1 if there is no loop."""
        if not self.loops:
            return np.full(len(self.orders), -1, dtype=np.int64)
        return self.axes[:, -1]

    def among(self, axes: Sequence[AxisId]) -> NDArray[np.bool_]:
        """(rows, loops): which loops run over one of ``axes``."""
        return np.isin(self.axes, np.array(axes, dtype=np.int64))


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


def compute(
    rows: Rows, op: str, unary: bool, reduced: Sequence[AxisId], strided: NDArray[np.bool_], on: Processor
) -> Costs:
    """Running ``op`` at every point; ``strided`` rows have an operand that their innermost loop strides through."""
    machine, lanes = on.machine, on.machine.lanes
    entries = rows.outside[:, -2] if rows.loops else np.ones((len(rows.orders), rows.knobs.points))
    inner = rows.counts[:, -1] if rows.loops else np.ones_like(entries)
    vectors = np.ceil(inner / lanes)
    per_vector = np.full_like(inner, lanes / _rate(machine.vector, op, unary))
    if reduced:
        folds = np.isin(rows.innermost, np.array(reduced, dtype=np.int64))[:, None]
        apart = np.where(folds, 1.0, vectors)
        per_vector = np.maximum(per_vector, machine.chain_cycles / machine.clock_ghz / apart)
    vectorised = vectors * per_vector
    scalar = inner / _rate(machine.scalar, op, unary)
    body = np.where(strided[:, None], np.maximum(scalar, vectorised), np.minimum(scalar, vectorised))
    return entries * (body + _LOOP_CYCLES / machine.clock_ghz)


def stride_penalty(rows: Rows, op: str, unary: bool, on: Processor) -> Costs:
    """What ``compute`` grows by where an operand is strided."""
    points = rows.outside[:, -1]
    machine = on.machine
    return points * max(0.0, 1 / _rate(machine.scalar, op, unary) - 1 / _rate(machine.vector, op, unary))


def traffic(rows: Rows, axes: Sequence[AxisId], sites: NDArray[np.int64], on: Processor) -> Costs:
    """Fetching an operand over ``axes`` that lives inside each row's first ``sites`` loops, through every level."""
    mine = rows.among(axes)
    places = np.arange(rows.axes.shape[1] + 1)
    covered = _covered(rows, mine)
    fetches = _fetches(rows, mine | (places[None, :-1] < sites[:, None]))
    size = np.take_along_axis(covered, sites[:, None, None], axis=1)[:, 0] * _ELEMENT_BYTES
    inside = (places[None, :] >= sites[:, None])[:, :, None]
    total = np.zeros_like(size)
    capacities = on.capacities()
    for level in range(len(on.machine.levels)):
        fits = (covered * _ELEMENT_BYTES <= capacities[level]) & inside
        place = np.argmax(fits, axis=1)[:, None, :]
        moved = np.take_along_axis(covered, place, axis=1) * np.take_along_axis(fetches, place, axis=1)
        total += np.where(size > capacities[level], moved[:, 0] * _ELEMENT_BYTES / on.bandwidth(level), 0.0)
    return total


def _covered(rows: Rows, mine: NDArray[np.bool_]) -> Costs:
    """(rows, places, points): elements that the loops inside each place cover."""
    runs = np.where(mine[:, :, None], rows.counts, 1.0)[:, ::-1]
    ones = np.ones((runs.shape[0], 1, runs.shape[2]))
    return np.concatenate([ones, np.cumprod(runs, axis=1)], axis=1)[:, ::-1]


def _fetches(rows: Rows, moves: NDArray[np.bool_]) -> Costs:
    """(rows, places, points): iterations outside each place, without the loops just outside it that move nothing."""
    last = np.maximum.accumulate(np.where(moves, np.arange(1, moves.shape[1] + 1), 0), axis=1)
    first = np.zeros((moves.shape[0], 1), dtype=last.dtype)
    return np.take_along_axis(rows.outside, np.concatenate([first, last], axis=1)[:, :, None], axis=1)


def share_of_one_thread(rows: Rows, on: Processor) -> Costs:
    """The part of the work that the busiest thread has when the outermost loop's iterations are dealt out."""
    if not rows.loops:
        return np.ones((len(rows.orders), rows.knobs.points))
    first = np.array([0 if nest else rows.width for nest, _ in rows.orders])
    count = np.take_along_axis(rows.counts, first[:, None, None], axis=1)[:, 0]
    return np.ceil(count / on.threads) / count


def outermost(nest: Nest, order: Order) -> AxisId | None:
    """The axis of the outermost loop."""
    return next(iter((*nest, *order)), None)


def _rate(rates: Rates, op: str, unary: bool) -> float:
    name = _UNARY_RATES.get(op) if unary else None
    return getattr(rates, name or _RATES.get(op, "compare"))
