"""Bytes that the tasks of a launch move: into a multiprocessor, and out of device memory.

The counting argument of Goto and van de Geijn (ACM TOMS 34(3), 2008): a loop that a place does not move with fetches
it once if what one iteration touches fits the cache, and anew in every iteration if it does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ilang_eq.lower.ir import Load
from ilang_eq.lower.walk import mentions

SECTOR_BYTES = 32
"""What a request moves at least, where neighbours in memory are of no use."""
_SIZE = 4


@dataclass(frozen=True, slots=True)
class Run:
    """A loop as all threads together run it."""

    variable: str
    trips: float


@dataclass(frozen=True, slots=True)
class Use:
    """A place in memory, the loops around it from the outside in, and the elements of its buffer."""

    place: Load
    loops: tuple[Run, ...]
    elements: float

    def touched(self, loops: Sequence[Run]) -> float:
        """The bytes of its buffer that ``loops``, the innermost ones, reach."""
        moving = [loop for loop in loops if mentions(self.place, loop.variable)]
        reached = min(prod(loop.trips for loop in moving), self.elements)
        last = self.place.indices[-1].variables if self.place.indices else ()
        near = any(loop.variable in last for loop in moving)
        return reached * (_SIZE if near or reached == self.elements else SECTOR_BYTES)


def volume(uses: Sequence[Use], capacity: float, outside: int = 0) -> float:
    """Bytes moved into a cache of ``capacity``, by all loops inside the outermost ``outside`` ones."""
    distinct = {(use.place, use.loops): use for use in uses}.values()
    largest: dict[str, float] = {}
    for use in distinct:
        moved = _moved(use, list(distinct), capacity, outside)
        # of several places in one buffer the largest, since they tend to lie in each other
        largest[use.place.buffer] = max(moved, largest.get(use.place.buffer, 0.0))
    return sum(largest.values())


def _moved(use: Use, uses: Sequence[Use], capacity: float, outside: int) -> float:
    repeats = 1.0
    for depth in range(outside, len(use.loops)):
        inside = use.loops[depth + 1 :]
        if mentions(use.place, use.loops[depth].variable) or not any(mentions(use.place, r.variable) for r in inside):
            continue
        around = use.loops[: depth + 1]
        if _footprint(uses, around) > capacity:
            repeats *= use.loops[depth].trips
    return repeats * use.touched(use.loops[outside:])


def _footprint(uses: Sequence[Use], around: tuple[Run, ...]) -> float:
    """The bytes that one iteration of the loops ``around`` touches."""
    largest: dict[str, float] = {}
    for use in uses:
        if use.loops[: len(around)] == around:
            touched = use.touched(use.loops[len(around) :])
            largest[use.place.buffer] = max(touched, largest.get(use.place.buffer, 0.0))
    return sum(largest.values())
