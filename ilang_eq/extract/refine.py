"""The last word on tile sizes: the full model, which sees the lowered loops, walks from the additive model's proposals.

before →  a candidate with tiles i:32, j:128 that the additive model likes
after  →  the same structure with the tiles i:6, j:64 that the full model likes better, or the same candidate

A step makes the tile of one axis larger or smaller; where none of these is better, one larger and another smaller,
which keeps a register tile's size. The walk ends where no step is better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations

from ilang_eq.errors import ScheduleError
from ilang_eq.extract.candidate import Sized, Tiles
from ilang_eq.extract.footprint import Extents
from ilang_eq.extract.full_model import Cost
from ilang_eq.lang.graph import Graph
from ilang_eq.lower import lower
from ilang_eq.lower.ir import Program
from ilang_eq.rewrites.space import AxisId, Read, Space

FIRST_STEPS = 1
"""Steps that every candidate may take."""

WALKS = 2
"""Candidates that may go on: the best few after that."""

APART = 1.01
"""Candidates whose costs differ by less are taken for the same in all that counts; one of them goes on."""

MOST_STEPS = 6
"""Their further steps."""


@dataclass(slots=True)
class Judge:
    """The full model of a target, with what it has said before; a graph that cannot be lowered costs infinitely much.

    Args:
        cost: the full model.
        extents: the size of every (input, dimension).
    """

    cost: Callable[[Program, Extents], Cost]
    extents: Extents
    known: dict[Graph, float] = field(default_factory=dict)

    @staticmethod
    def of(space: Space, sizes: Mapping[AxisId, int], cost: Callable[[Program, Extents], Cost]) -> Judge:
        """For schedules of ``space``, whose axes have ``sizes``."""
        reads = [n for eclass in space.classes.values() for n in eclass.nodes if isinstance(n, Read)]
        return Judge(cost, {(read.input, d): sizes[axis] for read in reads for d, axis in enumerate(read.axes)})

    def seconds(self, graph: Graph) -> float:
        """What ``graph`` takes."""
        if graph not in self.known:
            self.known[graph] = self._judged(graph)
        return self.known[graph]

    def _judged(self, graph: Graph) -> float:
        try:
            program = lower(graph, alternatives=False)
        except ScheduleError:
            return math.inf
        return self.cost(program, self.extents).seconds


def refined(candidates: Sequence[Sized], options: Mapping[AxisId, Sequence[int]], judge: Judge) -> list[Sized]:
    """``candidates`` by the full model, cheapest first, with tiles of its choice.

    Args:
        candidates: of the additive model.
        options: the tile sizes of every axis, ascending.
        judge: the full model.
    """
    judged = sorted((replace(c, cost=judge.seconds(c.graph)) for c in candidates), key=lambda c: c.cost)
    begun = sorted((_walked(c, options, judge, FIRST_STEPS) for c in _apart(judged)), key=lambda c: c.cost)
    walked = [_walked(c, options, judge, MOST_STEPS) for c in _apart(begun)[:WALKS]]
    distinct = {c.graph: c for c in reversed([*walked, *begun, *judged])}
    return sorted(distinct.values(), key=lambda c: c.cost)[: len(candidates)]


def _apart(ascending: Sequence[Sized]) -> list[Sized]:
    """The first of candidates with nearly the same cost."""
    found: list[Sized] = []
    for candidate in ascending:
        if not found or candidate.cost > APART * found[-1].cost:
            found.append(candidate)
    return found


def _walked(candidate: Sized, options: Mapping[AxisId, Sequence[int]], judge: Judge, steps: int) -> Sized:
    best = candidate
    for _ in range(steps):
        found = best
        for near in _steps(best.schedule.tiles, options):
            costed = (replace(s, cost=judge.seconds(s.graph)) for s in (best.retiled(tiles) for tiles in near))
            found = min([best, *costed], key=lambda c: c.cost)
            if found is not best:
                break
        if found is best:
            break
        best = found
    return best


def _steps(tiles: Mapping[AxisId, int], options: Mapping[AxisId, Sequence[int]]) -> tuple[list[Tiles], list[Tiles]]:
    """The tiles one step away: along one axis, and along two."""
    up = {axis: t for axis, tile in tiles.items() if (t := min((o for o in options[axis] if o > tile), default=0))}
    down = {axis: t for axis, tile in tiles.items() if (t := max((o for o in options[axis] if o < tile), default=0))}
    single = [{**tiles, axis: tile} for axis, tile in (*up.items(), *down.items())]
    pairs = [(a, b) for a, b in permutations(tiles, 2) if a in up and b in down]
    return single, [{**tiles, a: up[a], b: down[b]} for a, b in pairs]
