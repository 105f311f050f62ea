"""Copies of inputs that stay the same: made once, in the layout in which their reader goes through them.

before →  (I | i("+kj~kj|j:64|jkj'")) >> i("ik*kj~kij|i:8,j:64|j1iki'j'") >> …   a panel packed in each step of j
after  →  (I | i("+kj~kj|j:64|jkj'")) >> i("ik*kj~kij|i:8,j:64|jiki'j'") >> …    all panels packed by a kernel apart

``prepare`` runs that kernel ahead of the calls (``lower/preparation.py``), and ``lower/panels.py`` lays out what it
writes tile by tile. Both functions change nothing where no input is constant.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from ilang_eq.extract.assemble import UNCUT, Block, Schedule
from ilang_eq.extract.states import State
from ilang_eq.extract.structure import Structure
from ilang_eq.rewrites.space import AxisId, ClassId


def taken_out(structure: Structure, schedule: Schedule) -> Schedule:
    """``schedule`` with its copies of constants in kernels of their own."""
    copies = structure.panels & schedule.states.keys()
    states = {c: replace(state, site=0) if c in copies else state for c, state in schedule.states.items()}
    sites = {(reader, x): 0 if x in copies else site for (reader, x), site in schedule.sites.items()}
    return replace(schedule, states=states, sites=sites)


def laid_out(structure: Structure, schedule: Schedule, copies: Set[ClassId]) -> Schedule:
    """``schedule`` with ``copies`` in the loops of the first that reads them, register blocks included."""
    states, blocks = dict(schedule.states), dict(schedule.blocks)
    for copy in sorted(copies & schedule.states.keys()):
        readers = (r for r, x in schedule.sites if x == copy)
        reader = next((r for r in readers if copy not in structure.viewed(schedule.states[r].fusion)), None)
        if reader is not None:
            axes = structure.axes(copy)
            states[copy] = _restricted(states[copy], schedule.states[reader], axes)
            block = schedule.blocks.get(reader, UNCUT)
            sizes = {axis: size for axis, size in block.sizes.items() if axis in axes}
            around = sum(axis in axes for axis in schedule.states[reader].nest[: block.depth])
            blocks |= {copy: Block(around, sizes)} if sizes else {}
    return replace(schedule, states=states, blocks=blocks)


def _restricted(copy: State, reader: State, axes: tuple[AxisId, ...]) -> State:
    """``copy`` in those loops of ``reader`` that run over ``axes``."""
    nest = tuple(axis for axis in reader.nest if axis in axes)
    return replace(copy, nest=nest, order=tuple(axis for axis in reader.order if axis in axes))
