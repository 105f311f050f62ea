"""What one expression asks of a machine, in closed form: the terms that the additive model sums.

The resources are those of ``full_model.py``, and so are the assumptions about the code that is made of a nest.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from math import log2

import numpy as np

from ilang_eq.extract import overlap
from ilang_eq.extract.footprint import ELEMENT_BYTES, LINE
from ilang_eq.extract.machine import WAITED
from ilang_eq.extract.micro_kernel import BROADCASTS, SCRATCH
from ilang_eq.extract.rows import Costs, Mask, Numbers, SizedRows
from ilang_eq.extract.tally import STRIP
from ilang_eq.rewrites.space import AxisId

_LOOP_SLOTS = 2.0
"""Instructions to step and test a loop."""

_ENTRY_CYCLES = 4.0
"""Setting up a loop, and leaving it. With the full model's 20 on Zen, what is proposed for the MLP is 1 % worse."""

_SPILL_SLOTS = 4.0
"""Instructions for an accumulator that goes to memory and back."""

_POINTERS = 8
"""Rows of an operand in a unit that integer registers point to."""

_ADDRESS_SLOTS = 2.0
"""Instructions to compute or reload the address of one more."""

_WAITED = WAITED / 10.0
"""The share of a level's latency that each line of an accumulator costs, over what the core looks ahead."""

_JOIN_CYCLES = 1.25
"""Folding one vector of a strip of partial results with the next."""

_HALVE_CYCLES = 2.5
"""Folding one half of a vector with the other. The full model has folds overlap with what follows; so, what is proposed
for the variance, a log-sum-exp of x·wᵀ and heads of attention is 1.5, 1.03 and 1.03 times as slow by that model."""

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

SLOTS, ARITHMETIC, FIRST_LEVEL, CHAIN, APART, TRANSFERS = range(6)
"""The resources: instruction slots, arithmetic units, bytes through the first-level cache, and the wait for
accumulators, which overlap; what does not overlap with anything; and from ``TRANSFERS`` on, moving data out of every
level of the memory hierarchy but the first."""

Demand = Costs
"""(resources, rows, G): the nanoseconds that some work would take if each resource were the only limit."""


def time(demand: Demand) -> Costs:
    """(rows, G): the time of ``demand``, in nanoseconds: the longest part's, a share of the others', what is apart.

    Ceilings of computing are soft, as those of most machines (``Machine.softness``): picks cost, by the full model,
    0.995 to 1.0002 of what they do with hard ones on five machines, in the mean of 160.
    """
    squares = demand[:APART] ** 2
    busy = np.cbrt(np.sqrt((squares * squares * squares).sum(axis=0, keepdims=True)))
    parts = np.concatenate([busy, demand[TRANSFERS:]])
    return overlap.SHOWN * parts.sum(axis=0) + (1 - overlap.SHOWN) * parts.max(axis=0) + demand[APART]


def added(demand: Demand) -> Costs:
    """(rows, G): what ``demand`` adds to work of unknown length: main memory's part shows, that of caches partly."""
    *caches, memory = demand[TRANSFERS:]
    return demand[SLOTS] + overlap.SHOWN * sum(caches, np.zeros_like(memory)) + memory + demand[APART]


def saved(less: Costs) -> Costs:
    """(rows, G): what transfers (levels, rows, G) that are not made save, if something else takes longest."""
    return overlap.SHOWN * less.sum(axis=0)


def nothing(sized: SizedRows) -> Demand:
    """No demand."""
    return np.zeros((TRANSFERS + len(sized.on.machine.levels) - 1, *sized.shape))


def computing(sized: SizedRows, rate: str) -> Demand:
    """Running an operation of the rate named ``rate`` at every point."""
    machine = sized.on.machine
    vector, scalar = (getattr(rates, rate) for rates in (machine.vector, machine.scalar))
    demand = nothing(sized)
    demand[SLOTS] = sized.vectors * sized.on.slot
    demand[ARITHMETIC] = np.minimum(sized.vectors * (machine.lanes / vector), sized.outside[:, -1] / scalar)
    return demand


def looping(sized: SizedRows) -> Demand:
    """Stepping the loop of the unit, or the loop around it if the unit is straight code, and entering that."""
    demand = nothing(sized)
    if sized.rows.loops:
        straight = sized.rows.constant[:, -1:]
        steps = np.where(straight, sized.runs, sized.vectors)
        nearest = sized.at(_nearest(sized.counts > 1), np.maximum(sized.unit - 1, 0))
        entered = np.where(straight, sized.at(sized.outside, np.maximum(nearest - 1, 0)), sized.entries)
        demand[SLOTS] = steps * (_LOOP_SLOTS * sized.on.slot)
        demand[APART] = entered * (_ENTRY_CYCLES / sized.on.machine.clock_ghz)
    return demand


def reading(
    sized: SizedRows, axes: Sequence[AxisId], last: Sequence[AxisId | None], site: int, row: Sequence[AxisId] = ()
) -> Demand:
    """Fetching an operand over ``axes`` that lives inside the first ``site`` loops.

    Args:
        last: for every row, the axis along which the operand is contiguous.
        row: the last axes of an operand in memory, as they lie there, if more than one is known.
    """
    within = sized.at(sized.covered(axes), sized.unit)
    times = within * np.where(within > 1, sized.runs, sized.at(sized.fetches(axes, site), sized.unit))
    demand = _moving(sized, times, axes, last)
    rows = within / np.where(sized.rows.along(axes)[:, None], sized.inner, 1.0)
    demand[SLOTS] += np.maximum(0.0, rows - _POINTERS) * sized.runs * (_ADDRESS_SLOTS * sized.on.slot)
    along = last[0] if site == 0 and len(set(last)) == 1 else None
    demand[TRANSFERS:] = sized.caching(axes, site, along)
    demand[APART] += sized.walks(axes, site, row or (() if along is None else (along,)))
    return demand


