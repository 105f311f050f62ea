"""The search: the best schedules of a space by the additive model, with tile sizes.

Elimination finds the best structure for given tile sizes, exactly; with the structure fixed, tile sizes are cheap to
vary. If all combinations of tile sizes are few, elimination answers them all at once. Otherwise the two steps take
turns from several starts: structures at the tiles found so far, then for these one axis at a time the best tile. In
the end the full model puts the proposals in order, and adjusts the tiles of the best, and some sites.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial, reduce

import numpy as np

from ilang_eq.extract.absurd import without_absurd
from ilang_eq.extract.additive import AdditiveModel, build, estimator
from ilang_eq.extract.assemble import Schedule
from ilang_eq.extract.bound import least_seconds
from ilang_eq.extract.by_rows import by_rows
from ilang_eq.extract.candidate import Candidate, Sized, Tiles
from ilang_eq.extract.detours import shortest
from ilang_eq.extract.domains import BREADTHS, Breadth, Domain, Estimate
from ilang_eq.extract.elimination import Choice, Table, TooWide, best_k, eliminate, width
from ilang_eq.extract.fusions import Computed, Scope
from ilang_eq.extract.held import held
from ilang_eq.extract.in_order import in_order
from ilang_eq.extract.models import Models
from ilang_eq.extract.refine import Judge, refined
from ilang_eq.extract.rows import Knobs, Processor, SizedRows
from ilang_eq.extract.short_rows import short_rows
from ilang_eq.extract.side_by_side import side_by_side
from ilang_eq.extract.sites import resited
from ilang_eq.extract.starts import Options, options, starts
from ilang_eq.extract.states import State
from ilang_eq.extract.structure import Structure
from ilang_eq.extract.thinning import thinned
from ilang_eq.extract.tiling import Tiling
from ilang_eq.extract.untiled import untiled
from ilang_eq.lang.graph import Graph
from ilang_eq.lower.lowering import mirrors
from ilang_eq.rewrites.space import AxisId, ClassId, Number, Space

WHOLE = 2048
"""Axes that tiles may take all of in the end, if they are no longer: blocks that are all of an axis are none."""

_STARTS = 2
"""Structures whose tiles are refined in a round."""

_NEAREST = 3
"""Candidates that are the best by cost alone."""

WORTHWHILE = 1.2
"""What takes less than this many times what it takes at least is not searched once more. Products of 1024³ are at 1.26
on Zen 3 and 1.1 on Zen 5, and there is nothing better; those of a transposed factor were at 2.3 on Zen 3, and are at
1.4, and at 1.28 on Zen 5, where what is found takes 0.79 of the time. Searches for 160 components take 1.06 times as
long with 1.2 as with 1.3."""

NOTABLE = 1.05
"""What a thorough search finds, or copies in panels, counts if what was found before takes this many times as long:
what the model likes best is as a rule some per cent slower than what is fastest, and what is unusual it knows least."""

_THOROUGH_ENTRIES = 1_000_000
"""Entries of the largest table at all tiles that a thorough search starts from, about 0.1 s of an elimination."""

_LARGE = 8
"""Reductions with this part of the largest one's iterations, or more, are done otherwise in further candidates."""

_ROUNDS = 2

_FURTHER = (untiled, held, side_by_side, short_rows, resited)
"""Steps that no walk takes: from the best candidate, and the best in rows, one after the other."""


