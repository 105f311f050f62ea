"""Schedules to rank: what the search finds for a workload, at many tile sizes, drawn evenly over predicted cost.

Structures come from ``optimize`` under several seeds, threads and problem sizes. Each is varied in its tile sizes, an
axis of the component at a time, so that staged expressions keep splitting alike. What lowers and is not absurd by the
model's own account is the pool; the sample takes the model's favourites, and the rest evenly from strata of log cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.workloads import Shape, Workload
from ilang_eq import Component, ILangError, optimize
from ilang_eq.extract.full_model import Cost, program_cost
from ilang_eq.extract.machine import Machine
from ilang_eq.lang.expr import Expr
from ilang_eq.lang.graph import Graph
from ilang_eq.lang.reading import read_component
from ilang_eq.lang.shapes import Shapes, infer
from ilang_eq.lang.unwiring import unwire
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower

TILES = (4, 6, 8, 12, 14, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""What a tile size may be changed to."""

FARTHEST = 4
"""A tile size changes by at most this factor at a time."""

ABSURD = 20.0
"""Predicted costs beyond this multiple of the best are left out."""

FAVOURITES = 8
"""The model's first choices, which are always in the sample."""

STRATA = 8
VARIATIONS = 12
"""Tile choices tried for each structure."""

_SEEDS = (0, 1)
_SCALES = (1, 4)
"""Divisors of the shapes at which structures are looked for."""

Extents = Mapping[tuple[int, int], int]
Loops = tuple[tuple[int, int], str, tuple[int, ...]]
"""What splits alike: the dimension, the axis, and its factors."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A schedule, and the seconds that the model expects."""

    text: str
    predicted: float


def sample(workload: Workload, machine: Machine, threads: int, size: int, seed: int) -> list[Contender]:
    """``size`` contenders of ``workload`` at its ranking shapes, cheapest first; fewer if the pool has no more."""
    rng = np.random.default_rng(seed)
    shapes = workload.ranking_shapes
    pool: dict[str, Contender] = {}
    for structure in _structures(workload, threads):
        for text in dict.fromkeys((str(structure), *varied(structure, shapes, rng))):
            if text not in pool and (cost := predict(text, shapes, machine, threads)) is not None:
                pool[text] = Contender(text, cost.seconds)
    return stratified(pool.values(), size, rng)


def predict(text: str, shapes: Sequence[Shape], machine: Machine, threads: int) -> Cost | None:
    """What the model makes of a schedule; None if it cannot be lowered."""
    try:
        graph = wire(read_component(text))
        return program_cost(lower(graph, alternatives=False), infer(graph).bind(tuple(shapes)), machine, threads)
    except ILangError:
        return None


def stratified(pool: Iterable[Contender], size: int, rng: np.random.Generator) -> list[Contender]:
    """The ``FAVOURITES``, and others from strata of log cost, as evenly as these are filled; cheapest first."""
    ordered = sorted(pool, key=lambda c: (c.predicted, c.text))
    best = ordered[0].predicted
    near = [c for c in ordered if c.predicted <= ABSURD * best]
    favourites = min(FAVOURITES, size)
    taken, rest = near[:favourites], near[favourites:]
    strata: list[list[Contender]] = [[] for _ in range(STRATA)]
    for contender in rest:
        place = math.log(contender.predicted / best) / math.log(ABSURD) * STRATA
        strata[min(int(place), STRATA - 1)].append(contender)
    queues = [[stratum[n] for n in rng.permutation(len(stratum))] for stratum in strata]
    while len(taken) < size and any(queues):
        for queue in queues:
            if queue and len(taken) < size:
                taken.append(queue.pop())
    return sorted(taken, key=lambda c: (c.predicted, c.text))


def _structures(workload: Workload, threads: int) -> list[Component]:
    """Scheduled components that the search comes up with, each once, the best of every search first."""
    component = read_component(workload.text)
    found: dict[Component, None] = {}
    for scale in _SCALES:
        shapes = [tuple(max(n // scale, 1) for n in shape) for shape in workload.ranking_shapes]
        for seed in _SEEDS:
            best = optimize(component, shapes, threads=threads, seed=seed, database=False)
            found.update(dict.fromkeys(s.component for s in best.schedules if s is not best.baseline))
    return list(found)


def varied(
    component: Component, shapes: Sequence[Shape], rng: np.random.Generator, tiles: Sequence[int] = TILES
) -> Iterator[str]:
    """``component`` with other tile sizes, out of ``tiles``."""
    graph = wire(component)
    inferred = infer(graph)
    extents = inferred.bind(tuple(shapes))
    keys = sorted({key for n in range(len(graph.nodes)) for key in _split_axes(graph, inferred, n)})
    for _ in range(VARIATIONS if keys else 0):
        change = {key: _other_factors(key, extents, rng, tiles) for key in keys if rng.random() < 2 / max(len(keys), 2)}
        nodes = tuple(replace(node, expr=_split(node.expr, change, inferred, n)) for n, node in enumerate(graph.nodes))
        yield str(unwire(replace(graph, nodes=nodes)))


def _split_axes(graph: Graph, inferred: Shapes, node: int) -> list[Loops]:
    return [(inferred.extent(node, axis), axis, factors) for axis, factors in graph.nodes[node].expr.splits]


def _other_factors(key: Loops, extents: Extents, rng: np.random.Generator, tiles: Sequence[int]) -> tuple[int, ...]:
    """The factors of an axis, one of them moved on the ladder of ``tiles``."""
    dimension, _, factors = key
    changed = int(rng.integers(len(factors)))
    old = factors[changed]
    others = math.prod(factors) // old
    near = [t for t in tiles if old / FARTHEST <= t <= old * FARTHEST and t * others < extents[dimension]]
    new = int(rng.choice(near)) if near else old
    return (*factors[:changed], new, *factors[changed + 1 :])


def _split(expr: Expr, change: Mapping[Loops, tuple[int, ...]], inferred: Shapes, node: int) -> Expr:
    def factors(axis: str, old: tuple[int, ...]) -> tuple[int, ...]:
        return change.get((inferred.extent(node, axis), axis, old), old)

    return replace(expr, splits=tuple((axis, factors(axis, old)) for axis, old in expr.splits))
