from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilang_eq.lang.component import Component, I, i
from ilang_eq.rewrites import default, rule_set
from ilang_eq.rewrites.check import check_space
from ilang_eq.rewrites.decode import operands
from ilang_eq.rewrites.explore import explore
from ilang_eq.rewrites.facts import batch_axes, loops_of, variants
from ilang_eq.rewrites.schedule import DEPTH
from ilang_eq.rewrites.space import Apply, Nest, Reduce, Space, Staging, Variant
from tests.rewrites.components import ATTENTION, MATMUL, MLP, SOFTMAX, space_of
from tests.rewrites.programs import random_program

SCHEDULE = rule_set("schedule")
HEADS = (
    i("bhik*bhjk~bhijk") >> i("+bhijk~bhij") >> (I & i(">bhij~bhi")) >> i("bhij-bhi~bhij")
    >> i("^bhij~bhij") >> (I & i("+bhij~bhi")) >> i("bhij/bhi~bhij") >> i("bhij*bhjk~bhikj") >> i("+bhikj~bhik")
)  # fmt: skip


def nests_of(component: Component, without: str | None = None) -> list[tuple[Nest, ...]]:
    space = space_of(component, SCHEDULE - without if without else SCHEDULE)
    return list(space.nests.values())


def test_nests_are_every_order_of_every_choice_of_axes() -> None:
    product, total = nests_of(MATMUL)
    every = [order for n in range(DEPTH + 1) for order in itertools.permutations((0, 1, 2), n)]
    assert sorted(product) == sorted(total) == sorted(every)


def test_nests_have_at_most_depth_loops() -> None:
    (nests,) = nests_of(i("ij*klm~ijklm"))
    assert len(nests) == sum(len(list(itertools.permutations(range(5), n))) for n in range(DEPTH + 1))


def test_without_interchange_nests_are_sorted() -> None:
    assert nests_of(MATMUL, "interchange")[0] == ((), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))


def test_without_split_there_are_no_tiles() -> None:
    space = space_of(MATMUL, SCHEDULE - "split")
    assert set(space.nests.values()) == {((),)}
    assert not space.splittable
    assert {staging.inline for staging in space.stagings} == {True}


def test_batch_axes_are_outermost_in_order_and_all_or_none() -> None:
    space = space_of(HEADS)
    assert batch_axes(space.classes) == (0, 1)
    for nests in space.nests.values():
        assert all(nest == () or nest[:2] == (0, 1) for nest in nests)
        assert max(map(len, nests)) <= 2 + DEPTH
    assert min(staging.site for staging in space.stagings if not staging.inline) == 2


@pytest.mark.parametrize(
    ("component", "batch"),
    [
        (SOFTMAX, (0,)),
        (MATMUL, ()),
        (MLP, ()),
        (i("ij*ij~ij") >> i("^ij~ji"), (0, 1)),
        (i("ij*2~ij") >> i("ij*.~ij"), (0, 1)),
        (i("/.~.") >> i(".*ij~ij"), (0, 1)),
    ],
)
def test_batch_axes_belong_to_every_variant_and_every_input(component: Component, batch: Nest) -> None:
    assert batch_axes(space_of(component).classes) == batch


def legal(space: Space) -> set[Staging]:
    """Every legal staging, by definition."""
    nodes = {v: space.classes[v.of].nodes[v.node] for v in space.nests}
    repairable = {repair.statistic for repair in space.repairs}
    batch = len(batch_axes(space.classes))
    found: set[Staging] = set()
    edges = [(c, k, p) for c in nodes for k, x in enumerate(operands(nodes[c])) for p in nodes if p.of == x]
    for consumer, k, producer in edges:
        made = nodes[producer]
        reduced = set(made.axes) if isinstance(made, Reduce) else set()
        same = loops_of(nodes[consumer], space.classes, consumer.of) == loops_of(made, space.classes, producer.of)
        for nest, other in itertools.product(space.nests[consumer], space.nests[producer]):
            if isinstance(made, Apply) and same and nest == other:
                found.add(Staging(consumer, nest, k, len(nest), True, producer, other))
            for site in range(max(1, batch), len(nest) + 1):
                finished = not reduced & set(nest[:site])
                if nest[:site] == other[:site] and (finished or producer.of in repairable):
                    found.add(Staging(consumer, nest, k, site, False, producer, other))
    return found


@pytest.mark.parametrize("component", [SOFTMAX, ATTENTION, MLP, i("ij*ij~ij") >> (I & I) >> i("ij-ij~ij")])
def test_staging_is_what_its_definition_says(component: Component) -> None:
    space = space_of(component)
    check_space(space)
    assert set(space.stagings) == legal(space)
    assert len(space.stagings) == len(legal(space))


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_staging_of_random_programs_is_what_its_definition_says(seed: int) -> None:
    space, _ = explore(random_program(seed).graph, default)
    check_space(space)
    assert set(space.stagings) == legal(space)


def test_an_unfinished_producer_needs_the_online_rules() -> None:
    def unfinished(space: Space) -> list[Staging]:
        node = {v: space.classes[v.of].nodes[v.node] for v in space.nests}
        return [
            s
            for s in space.stagings
            if not s.inline and isinstance(made := node[s.producer], Reduce) and set(made.axes) & set(s.nest[: s.site])
        ]

    assert unfinished(space_of(SOFTMAX))
    assert not unfinished(space_of(SOFTMAX, default - "online"))
    assert not unfinished(space_of(SOFTMAX, default - "stage-online"))


@pytest.mark.parametrize(("rule", "inline"), [("stage", {True}), ("inline", {False})])
def test_dropping_a_staging_rule_drops_its_facts(rule: str, inline: set[bool]) -> None:
    space = space_of(MLP, default - rule)
    assert {staging.inline for staging in space.stagings} == inline


def test_values_behind_a_view_and_inputs_are_never_staged() -> None:
    space = space_of(i("2*ij~ij") >> (I & I) >> i("ik*jk~ijk") >> i("+ijk~ij"), SCHEDULE)
    producers = {(staging.consumer, staging.operand) for staging in space.stagings}
    product = next(v for v in space.nests if space.classes[v.of].axes == (0, 1, 2))
    assert (product, 0) in producers
    assert (product, 1) not in producers


def test_variants_are_what_something_computes() -> None:
    space = space_of(i("2*ij~ij") >> i("+ij~i"))
    assert variants(space.classes) == tuple(space.nests)
    assert Variant(0, 0) not in space.nests