def propose(
    space: Space, extents: Mapping[tuple[int, int], int], models: Models, k: int, seed: int = 0
) -> list[Candidate]:
    """The ``k`` best schedules that differ in more than tile sizes, cheapest first; fewer if there are no more.

    Args:
        extents: the size of every (input, dimension) that ``space.extents`` names.
        models: those of the target.
        seed: of the random starts.

    Raises:
        TooWide: the space is too entangled for elimination, however thin its domains.
    """
    sizes = {axis: extents[dimension] for axis, dimension in enumerate(space.extents)}
    judge = Judge.of(space, sizes, models.judge)
    processor = Processor(models.machine, models.threads)

    @cache
    def structured(alternatives: bool, scope: Scope) -> tuple[Structure, dict[Hashable, SizedRows]]:
        ways = space if alternatives else shortest(space, sizes, models.machine)
        return without_absurd(Structure(ways, scope, sizes=sizes), sizes, models.machine), {}

    @cache
    def opened(alternatives: bool, scope: Scope, thorough: bool) -> tuple[list[Tiles], Estimate]:
        structure, _ = structured(alternatives, scope)
        begin = starts(structure, sizes, models.machine, seed, thorough)
        return begin, estimator(structure, processor, _knobs(sizes, begin))

    def searched(breadth: Breadth) -> list[Sized]:
        structure, sized = structured(breadth.alternatives, breadth.scope)
        begin, estimate = opened(breadth.alternatives, breadth.scope, breadth.thorough)

        def best(breadth: Breadth, k: int, departures: Departures) -> list[Sized]:
            built = build(structure, processor, estimate, breadth)
            model, tables = thinned(built, built.tables(_knobs(sizes, begin)))
            if breadth.thorough and width(model.sizes, tables) * len(begin) > _THOROUGH_ENTRIES:
                raise TooWide("a thorough search would take too long", expected="fewer ways to compute a class")
            return _best(Tiling(model, sizes, options(structure, sizes), sized), tables, begin, k, departures)

        if breadth.thorough:
            found = best(breadth, k, _thorough)
        else:
            found = best(breadth, k, _otherwise)
            for axis in _innermost(structure, found[0].schedule, sizes):
                found += best(replace(breadth, never_last=axis), 1, _otherwise_online)
        tiles = options(structure, sizes)
        usual = refined(found, tiles, _with_all(tiles, sizes), judge)
        panels = [laid_out for one in found if (laid_out := one.in_panels()) is not one]
        panels = [one for one in panels if judge.seconds(one.graph, usual[0].cost) < usual[0].cost]
        better = refined(panels, tiles, _with_all(tiles, sizes), judge) if panels else []
        return [*(one for one in better if NOTABLE * one.cost < usual[0].cost), *usual][: len(usual)]

    def thorough(breadth: Breadth, rival: Sized) -> list[Candidate]:
        mirrored = mirrors(rival.candidate().graph)
        least = least_seconds(rival.structure, rival.schedule, sizes, processor, mirrored)
        if not rival.structure.small or rival.cost < WORTHWHILE * least:
            return []
        with suppress(TooWide):
            found = searched(replace(breadth, thorough=True))
            return [one.candidate(unusual=True) for one in found if NOTABLE * one.cost < rival.cost]
        return []

    steps = (in_order, *_FURTHER) if models.collapses else _FURTHER

    def twice(breadth: Breadth) -> list[Candidate]:
        found = searched(breadth)
        usual = [one.candidate() for one in found]
        rows = [by_rows(one, judge) for one in usual] if models.collapses else []
        begin = {one.graph: one for one in (usual[0], min((usual[0], *rows), key=lambda one: one.cost))}
        last = [reduce(lambda one, step: step(one, judge), steps, one) for one in begin.values()]
        proposals = [*thorough(breadth, found[0]), *last, *usual]
        distinct = {one.graph: one for one in reversed(proposals)}
        online = {one.graph for one in found if _is_online(one.schedule)}
        return _of_both_kinds(sorted(distinct.values(), key=lambda one: one.cost), online, k)

    for breadth in BREADTHS[:-1]:
        try:
            return twice(breadth)
        except TooWide:
            continue
    return twice(BREADTHS[-1])


def _best(tiling: Tiling, at_starts: list[Table], starts: list[Tiles], k: int, departures: Departures) -> list[Sized]:
    """The best few candidates, at most ``k``, and the best that depart from the first of them.

    Args:
        at_starts: the tables of the model at ``starts``.
        departures: what they may not have.

    Raises TooWide.
    """
    model = tiling.model
    points, tables = _refined(tiling, starts, at_starts)
    solution = eliminate(model.sizes, tables, len(points), kept=True)
    nearest = best_k(solution, min(k, _NEAREST), partial(_plan, model))
    choices = [(point, choice) for _, point, choice in nearest]
    for forbidden in departures(model, model.schedule(choices[0][1]), tiling.sizes):
        other = solution.departing(forbidden)
        point = int(np.argmin(other.costs))
        if np.isfinite(other.costs[point]):
            choices.append((point, other.choice(point)))
    found: dict[Graph, Sized] = {}
    for point, choice in choices:
        candidate = _candidate(tiling, choice, points[point])
        found.setdefault(candidate.graph, candidate)
    return list(found.values())


def _large_reductions(structure: Structure, schedule: Schedule, sizes: Mapping[AxisId, int]) -> list[ClassId]:
    """The reductions of ``schedule`` that take most iterations, and those that take nearly as many; largest first."""
    reductions = {c: state for c, state in schedule.states.items() if structure.reduced(state.root)}
    work = {c: math.prod(sizes[axis] for axis in structure.loops(s.root)) for c, s in reductions.items()}
    return [c for c in sorted(work, key=lambda c: (-work[c], c)) if work[c] * _LARGE >= max(work.values())]


