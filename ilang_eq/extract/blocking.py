"""Register blocks: how a reduction's tile is cut so that its accumulators stay in vector registers.

before →  i:64, k:48:  i k l k' i'             192 vectors of accumulators, more than there are registers
after  →  i:64, k:8:6: i k k' l k'' i'          8 blocks of 6×64, 24 vectors each, every one reduced to its end

The loops over blocks stand outside the reduction and inside everything that is shared with other expressions, so that
neighbours see the tile as it was.
"""

from __future__ import annotations

from dataclasses import replace

from ilang_eq.extract.assemble import Block, Schedule
from ilang_eq.extract.machine import Machine
from ilang_eq.extract.micro_kernel import micro_kernel
from ilang_eq.extract.states import State
from ilang_eq.extract.structure import Structure
from ilang_eq.rewrites.space import AxisId, ClassId, Nest


def blocked(structure: Structure, schedule: Schedule, machine: Machine) -> Schedule:
    """``schedule`` with blocks wherever a reduction's tile has more accumulators than ``machine`` has registers."""
    blocks = {c: _block(structure, schedule, c, state, machine) for c, state in schedule.states.items()}
    return replace(schedule, blocks={c: block for c, block in blocks.items() if block is not None})


def tile_axes(nest: Nest, order: tuple[AxisId, ...], reduced: frozenset[AxisId]) -> tuple[AxisId, AxisId] | None:
    """The two innermost output axes of a reduction's tile; None unless the whole tile is constant.

    Of a reduction around two axes or more the tile is these: others are loops around it.
    """
    outputs = [axis for axis in order if axis not in reduced]
    if not reduced or len(outputs) < 2:
        return None
    inside = [axis for axis in order[min(map(order.index, reduced)) :] if axis not in reduced]
    if any(axis not in nest for axis in (inside if len(inside) > 1 else outputs)):
        return None
    return outputs[-2], outputs[-1]


def depth(nest: Nest, pair: tuple[AxisId, AxisId]) -> int:
    """Inside how many tile loops the loops over blocks stand, unless something is shared further in."""
    return 1 + max(nest.index(axis) for axis in pair)


def _block(structure: Structure, schedule: Schedule, c: ClassId, state: State, machine: Machine) -> Block | None:
    pair = tile_axes(state.nest, state.order, frozenset(structure.reduced(state.root)))
    if pair is None:
        return None
    row, lane = pair
    tiles = schedule.tiles
    found = micro_kernel(tiles[row], tiles[lane], machine.lanes, machine.vector_registers)
    if found is None:
        return None
    sizes = {axis: size for axis, size in zip(pair, found, strict=True) if size < tiles[axis]}
    shared = [site for (reader, x), site in schedule.sites.items() if c in (reader, x)]
    return Block(max([*shared, depth(state.nest, pair)]), sizes)
