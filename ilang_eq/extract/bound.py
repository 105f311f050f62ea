"""The least that a schedule can take on a processor, whatever its loops: how much a further search may gain at most."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ilang_eq.extract.additive import rates_of
from ilang_eq.extract.assemble import Schedule
from ilang_eq.extract.footprint import ELEMENT_BYTES
from ilang_eq.extract.fusions import Argument, Fusion
from ilang_eq.extract.machine import Machine
from ilang_eq.extract.rows import Processor
from ilang_eq.extract.structure import Structure
from ilang_eq.rewrites.space import AxisId


def least_seconds(
    structure: Structure, schedule: Schedule, sizes: Mapping[AxisId, int], processor: Processor, mirrored: bool = False
) -> float:
    """All operations at full speed, or every argument and result moved once, whichever takes longer.

    They come from the first level that holds them all. What is computed before any call takes nothing.

    Args:
        mirrored: whether half of a result may be copied from the other half (``lower/halves.py``).
    """
    states = [state for c, state in schedule.states.items() if c not in structure.ahead]
    operations = sum(_operations(structure, state.fusion, sizes, processor.machine) for state in states)
    read = {x for state in states for x in structure.sources(state.fusion) if isinstance(x, Argument)}
    arguments = {x.input: math.prod(sizes[axis] for axis in x.axes) for x in read}
    results = [math.prod(sizes[axis] for axis in axes) for axes in structure.layouts.values()]
    moved = ELEMENT_BYTES * (sum(arguments.values()) + sum(results))
    levels = processor.machine.levels
    place = next(n for n, level in enumerate(levels) if moved <= level.bytes)
    bandwidth = processor.threads * processor.bandwidth(place) * levels[place].abreast
    operations *= 0.5 if mirrored else 1.0
    return max(operations / processor.threads, moved / bandwidth) * 1e-9


def _operations(structure: Structure, fusion: Fusion, sizes: Mapping[AxisId, int], machine: Machine) -> float:
    """Nanoseconds of all operations of a fusion on one core."""
    points = math.prod(sizes[a] for a in structure.loops(fusion.root))
    return points * sum(1 / getattr(machine.vector, rate) for rate in rates_of(structure, fusion))