def _innermost(structure: Structure, schedule: Schedule, sizes: Mapping[AxisId, int]) -> list[AxisId]:
    """The axes that vectors of several large reductions go along; a single one departs from its own by itself.

    In a large space only the first: one more takes 0.08 s of 1.29 for attention at two threads, and gains 0.0002.
    """
    large = _large_reductions(structure, schedule, sizes)
    axes = list(dict.fromkeys(schedule.states[c].order[-1] for c in large)) if len(large) > 1 else []
    return axes if structure.small else axes[:1]


Departures = Callable[[AdditiveModel, Schedule, Mapping[AxisId, int]], Iterator[list[Table]]]
"""Of a schedule, and the sizes of all axes: lists of tables, each of which forbids some of what it does."""


def _otherwise(model: AdditiveModel, schedule: Schedule, sizes: Mapping[AxisId, int]) -> Iterator[list[Table]]:
    """Forbid what ``schedule`` does with large reductions: with one of them, then with all at once; and its repairs.

    And the innermost loop of the largest together with whatever packs less than most: the full model finds rows that
    are not packed to cost up to twice what this one does. Three bases of 64³ take 0.48 of the time on Zen 3 for it.
    """
    structure = model.structure
    large = _large_reductions(structure, schedule, sizes)
    forbidden = {
        c: [_forbidding(structure.places[c], model.domains[c], alike(schedule.states[c])) for alike in _ALIKE_IN]
        for c in large
    }
    yield from ([table] for c in large for table in forbidden[c])
    if len(large) > 1:
        yield from ([forbidden[c][n] for c in large] for n in range(len(_ALIKE_IN)))
    for c in large[:1]:
        packed = {state: len(_packed(structure, state)) for state in model.domains[c] if state is not None}
        less = {state for state, count in packed.items() if count < max(packed.values())}
        if less:
            yield [forbidden[c][-1], _forbidding(structure.places[c], model.domains[c], less.__contains__)]
    yield from _otherwise_online(model, schedule, sizes)


def _exchangeable(structure: Structure, state: State) -> list[AxisId]:
    """The tiled axes of which there is another that the same operands have, and that has no tiles."""
    read = [x for x in structure.sources(state.fusion) if not isinstance(x, Number)]
    operands = [x.names(structure.axes(x.of)) if isinstance(x, Computed) else x.axes for x in read]
    having = {axis: [axis in operand for operand in operands] for axis in structure.axes(state.root.of)}
    others = [having[axis] for axis in having if axis not in state.nest]
    return [axis for axis in state.nest if axis in having and having[axis] in others]


def _thorough(model: AdditiveModel, schedule: Schedule, sizes: Mapping[AxisId, int]) -> Iterator[list[Table]]:
    """The same, and demand each other choice of packed arguments that the largest reduction may read.

    And each with other axes tiled, where operands have several: s i c by s j d takes 0.63 of the time on Zen 3 in tiles
    of c by d, both packed.
    """
    yield from _otherwise(model, schedule, sizes)
    structure = model.structure
    for c in _large_reductions(structure, schedule, sizes)[:1]:
        place, domain, chosen = structure.places[c], model.domains[c], schedule.states[c]
        packed = {state: _packed(structure, state) for state in domain if state is not None}
        for wanted in sorted(set(packed.values())):
            others = {state for state, copies in packed.items() if copies != wanted}
            if wanted != packed[chosen]:
                yield [_forbidding(place, domain, others.__contains__)]
            for axis in _exchangeable(structure, chosen):
                tiled = {state for state in packed if axis in state.nest}
                yield [_forbidding(place, domain, (others | tiled).__contains__)]


def _packed(structure: Structure, state: State) -> tuple[ClassId, ...]:
    """The packed arguments that ``state`` reads."""
    return tuple(x for x in structure.reads(state.fusion) if x in structure.copies)


def _otherwise_online(model: AdditiveModel, schedule: Schedule, sizes: Mapping[AxisId, int]) -> Iterator[list[Table]]:
    """Forbid repairs where ``schedule`` has some; where it has none, demand the largest."""
    structure = model.structure
    places = {c: structure.places[c] for c in schedule.states}
    if _is_online(schedule):
        yield [_forbidding(place, model.domains[c], _waits) for c, place in places.items()]
        return
    work = {
        c: math.prod(sizes[axis] for axis in structure.loops(state.root))
        for c, state in schedule.states.items()
        if any(other is not None and _waits(other) for other in model.domains[c])
    }
    if work:
        c = min(work, key=lambda c: (-work[c], c))
        yield [_forbidding(places[c], model.domains[c], lambda state: not _waits(state))]


