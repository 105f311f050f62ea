from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from ilang_eq.extract.additive import AdditiveModel, build, estimator
from ilang_eq.extract.assemble import assemble
from ilang_eq.extract.elimination import Choice, Table, eliminate
from ilang_eq.extract.machine import load
from ilang_eq.extract.rows import Knobs, Processor
from ilang_eq.extract.structure import Structure
from ilang_eq.lang.graph import Graph
from ilang_eq.lang.shapes import infer
from ilang_eq.lower import lower
from ilang_eq.lower.check import check
from ilang_eq.lower.ir import Comment, Program, Statement
from ilang_eq.lower.ir import For as IrFor
from ilang_eq.rewrites.space import Space
from tests.extract import spaces
from tests.lower.execute import execute

SMALL = (
    spaces.matmul,
    spaces.softmax,
    spaces.log_sum_exp,
    spaces.scaled_sum,
    spaces.shared_exponential,
    spaces.gram,
    spaces.scaled_product,
)


def knobs(space: Space, *tiles: float) -> Knobs:
    """Extents 4 to 7, and the same tile size for every axis."""
    sizes = {dimension: 4 + n for n, dimension in enumerate(dict.fromkeys(space.extents))}
    extents = {axis: sizes[dimension] for axis, dimension in enumerate(space.extents)}
    return Knobs(extents, {axis: np.array(tiles) for axis in extents})


@cache
def model_of(make: Callable[[], Space], threads: int = 2) -> AdditiveModel:
    space = make()
    structure, processor = Structure(space), Processor(load("generic_x86_64"), threads)
    return build(structure, processor, estimator(structure, processor, knobs(space, 1.0, 2.0)))


def total(tables: Sequence[Table], choice: Choice, point: int) -> float:
    """The sum of one entry of every table, added up one by one."""
    found = 0.0
    for table in tables:
        entry: np.ndarray = table.values
        for variable in table.scope:
            entry = entry[choice[variable]]
        found += float(entry[min(point, len(entry) - 1)])
    return found


@pytest.mark.parametrize("make", SMALL)
def test_elimination_finds_what_trying_everything_finds(make: Callable[[], Space]) -> None:
    model = model_of(make)
    tables = model.tables(knobs(model.structure.space, 1.0, 2.0))
    solution = eliminate(model.sizes, tables, 2)
    for point in range(2):
        everything = (total(tables, choice, point) for choice in product(*map(range, model.sizes)))
        best = min(everything)
        assert math.isfinite(best)
        assert solution.costs[point] == pytest.approx(best)
        assert total(tables, solution.choice(point), point) == pytest.approx(best)


def random_choices(model: AdditiveModel, seed: int, count: int) -> Iterator[tuple[Choice, dict[int, int]]]:
    """Legal choices with tile sizes, all as likely as random costs make them."""
    random = np.random.default_rng(seed)
    finite = [np.isfinite(t.values[..., :1]) for t in model.tables(knobs(model.structure.space, 2.0))]
    scopes = [t.scope for t in model.tables(knobs(model.structure.space, 2.0))]
    legal = [Table(scope, np.where(found, 0.0, np.inf)) for scope, found in zip(scopes, finite, strict=True)]
    for _ in range(count):
        costs = [Table((v,), random.random((size, 1))) for v, size in enumerate(model.sizes)]
        choice = eliminate(model.sizes, [*legal, *costs], 1).choice(0)
        tiles = {axis: int(random.integers(1, 4)) for axis in range(len(model.structure.space.extents))}
        yield choice, tiles


def arguments(space: Space, graph: Graph) -> list[np.ndarray]:
    extents = knobs(space).extents
    sizes = {dimension: extents[axis] for axis, dimension in enumerate(space.extents)}
    shapes = infer(graph)
    random = np.random.default_rng(0)
    return [
        random.standard_normal(tuple(sizes[shapes.input_extent(k, d)] for d in range(rank or 0)))
        for k, rank in enumerate(shapes.ranks)
    ]


def unscheduled(graph: Graph) -> Graph:
    return replace(graph, nodes=tuple(replace(n, expr=replace(n.expr, splits=(), order=())) for n in graph.nodes))


def computed(program: Program) -> Counter[str]:
    """How often each expression's loops appear."""

    def comments(statements: Sequence[Statement]) -> Iterator[str]:
        for statement in statements:
            if isinstance(statement, Comment):
                yield statement.text
            elif isinstance(statement, IrFor):
                yield from comments(statement.body)

    return Counter(text for kernel in program.kernels for text in comments(kernel.body))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("make", [*SMALL, spaces.attention])
def test_every_choice_allowed_lowers_computes_right_and_nothing_twice(make: Callable[[], Space], threads: int) -> None:
    model = model_of(make, threads)
    for choice, tiles in random_choices(model, seed=threads, count=12):
        graph = assemble(model.structure, replace(model.schedule(choice), tiles=tiles))
        program = lower(graph)
        check(program)
        written = Counter(str(node.expr) for node in graph.nodes)
        assert not {text for text, times in computed(program).items() if text in written and times > written[text]}
        inputs = arguments(model.structure.space, graph)
        for got, want in zip(execute(program, inputs), execute(lower(unscheduled(graph)), inputs), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


def test_threads_share_the_work_of_large_kernels_only() -> None:
    large = Knobs({0: 512, 1: 512, 2: 512}, {axis: np.array([16.0]) for axis in range(3)})
    small = Knobs({0: 4, 1: 4, 2: 4}, {axis: np.array([2.0]) for axis in range(3)})
    alone, both = (model_of(spaces.matmul, threads) for threads in (1, 2))
    cost = {
        (knobs_.extents[0], model.processor.threads): eliminate(model.sizes, model.tables(knobs_), 1).costs[0]
        for knobs_, model in product((large, small), (alone, both))
    }
    assert cost[512, 2] < 0.6 * cost[512, 1]
    assert cost[4, 2] > cost[4, 1], "starting threads takes longer than a small product"


def test_the_model_of_one_choice_costs_what_the_choice_costs() -> None:
    model = model_of(spaces.softmax)
    at = knobs(model.structure.space, 1.0, 2.0)
    solution = eliminate(model.sizes, model.tables(at), 2)
    for point in range(2):
        alone = model.only(model.needed(solution.choice(point)))
        assert sum(t.values.reshape(-1, 2)[0, point] for t in alone.tables(at)) == pytest.approx(solution.costs[point])
