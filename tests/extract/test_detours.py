from __future__ import annotations

from dataclasses import replace

import pytest

from ilang_eq.extract.detours import shortest, without_detours
from ilang_eq.extract.machine import load
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.rewrites.explore import explore
from ilang_eq.rewrites.registry import default
from ilang_eq.rewrites.space import Apply, Reduce, Space
from tests.extract import spaces

MACHINE = load("generic_x86_64")
SHIFTED = i("ij*20~ij") >> (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij")
"""exp(20·x - max 20·x): 20·x is needed anyhow."""


def explored(component: Component) -> Space:
    return explore(wire(component), default)[0]


def ways(space: Space) -> int:
    return sum(len(eclass.nodes) for eclass in space.classes.values())


def sizes(space: Space, extent: int) -> dict[int, int]:
    return dict.fromkeys(range(len(space.extents)), extent)


def test_hoisting_out_of_a_reduction_is_a_detour_where_what_it_reads_is_there_anyhow() -> None:
    space = explored(SHIFTED)
    (maximum,) = {
        c for c, e in space.classes.items() if any(isinstance(n, Reduce) for n in e.nodes) and len(e.nodes) > 1
    }
    left = without_detours(space, sizes(space, 500), MACHINE)
    assert [type(node) for node in left.classes[maximum].nodes] == [Reduce]


def test_hoisting_is_kept_where_it_spares_a_multiplication_of_every_element() -> None:
    space = explored(i("ij*20~ij") >> i(">ij~i"))
    (result,) = (c for c, _ in space.outputs)
    left = without_detours(space, sizes(space, 500), MACHINE)
    assert [type(node) for node in left.classes[result].nodes] == [Apply]


def test_division_is_put_off_where_that_spares_enough() -> None:
    """Of attention's scores or of its sums; of a wide product's factors it costs next to nothing either way."""
    attention = spaces.attention()
    left = without_detours(attention, {0: 500, 1: 64, 2: 500, 3: 64}, MACHINE)
    assert left.classes[13].nodes == attention.classes[13].nodes[1:]
    product = spaces.scaled_product()
    assert without_detours(product, sizes(product, 4096), MACHINE).classes[7].nodes == product.classes[7].nodes


@pytest.mark.parametrize("narrowed", [without_detours, shortest])
def test_a_product_may_pack_its_factors(narrowed: object) -> None:
    space = explored(i("ik*kj~ijk") >> i("+ijk~ij"))
    left = without_detours(space, sizes(space, 500), MACHINE)
    assert ways(left) == ways(space)


def test_of_ways_that_take_the_same_all_are_kept_unless_one_is_asked_for() -> None:
    """(A·B)·C or A·(B·C), of square matrices."""
    chain = (i("ik*kj~ijk") >> i("+ijk~ij") | I) >> i("ij*jl~ilj") >> i("+ilj~il")
    space = explored(chain)
    (result,) = (c for c, _ in space.outputs)
    assert len(space.classes[result].nodes) == 2
    assert len(without_detours(space, sizes(space, 300), MACHINE).classes[result].nodes) == 2
    assert len(shortest(space, sizes(space, 300), MACHINE).classes[result].nodes) == 1


def test_what_is_computed_ahead_of_the_calls_counts_for_nothing() -> None:
    """A weight's columns may be scaled ahead of all calls; at each call the result's are fewer."""
    space = explored((I | i("kj*j~kj")) >> i("ik*kj~ijk") >> i("+ijk~ij"))
    (result,) = (c for c, _ in space.outputs)
    rows = {axis: 4 if dimension == (0, 0) else 500 for axis, dimension in enumerate(space.extents)}
    first = [
        shortest(replace(space, constants=constants), rows, MACHINE).classes[result].nodes[0]
        for constants in (frozenset({1, 2}), frozenset[int]())
    ]
    assert [type(node) for node in first] == [Reduce, Apply]