def _of_both_kinds(ascending: Sequence[Candidate], online: Set[Graph], k: int) -> list[Candidate]:
    """The first ``k``; the last of several gives way to the next that is ``online``, if none is, or to one that is not.

    Whoever ranks them may doubt costs that are near, and take what stores little.
    """
    kept = list(ascending[:k])
    kinds = {one.graph in online for one in kept}
    other = next((one for one in ascending[k:] if (one.graph in online) not in kinds), None)
    return kept if other is None or k == 1 else [*kept[:-1], other]


def _is_online(schedule: Schedule) -> bool:
    return any(map(_waits, schedule.states.values()))


def _waits(state: State) -> bool:
    """Whether it is computed from a statistic that is still under way."""
    return bool(state.ties.waits)


_ALIKE_IN: tuple[Callable[[State], Callable[[State], bool]], ...] = (
    lambda chosen: lambda state: state.fusion == chosen.fusion,
    lambda chosen: lambda state: state.nest == chosen.nest,
    lambda chosen: lambda state: state.nest[:1] == chosen.nest[:1],
    lambda chosen: lambda state: state.order[-1:] == chosen.order[-1:],
)
"""What a departure may not share with a chosen state: its fusion, its nest, its outermost or its innermost loop."""


def _forbidding(variable: int, domain: Domain, alike: Callable[[State], bool]) -> Table:
    return Table((variable,), np.array([[np.inf if s is not None and alike(s) else 0.0] for s in domain]))


def _candidate(tiling: Tiling, choice: Choice, start: Tiles) -> Sized:
    """``choice`` with the tiles that suit it."""
    model = tiling.model
    schedule = model.schedule(choice)
    tiles, cost = tiling.best(choice, start)
    used = sorted({axis for state in schedule.states.values() for axis in state.nest})
    chosen = {axis: tiles[axis] for axis in used}
    return Sized.of(model.structure, model.processor.machine, replace(schedule, tiles=chosen), cost * 1e-9)


def _plan(model: AdditiveModel, choice: Choice) -> Hashable:
    """What is fused and staged where: choices alike in this differ in loops that nothing shares."""
    schedule = model.schedule(choice)
    shared = dict.fromkeys(schedule.states, 0)
    for pair, site in schedule.sites.items():
        for c in pair:
            shared[c] = max(shared[c], site)
    placed = [(c, state.fusion, state.nest[: shared[c]]) for c, state in schedule.states.items()]
    return tuple(sorted(placed)), tuple(sorted(schedule.sites.items()))


def _with_all(tiles: Options, sizes: Mapping[AxisId, int]) -> Options:
    """``tiles`` with those that take all of an axis."""
    longer = {a: (*found, sizes[a]) for a, found in tiles.items() if found[-1] < sizes[a] <= WHOLE}
    return {**tiles, **longer}


def _knobs(sizes: Mapping[AxisId, int], points: Sequence[Tiles]) -> Knobs:
    axes = points[0] if points else ()
    return Knobs(sizes, {axis: np.array([float(p[axis]) for p in points]) for axis in axes})


def _refined(tiling: Tiling, points: list[Tiles], tables: list[Table]) -> tuple[list[Tiles], list[Table]]:
    """The best few tile choices, of ``points`` if they are complete, else as found from there; and the tables there.

    Args:
        tables: those of the model at ``points``.
    """
    model = tiling.model
    complete = len(points) == math.prod(map(len, tiling.options.values()))
    for _ in range(_ROUNDS):
        solution = eliminate(model.sizes, tables, len(points))
        promising = [int(g) for g in np.argsort(solution.costs, kind="stable")[:_STARTS]]
        if complete:
            return [points[g] for g in promising], [table.at(promising) for table in tables]
        refined = [tiling.best(solution.choice(g), points[g])[0] for g in promising]
        distinct = [dict(tiles) for tiles in dict.fromkeys(tuple(tiles.items()) for tiles in refined)]
        if all(tiles in points for tiles in distinct):
            places = [points.index(tiles) for tiles in distinct]
            return distinct, [table.at(places) for table in tables]
        points, tables = distinct, model.tables(_knobs(tiling.sizes, distinct))
    return points, tables
