"""The last word on tile sizes: the full model, which sees the lowered loops, walks from the additive model's proposals.

before →  a candidate with tiles i:32, j:128 that the additive model likes
after  →  the same structure with the tiles i:6, j:64 that the full model likes better, or the same candidate

A step makes the tile of one axis larger or smaller: of the same as the step before, if that is better. Where none of
these is, it makes one larger and another smaller, which keeps a register tile's size. The fewer expressions there are,
the more sizes a step looks at. The walk ends where no step is better. A few candidates walk; where the best of them has
come to, a last walk may take more sizes. From each place the loops around panels may be exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, permutations, product

from ilang_eq.errors import ScheduleError
from ilang_eq.extract.candidate import Candidate, Sized, Tiles
from ilang_eq.extract.footprint import Extents
from ilang_eq.extract.full_model import Model
from ilang_eq.lang.graph import Graph
from ilang_eq.lower.preparation import recurring
from ilang_eq.lower.resizing import Lowerings
from ilang_eq.rewrites.space import AxisId, Read, Space

FAR = 2.0
"""Candidates that take this many times as long as the best take no step: what a step gains is as a rule less."""

BEGINNERS = 5
"""Candidates that take a step along one axis, with those like them: the best few that are not far behind."""

WALKS = 3
"""Candidates that may take more than one step: the best few after all have taken one along one axis."""

BEHIND, BEHIND_OF_MANY = 1.1, 1.05
"""Candidates that take this many times as long as the best after its walk take no further step; of many expressions,
which take long to judge, fewer do. With 8 beginners, 1.06, and 1.02 where it is ``NEAR``, attention takes 1.2 of the
time, and of 160 picks one costs 2 % less by the model and two 2 and 3 % more; with 1.04, one takes 1.36 of its time."""

NEAR = 1.01
"""Candidates that take this many times as long as the best after its walk step along one axis only."""

APART = 1.001
"""Candidates with the same tiles whose costs differ by less are alike. They may cost nearly the same by chance: all
take the first step, and one goes on. Those that cost exactly the same differ in nothing that counts, such as a loop
that runs once: the first takes the step for all.
"""

GAINS = 1.01
"""How many times as long blocks of register tiles have to take as one alone: the model knows no better."""

MOST_STEPS = 6
"""Steps of a walk."""

FIRST_STEPS = 2
"""Those after which a walk goes on only if it may catch up: the first may gain little, and open the way."""

LOOK = 12
"""Expressions times the tile sizes that one step may pass."""

SPREADS: Mapping[int, Sequence[int]] = {2: (4, 8, 16, 32), 3: (4, 6, 16)}
"""Sizes that the tiles of so many axes are tried with in the end: no walk comes from 32 rows to four in shorter parts,
nor from rows of six vectors to many of one."""

FEW = 8
"""Of more expressions, which take longer to judge, no three tiles are tried so."""

PASSED = 2
"""Tile sizes that a step of a walk may pass at least: the next may leave a tail where the one after does not."""


@dataclass(slots=True)
class Bound:
    """What a graph takes in ``seconds``, or, if that is not ``exact``, takes at least."""

    seconds: float = -math.inf
    exact: bool = False


@dataclass(slots=True)
class Judge:
    """The full model of a target, with what it has said before; a graph that cannot be lowered costs infinitely much.

    Args:
        cost: the full model.
        extents: the size of every (input, dimension).
        constants: inputs that stay the same: what depends on them alone costs nothing.
    """

    cost: Model
    extents: Extents
    constants: frozenset[int] = frozenset()
    known: dict[Graph, Bound] = field(default_factory=dict)
    lowerings: Lowerings = field(default_factory=Lowerings)

    @staticmethod
    def of(space: Space, sizes: Mapping[AxisId, int], cost: Model) -> Judge:
        """For schedules of ``space``, whose axes have ``sizes``."""
        reads = [n for eclass in space.classes.values() for n in eclass.nodes if isinstance(n, Read)]
        extents = {(read.input, d): sizes[axis] for read in reads for d, axis in enumerate(read.axes)}
        return Judge(cost, extents, space.constants)

    def seconds(self, graph: Graph, most: float = math.inf) -> float:
        """What ``graph`` takes; or just ``most``, if it is certain to take more."""
        known = self.known.setdefault(graph, Bound())
        if not known.exact and known.seconds < most:
            known.seconds = self._judged(graph, most)
            known.exact = known.seconds != most
        return known.seconds if known.exact else most

    def _judged(self, graph: Graph, most: float) -> float:
        try:
            program = self.lowerings.lower(graph)
        except ScheduleError:
            return math.inf
        return self.cost(recurring(program, self.constants), self.extents, most).seconds


def cheaper(candidate: Candidate, graph: Graph, judge: Judge, gains: float = 1.0) -> Candidate:
    """``candidate`` as ``graph``, if it takes more than ``gains`` times as long by the full model; else as it is."""
    most = candidate.cost / gains
    seconds = judge.seconds(graph, most)
    return replace(candidate, graph=graph, cost=seconds) if seconds < most else candidate


def refined(
    candidates: Sequence[Sized],
    options: Mapping[AxisId, Sequence[int]],
    in_the_end: Mapping[AxisId, Sequence[int]],
    judge: Judge,
) -> list[Sized]:
    """``candidates`` by the full model, cheapest first, with tiles of its choice.

    Args:
        candidates: of the additive model.
        options: the tile sizes of every axis, ascending.
        in_the_end: those for a last walk, from the best that the others have come to.
        judge: the full model.
    """
    judged = sorted((replace(c, cost=judge.seconds(c.graph)) for c in candidates), key=lambda c: c.cost)
    near = [[c for c in _differing(alike) if c.cost < FAR * judged[0].cost] for alike in _alike(judged)[:BEGINNERS]]
    steps = ([_stepped(c, _along_one(c, options), judge) for c in alike] for alike in near if alike)
    begun = sorted((min(alike, key=lambda c: c.cost) for alike in steps), key=lambda c: c.cost)
    walked: list[Sized] = []
    rival = math.inf
    for candidate, *_ in _alike(begun)[:WALKS]:
        if candidate.cost < (BEHIND if _reach(candidate) > 1 else BEHIND_OF_MANY) * rival:
            walked.append(_walked(candidate, options, judge, rival))
            rival = min(rival, walked[-1].cost)
    best = min(walked, key=lambda c: c.cost)
    walked += [_walked(c, in_the_end, judge, rival) for c in (best, *_alone(best, judge))]
    most = BEHIND * min(c.cost for c in walked)
    walked += [_walked(c, in_the_end, judge, math.inf) for c in _elsewhere(walked, options, judge, most)]
    walked += [_walked(c, in_the_end, judge, math.inf) for c in _exchanged(walked, judge)]
    distinct = {c.graph: c for c in reversed([*walked, *begun, *judged])}
    return sorted(distinct.values(), key=lambda c: c.cost)[: len(candidates)]


def _alone(candidate: Sized, judge: Judge) -> list[Sized]:
    """``candidate`` with register tiles that stand alone, if that gains.

    What they compute stays in registers for what reads it (``in_registers.py``), but not in blocks of several, and a
    walk from these gains nothing until it comes there: Σ_j relu(x·yᵀ) of 32 terms takes 1.16 of the time in blocks of
    eight on Zen 3.
    """
    blocks = {axis: size for block in candidate.schedule.blocks.values() for axis, size in block.sizes.items()}
    if not blocks:
        return []
    found = candidate.retiled({**candidate.schedule.tiles, **blocks})
    seconds = judge.seconds(found.graph, candidate.cost / GAINS)
    return [replace(found, cost=seconds)] if seconds < candidate.cost / GAINS else []


def _exchanged(candidates: Sequence[Sized], judge: Judge) -> list[Sized]:
    """The best of ``candidates`` whose panels are copied in another order, if that is better than any as it is.

    Panels side by side are found quicker in memory than those below each other, whose rows lie in other pages:
    16×4096×4096 takes 0.85 of the time on Zen 3.
    """
    most = min(candidates, key=lambda c: c.cost).cost / GAINS
    found = list[Sized]()
    for candidate in candidates:
        for outer, inner in candidate.around_panels():
            other = candidate.exchanged(outer, inner)
            seconds = judge.seconds(other.graph, most)
            if seconds < most:
                most, found = seconds, [replace(other, cost=seconds)]
    return found


def _elsewhere(
    candidates: Sequence[Sized], options: Mapping[AxisId, Sequence[int]], judge: Judge, most: float
) -> list[Sized]:
    """The best of ``candidates`` with tiles that are far apart, if there are few and it costs less than ``most``."""
    found = list[Sized]()
    for other in (other for candidate in candidates for other in _spread(candidate, options)):
        seconds = judge.seconds(other.graph, most)
        if seconds < most:
            most, found = seconds, [replace(other, cost=seconds)]
    return found


def _spread(candidate: Sized, options: Mapping[AxisId, Sequence[int]]) -> Iterator[Sized]:
    """``candidate`` with others of ``SPREADS``, as far as there are few expressions."""
    tiles = candidate.schedule.tiles
    # of more than two axes those that have tiles
    axes = [axis for axis, tile in tiles.items() if tile > 1 or len(tiles) == min(SPREADS)]
    many = len(axes) > min(SPREADS) and len(candidate.graph.nodes) > FEW
    sizes = () if many else SPREADS.get(len(axes), ())
    along = [dict.fromkeys(min(size, options[axis][-1]) for size in sizes) for axis in axes]
    others = ({**tiles, **dict(zip(axes, found, strict=True))} for found in product(*along) if found)
    return (candidate.retiled(other) for other in others if other != tiles)


def _alike(ascending: Sequence[Sized]) -> list[list[Sized]]:
    """Candidates with the same tiles and nearly the same cost, together."""
    found: list[list[Sized]] = []
    for candidate in ascending:
        near = (alike for alike in reversed(found) if candidate.cost <= APART * alike[0].cost)
        same = next((alike for alike in near if alike[0].schedule.tiles == candidate.schedule.tiles), None)
        if same is None:
            found.append([candidate])
        else:
            same.append(candidate)
    return found


def _differing(ascending: Iterable[Sized]) -> list[Sized]:
    """The first of those that cost exactly the same."""
    return [next(same) for _, same in groupby(ascending, key=lambda c: c.cost)]


def _walked(candidate: Sized, options: Mapping[AxisId, Sequence[int]], judge: Judge, rival: float) -> Sized:
    """``candidate`` at the end of its walk; ``rival`` is the cost of the best other at the end of its own.

    It ends early if it would stay behind even if each step left gained as much as the last: as a rule they gain less.
    """
    before = best = candidate
    for step in range(1, 1 + MOST_STEPS):
        looked_at = (_stepped(best, near, judge) for near in _nearby(best, before, options, rival))
        found = next((stepped for stepped in looked_at if stepped is not best), best)
        reached = found.cost - (MOST_STEPS - step) * (best.cost - found.cost)
        if found is best or (step >= FIRST_STEPS and reached > rival):
            return found
        before, best = best, found
    return best


def _nearby(
    candidate: Sized, before: Sized, options: Mapping[AxisId, Sequence[int]], rival: float
) -> Iterator[list[Tiles]]:
    """The tiles that a step looks at, the next only where none of the former are better.

    First come those along the axis of the step from ``before``: what gained once may gain again.
    """
    tiles = candidate.schedule.tiles
    moved = [axis for axis, tile in tiles.items() if tile != before.schedule.tiles[axis]]
    near = _along_one(candidate, options, PASSED)
    further = [other for other in near if any(other[axis] != tiles[axis] for axis in moved)]
    yield further
    yield [other for other in near if other not in further]
    if candidate.cost < NEAR * rival:
        yield _along_two(candidate, options)


def _stepped(candidate: Sized, near: Sequence[Tiles], judge: Judge) -> Sized:
    """The best of ``candidate`` and the same with tiles that are ``near``."""
    best = candidate
    for other in map(candidate.retiled, near):
        seconds = judge.seconds(other.graph, best.cost)
        if seconds < best.cost:
            best = replace(other, cost=seconds)
    return best


def _along_one(candidate: Sized, options: Mapping[AxisId, Sequence[int]], least: int = 1) -> list[Tiles]:
    """The tiles some steps away along one axis, ``least`` or more."""
    tiles = candidate.schedule.tiles
    larger, smaller = _neighbours(tiles, options, max(least, _reach(candidate)))
    return [{**tiles, axis: tile} for near in (larger, smaller) for axis, found in near.items() for tile in found]


def _along_two(candidate: Sized, options: Mapping[AxisId, Sequence[int]]) -> list[Tiles]:
    """The tiles some steps larger along one axis and some smaller along another."""
    tiles = candidate.schedule.tiles
    larger, smaller = _neighbours(tiles, options, _reach(candidate))
    pairs = [(a, b) for a, b in permutations(tiles, 2) if a in larger and b in smaller]
    return [{**tiles, a: more, b: less} for a, b in pairs for more, less in product(larger[a], smaller[b])]


def _reach(candidate: Sized) -> int:
    """Tile sizes that one step may pass: few expressions are judged quickly."""
    return max(1, LOOK // len(candidate.graph.nodes))


def _neighbours(
    tiles: Mapping[AxisId, int], options: Mapping[AxisId, Sequence[int]], reach: int
) -> tuple[dict[AxisId, list[int]], dict[AxisId, list[int]]]:
    """The next few larger tiles of every axis that has any, and the next few smaller."""
    larger = {axis: found for axis, tile in tiles.items() if (found := [o for o in options[axis] if o > tile][:reach])}
    smaller = {a: found for a, tile in tiles.items() if (found := [o for o in options[a] if o < tile][-reach:])}
    return larger, smaller
