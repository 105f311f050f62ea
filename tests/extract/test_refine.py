"""The walk over tile sizes by the full model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from ilang_eq.extract import refine
from ilang_eq.extract.assemble import Block

SIZES = (1, 2, 4, 8, 16, 32, 64)
MANY = tuple(range(refine.LOOK))


@dataclass(frozen=True)
class Plan:
    """Stands for a graph of so many expressions that a step goes to the next size; for its schedule, too.

    Its register tiles have ``alone`` steps, if that is not 0; the loops around its panels may be ``exchanged``.
    """

    name: str
    size: int
    alone: int = 0
    nodes: tuple[int, ...] = MANY
    exchanged: bool = False

    @property
    def tiles(self) -> Mapping[int, int]:
        return {0: self.size}

    @property
    def blocks(self) -> Mapping[int, Block]:
        return {7: Block(1, {0: self.alone})} if self.alone else {}


@dataclass(frozen=True)
class Stand:
    """Stands for a candidate with one axis."""

    graph: Plan
    cost: float = 0.0

    @property
    def schedule(self) -> Plan:
        return self.graph

    def retiled(self, tiles: Mapping[int, int]) -> Stand:
        return Stand(replace(self.graph, size=tiles[0]))

    def around_panels(self) -> list[tuple[int, int]]:
        return [(0, 1)]

    def exchanged(self, outer: int, inner: int) -> Stand:
        return Stand(replace(self.graph, exchanged=(outer, inner) == (0, 1)))


@dataclass(frozen=True)
class Table:
    """Stands for the full model: the cost of a candidate at each size, 10 where none is given.

    What has ``gains`` takes less by this factor with loops exchanged, others more.
    """

    costs: Mapping[str, Mapping[int, float]]
    asked: set[Plan] = field(default_factory=set)
    gains: Mapping[str, float] = field(default_factory=dict)

    def seconds(self, plan: Plan, most: float = math.inf) -> float:
        self.asked.add(plan)
        cost = self.costs[plan.name].get(plan.size, 10.0)
        return min(cost / self.gains.get(plan.name, 0.5) if plan.exchanged else cost, most)


def walked(table: Table, in_the_end: Sequence[int] = SIZES, alone: int = 0) -> Plan:
    """Where the search ends, of candidates that all begin with tiles of 8."""
    begin = [Stand(Plan(name, 8, alone)) for name in table.costs]
    found = refine.refined(cast("Any", begin), {0: SIZES}, {0: in_the_end}, cast("Any", table))
    return cast("Any", found[0].graph)


def alike(*candidates: tuple[float, int]) -> list[int]:
    """How many candidates with these costs and tiles are taken for alike, in groups."""
    stands = [Stand(Plan("", size), cost) for cost, size in candidates]
    return [len(group) for group in refine._alike(cast("Any", stands))]


def test_the_same_tiles_at_nearly_the_same_cost_are_alike() -> None:
    assert alike((1.0, 8), (1.0001, 8), (1.1, 8)) == [2, 1]


def test_other_tiles_are_not_alike_whatever_they_cost() -> None:
    """What costs the same by chance may lie at the start of a better walk."""
    assert alike((1.0, 8), (1.0, 16), (1.0001, 8), (1.0002, 16)) == [2, 2]


def test_what_is_alike_may_lie_at_the_start_of_a_better_walk() -> None:
    """Of two ways to do the rest of a product, both limited by the product, one gains from smaller tiles."""
    assert walked(Table({"one": {8: 1.0}, "other": {8: 1.0005, 4: 0.9, 2: 0.6}})) == Plan("other", 2)


def test_what_is_alike_takes_nobody_elses_first_step() -> None:
    same = {f"same {n}": {8: 1.0 + n / 1e4} for n in range(refine.BEGINNERS)}
    assert walked(Table({**same, "other": {8: 1.1, 4: 0.9}})) == Plan("other", 4)


def test_what_costs_exactly_the_same_takes_one_first_step() -> None:
    table = Table({"one": {8: 1.0}, "same": {8: 1.0}})
    walked(table)
    assert Plan("one", 4) in table.asked
    assert Plan("same", 4) not in table.asked


def test_a_walk_goes_past_those_that_have_ended() -> None:
    """Two lead after the first step, and stay where they are."""
    table = Table({"one": {8: 1.0}, "two": {8: 1.02, 16: 1.01}, "three": {8: 1.1, 4: 1.035, 2: 1.02, 1: 0.8}})
    assert walked(table) == Plan("three", 1)


def test_sizes_for_the_end_are_looked_at_where_the_walks_have_ended() -> None:
    all_of_it = 1000
    table = Table({"one": {8: 1.0, 16: 0.9, all_of_it: 0.8}, "two": {8: 1.05, all_of_it: 0.1}})
    last = (*SIZES[: SIZES.index(16) + 1], all_of_it)
    assert walked(table, last) == Plan("one", all_of_it)
    assert Plan("two", all_of_it) not in table.asked


def test_what_is_far_behind_after_its_first_step_stays_there() -> None:
    table = Table({"one": {8: 1.0}, "two": {8: 1.3, 16: 1.25, 32: 1.2}})
    walked(table)
    assert Plan("two", 16) in table.asked, "the first step looks at the next size"
    assert Plan("two", 32) not in table.asked


def steps_of_one(costs: Mapping[int, float], nodes: tuple[int, ...] = MANY) -> set[int]:
    """The tiles that are looked at of what costs so much at each size; there is one of which all sizes cost 1."""
    table = Table({"rival": dict.fromkeys(range(100), 1.0), "other": costs})
    begin = [Stand(Plan(name, 8, nodes=nodes)) for name in table.costs]
    sizes = tuple(range(1, 40))
    refine.refined(cast("Any", begin), {0: sizes}, {0: sizes}, cast("Any", table))
    return {plan.size for plan in table.asked if plan.name == "other"}


def test_a_walk_that_would_not_catch_up_ends() -> None:
    assert 15 not in steps_of_one({8: 1.05, 9: 1.049, 11: 1.048, 13: 1.047, 15: 0.5})


def test_a_walk_that_may_catch_up_goes_on() -> None:
    assert 15 in steps_of_one({8: 1.045, 9: 1.035, 11: 1.025, 13: 1.015, 15: 0.9})


def test_of_many_expressions_fewer_walk() -> None:
    costs = {8: 1.09, 9: 1.08, 11: 1.07, 13: 1.05, 15: 0.9}
    few = tuple(range(refine.LOOK // 2))
    assert 15 not in steps_of_one(costs)
    assert 15 in steps_of_one(costs, few)


@dataclass(frozen=True)
class Tiled:
    """Stands for a candidate with these tiles, of many expressions."""

    tiles: Mapping[int, int]
    cost: float = 1.0
    nodes: tuple[int, ...] = tuple(range(refine.LOOK))

    @property
    def schedule(self) -> Tiled:
        return self

    @property
    def graph(self) -> Tiled:
        return self


def test_a_step_looks_first_along_the_axis_of_the_one_before() -> None:
    before, now = Tiled({0: 8, 1: 8}), Tiled({0: 16, 1: 8})
    options = {0: (4, 8, 16, 32), 1: (8, 16)}
    first, second, *_ = refine._nearby(cast("Any", now), cast("Any", before), options, rival=0.5)
    assert {tiles[0] for tiles in first} == {4, 8, 32}
    assert second == [{0: 16, 1: 16}]


def test_a_register_tile_that_stands_alone_is_looked_at_beyond_what_costs_more() -> None:
    """And if that gains, the walk goes on from there."""
    costs = {8: 1.0, 4: 1.1, 2: 1.1, 1: 0.8}
    assert walked(Table({"one": {**costs, 1: 0.9}}), alone=1).size == 1
    assert walked(Table({"one": costs})).size == 8
    assert walked(Table({"one": {8: 1.0, 4: 1.1, 2: 0.9, 1: 0.8}}), alone=2).size == 1


def test_a_register_tile_alone_has_to_gain_something() -> None:
    assert walked(Table({"one": {8: 1.0, 4: 1.1, 2: 1.1, 1: 0.995}}), alone=1).size == 8


def test_panels_are_copied_in_another_order_where_that_is_quicker() -> None:
    """Of what is not the best as it is, too; the walk goes on from there."""
    costs = {"one": {8: 1.0}, "two": {8: 1.05, 4: 1.045}}
    found = walked(Table(costs, gains={"two": 1.2}))
    assert (found.name, found.exchanged, found.size) == ("two", True, 4)
    assert not walked(Table(costs, gains={"two": 1.04})).exchanged


@dataclass(frozen=True)
class Several:
    """Stands for a candidate with several axes, its graph and its schedule, that takes longer the larger its tiles."""

    sizes: tuple[int, ...]
    nodes: tuple[int, ...] = ()
    cost: float = 64.0**3

    @property
    def tiles(self) -> Mapping[int, int]:
        return dict(enumerate(self.sizes))

    @property
    def graph(self) -> Several:
        return self

    schedule = graph

    def retiled(self, tiles: Mapping[int, int]) -> Several:
        return replace(self, sizes=tuple(tiles.values()), cost=math.prod(tiles.values()))


class Volume:
    """Stands for the full model."""

    def seconds(self, graph: Several, most: float = math.inf) -> float:
        return min(graph.cost, most)


@pytest.mark.parametrize(
    ("sizes", "nodes", "best"),
    [
        ((64, 64), 99, [(4, 4)]),
        ((64, 1), 99, [(4, 4)]),
        ((64, 64, 64), refine.FEW, [(4, 4, 4)]),
        ((64, 1, 64, 64), refine.FEW, [(4, 1, 4, 4)]),
        ((64, 1, 64), refine.FEW, [(4, 1, 4)]),
        ((64, 64, 64), refine.FEW + 1, []),
        ((64, 64, 64, 64), 1, []),
        ((64,), 1, []),
    ],
)
def test_tiles_far_apart_are_tried_of_a_few_axes(sizes: tuple[int, ...], nodes: int, best: list[object]) -> None:
    """All of two axes; of more those that have tiles, if they are three at most and few expressions are judged."""
    begin = Several(sizes, tuple(range(nodes)))
    assert [other.sizes for other in far_apart(begin)] == best


def far_apart(*begin: Several, most: float = 64.0**3) -> list[Any]:
    """The tiles of candidates that are found far from where they are."""
    return list(refine._elsewhere(cast("Any", begin), dict.fromkeys(range(4), SIZES), cast("Any", Volume()), most))


def test_tiles_far_apart_are_tried_of_what_is_not_the_best_as_it_is_too() -> None:
    """The bases of three products take 0.95 of what they take if only the best are tried."""
    best, other = Several((64, 64, 64, 64), (1,), cost=9.0), Several((32, 32), (1,), cost=10.0)
    assert [found.sizes for found in far_apart(best, other, most=17.0)] == [(4, 4)]
    assert not far_apart(best, other, most=16.0)
