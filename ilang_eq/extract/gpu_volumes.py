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
    """A loop as all threads together run it; ``place`` tells it from others of its variable in the same loop."""

    variable: str
    trips: float
    place: int = 0


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


@dataclass(frozen=True, slots=True)
class Cache:
    """What loops can keep.

    Args:
        bytes: for all tasks that run at once.
        tasks: how many those are.
        grid: the outermost loops, which run through tasks.
    """

    bytes: float
    tasks: float
    grid: tuple[Run, ...]

    def covered(self) -> dict[str, float]:
        """How many iterations of each grid loop the tasks that run at once are of."""
        left, found = self.tasks, {}
        for loop in reversed(self.grid):
            found[loop.variable] = min(loop.trips, max(1.0, left))
            left /= loop.trips
        return found

    def keeps(self, uses: Sequence[Use], around: tuple[Run, ...], at_once: bool) -> bool:
        """Whether there is room for what one iteration of the loops ``around`` touches; of all tasks if ``at_once``."""
        largest: dict[str, float] = {}
        covered = self.covered() if at_once else {}
        for use in uses:
            if use.loops[: len(around)] == around:
                tasks = prod(count for variable, count in covered.items() if mentions(use.place, variable))
                touched = tasks * use.touched(use.loops[len(around) :])
                largest[use.place.buffer] = max(touched, largest.get(use.place.buffer, 0.0))
        return sum(largest.values()) <= self.bytes


def volume(uses: Sequence[Use], cache: Cache, outside: int = 0) -> float:
    """Bytes moved into ``cache``, by all loops inside the outermost ``outside`` ones."""
    distinct = list({(use.place, use.loops): use for use in uses}.values())
    buffers: dict[str, list[Use]] = {}
    for use in distinct:
        buffers.setdefault(use.place.buffer, []).append(use)
    return sum(_together(mine, distinct, cache, outside, outside) for mine in buffers.values())


def _together(mine: Sequence[Use], uses: Sequence[Use], cache: Cache, outside: int, depth: int) -> float:
    """Bytes moved for uses of one buffer, which share their outermost ``depth`` loops.

    What several loops go through one after another is moved once if it stays in between, and anew for each if not: of
    several places the largest then, since they tend to lie in each other.
    """
    inside: dict[Run, list[Use]] = {}
    for use in mine:
        if len(use.loops) > depth:
            inside.setdefault(use.loops[depth], []).append(use)
    parts = [_moved(use, uses, cache, outside) for use in mine if len(use.loops) <= depth]
    parts += [_together(part, uses, cache, outside, depth + 1) for part in inside.values()]
    stays = len(parts) == 1 or cache.keeps(uses, mine[0].loops[:depth], depth >= len(cache.grid))
    return max(parts) if stays else sum(parts)


def _moved(use: Use, uses: Sequence[Use], cache: Cache, outside: int) -> float:
    """Bytes moved for one use. Tasks that run at once need the same at about the same time, and fetch it together."""
    repeats = 1.0
    for depth in range(outside, len(use.loops)):
        loop, inside = use.loops[depth], use.loops[depth + 1 :]
        if mentions(use.place, loop.variable) or not any(mentions(use.place, r.variable) for r in inside):
            continue
        if not cache.keeps(uses, use.loops[: depth + 1], depth >= len(cache.grid)):
            repeats *= loop.trips / (cache.covered()[loop.variable] if depth < len(cache.grid) else 1.0)
    return repeats * use.touched(use.loops[outside:])