def fetching(sized: SizedRows, axes: Sequence[AxisId], batch: Set[AxisId] = frozenset()) -> Demand:
    """Reading an argument over ``axes``, as they lie in memory: several rows side by side come quicker than one.

    Args:
        batch: axes that nothing shares an iteration of: rows of two are not read in turn.
    """
    _, *row = [axis for axis in axes if axis not in batch] or axes
    demand = reading(sized, axes, [axes[-1]] * len(sized.rows.orders), 0, row)
    gain = sized.on.machine.levels[-1].abreast
    if gain > 1.0:
        demand[-1] *= 1.0 - sized.abreast(axes) * (1.0 - 1.0 / gain)
    return demand


def writing(sized: SizedRows, axes: Sequence[AxisId], last: Sequence[AxisId | None], site: int) -> Demand:
    """Filling a buffer over ``axes`` inside the first ``site`` loops."""
    demand = reading(sized, axes, last, site)
    demand[TRANSFERS:] *= np.array([level.written for level in sized.on.machine.levels[1:]])[:, None, None]
    return demand


def accumulating(sized: SizedRows, axes: Sequence[AxisId], last: Sequence[AxisId | None], site: int) -> Demand:
    """Adding into a buffer over ``axes`` inside the first ``site`` loops: in registers if it stays, or in place."""
    machine = sized.on.machine
    within = sized.at(sized.covered(axes), sized.unit)
    folds = ~sized.rows.along(axes)[:, None]
    held = folds | _comes_back(sized, axes)
    moves = within * sized.at(sized.fetches(axes, site), sized.unit)
    demand = _moving(sized, 2 * np.where(held, moves, sized.outside[:, -1]), axes, last)
    registers = np.where(folds, within, np.ceil(within / machine.lanes))
    chains = registers * np.where(folds, np.maximum(1.0, np.minimum(sized.inner, STRIP) / machine.lanes), 1.0)
    beside = np.where(folds, SCRATCH, np.maximum(SCRATCH, np.ceil(sized.inner / machine.lanes) + BROADCASTS))
    spilled = np.maximum(0.0, registers - (machine.vector_registers - beside))
    spills = spilled * sized.runs
    demand[SLOTS] += np.where(held, spills * (_SPILL_SLOTS * sized.on.slot), 0.0)
    demand[CHAIN] = np.where(held, sized.vectors / chains * (machine.chain_cycles / machine.clock_ghz), 0.0)
    cycles = _JOIN_CYCLES * (STRIP / machine.lanes - 1) + _HALVE_CYCLES * log2(machine.lanes)
    folding = moves * (cycles / machine.clock_ghz)
    caching = sized.caching(axes, site)
    waits = [
        sized.on.bandwidth(n) / LINE * level.latency * _WAITED / machine.window
        for n, level in enumerate(machine.levels[1:], start=1)
    ]
    demand[APART] = np.where(folds, folding, 0.0) + np.tensordot(np.array(waits), caching, axes=1)
    demand[TRANSFERS:] = 2 * caching
    return demand


def _moving(sized: SizedRows, times: Costs, axes: Sequence[AxisId], last: Sequence[AxisId | None]) -> Demand:
    """Moving ``times`` elements between registers and the first-level cache."""
    contiguous = np.array([-1 if axis is None or axes.count(axis) > 1 else axis for axis in last])
    packed = np.where(sized.rows.innermost == contiguous, 1 / sized.on.machine.lanes, _GATHER_SLOTS)
    each = np.where(sized.rows.along(axes), packed, 1.0)
    demand = nothing(sized)
    demand[SLOTS] = times * (each[:, None] * sized.on.slot)
    # an element takes a port as long as a vector does
    wide = sized.on.machine.lanes * ELEMENT_BYTES / sized.on.bandwidth(0)
    demand[FIRST_LEVEL] = times * (np.minimum(each, 1.0)[:, None] * wide)
    return demand


def _comes_back(sized: SizedRows, axes: Sequence[AxisId]) -> Mask:
    """(rows, G): whether the loop around a unit of straight code comes back to the same accumulators over ``axes``."""
    runs = sized.counts > 1
    around = np.maximum(sized.unit - 1, 0)
    moving = sized.at(_nearest(runs & sized.rows.among(axes)[:, :, None]), around)
    comes_back = (sized.unit > 0) & (sized.at(_nearest(runs), around) > moving)
    return sized.rows.constant[:, -1:] & comes_back


def _nearest(loops: Mask) -> Numbers:
    """(rows, loops, G): one more than the position of the last of ``loops`` up to each, 0 if there is none."""
    return np.maximum.accumulate(np.where(loops, np.arange(1, loops.shape[1] + 1)[:, None], 0), axis=1)


def rescaling(sized: SizedRows, axes: Sequence[AxisId], statistic: Sequence[AxisId], depth: int) -> Costs:
    """Multiplying an accumulator over ``axes`` by a factor in every iteration of the first ``depth`` loops."""
    rates = sized.on.machine.vector
    accumulator, factors = (sized.covered(a)[:, depth] for a in (axes, statistic))
    each = accumulator * (1 / rates.mul + 2 * ELEMENT_BYTES / sized.on.bandwidth(0)) + factors / rates.exp
    return sized.outside[:, depth] * each


def rate_of(op: str, unary: bool) -> str:
    """The name in ``machine.Rates`` at which ``op`` runs."""
    return (_UNARY_RATES.get(op) if unary else None) or _RATES.get(op, "compare")
