"""Ranks, extent classes, and the errors when they contradict each other."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given

from ilang_eq.errors import ShapeError
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.expr import Literal
from ilang_eq.lang.graph import Input, Value
from ilang_eq.lang.shapes import Shapes, infer
from ilang_eq.lang.wiring import wire
from tests.conformance_cases import cases, component
from tests.strategies import Typed, components


def shapes_of(built: Component) -> Shapes:
    return infer(wire(built))


MATMUL = i("ik*kj~ijk") >> i("+ijk~ij")
ATTENTION = (
    i("ik*jk~ijk")
    >> i("+ijk~ij")
    >> (I & i(">ij~i"))
    >> i("ij-i~ij")
    >> i("^ij~ij")
    >> (I & i("+ij~i"))
    >> i("ij/i~ij")
    >> i("ij*jk~ikj")
    >> i("+ikj~ik")
)


def test_classes_of_a_matrix_product() -> None:
    shapes = shapes_of(MATMUL)
    assert shapes.ranks == (2, 2)
    assert shapes.ties == (((0, 1), (1, 0)),)
    assert [shapes.extent(0, axis) for axis in "ijk"] == [(0, 0), (1, 1), (0, 1)]
    assert [shapes.extent(1, axis) for axis in "ijk"] == [(0, 0), (1, 1), (0, 1)]
    assert shapes.value_dims(Value(0)) == ((0, 0), (1, 1), (0, 1))
    assert shapes.value_dims(Value(1)) == ((0, 0), (1, 1))
    assert shapes.value_dims(Input(1)) == ((0, 1), (1, 1))
    assert shapes.value_dims(Literal(2.0)) == ()
    assert shapes.input_extent(1, 0) == (0, 1)


def test_classes_of_attention() -> None:
    shapes = shapes_of(ATTENTION)
    assert shapes.ranks == (2, 2, 2)
    assert shapes.ties == (((0, 1), (1, 1)), ((1, 0), (2, 0)))
    assert shapes.extent(7, "k") == (2, 1)


def test_names_mean_nothing_between_expressions() -> None:
    shapes = shapes_of(i("ij~ji") >> i("ij*j~ij"))
    assert shapes.ranks == (2, 1)
    assert shapes.ties == (((0, 0), (1, 0)),)


def test_a_diagonal_ties_dimensions_of_one_input() -> None:
    assert shapes_of(i("+iij~j")).ties == (((0, 0), (0, 1)),)


def test_an_input_that_is_passed_through_has_any_rank() -> None:
    shapes = shapes_of(I | i("-i~i"))
    assert shapes.ranks == (None, 1)
    assert shapes.bind([(2, 3, 4), (5,)]) == {(0, 0): 2, (0, 1): 3, (0, 2): 4, (1, 0): 5}
    with pytest.raises(ShapeError, match="only passed through"):
        shapes.value_dims(Input(0))


@given(components())
def test_components_bind_the_shapes_they_were_made_for(typed: Typed) -> None:
    graph = wire(typed.component)
    shapes = infer(graph)
    extents = shapes.bind(typed.inputs)
    for source, shape in zip(graph.outputs, typed.outputs, strict=True):
        if isinstance(source, Value):
            assert tuple(extents[d] for d in shapes.value_dims(source)) == shape
    for members in shapes.ties:
        assert list(members) == sorted(members)
        assert {shapes.input_extent(*m) for m in members} == {members[0]}


@pytest.mark.parametrize("case", [c for c in cases("schedules.json") if c["ok"]], ids=lambda c: c["id"])
def test_schedules_bind(case: dict[str, Any]) -> None:
    shapes = shapes_of(component(case["tree"]))
    for numeric in case["numeric"]:
        assert len(shapes.bind(numeric["shapes"])) == sum(map(len, numeric["shapes"]))


@pytest.mark.parametrize(
    ("built", "words"),
    [
        (i("ij~ij") >> i("-i~i"), "ij~ij makes a value of rank 2, but -i~i reads it as i, of rank 1"),
        (i("+ij~.") >> i("-i~i"), "makes a value of rank 0"),
        (i("ij~ij") & i("-i~i"), "input 0 is read at two ranks"),
        ((I & I) >> i("ij*i~ij"), "input 0 is read at two ranks"),
    ],
)
def test_contradictory_ranks(built: Component, words: str) -> None:
    with pytest.raises(ShapeError) as caught:
        shapes_of(built)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(4, 5)], "1 shapes given"),
        ([(4, 5)] * 4, "4 shapes given"),
        ([(4,), (4, 5), (4, 5)], "input 0 has shape (4,), of rank 1"),
        ([(4, 5), (4, 5), (4, -5)], "input 2 has shape (4, -5)"),
        (
            [(4, 5), (4, 6), (4, 5)],
            "dimension 1 of input 1 has extent 6, but dimension 1 of input 0, tied to it by axis k of ik*jk~ijk, "
            "has extent 5",
        ),
        (
            [(4, 5), (7, 5), (8, 5)],
            "dimension 0 of input 2 has extent 8, but dimension 0 of input 1, tied to it by axis j of ik*jk~ijk, "
            "4 more, axis j of ij*jk~ikj, has extent 7",
        ),
    ],
)
def test_shapes_that_do_not_fit(shapes: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(ShapeError) as caught:
        shapes_of(ATTENTION).bind(shapes)
    assert caught.value.message == message
    assert caught.value.expected


def test_the_way_between_two_tied_dimensions() -> None:
    with pytest.raises(
        ShapeError, match="tied to it by axis i of i-j~ij, axis k of \\+kl~lk, axis m of nm\\*m~nm, has"
    ):
        shapes_of(i("i-j~ij") >> i("kl~lk") >> i("nm*m~nm")).bind([(2,), (3,), (4,)])


def test_near_linear_in_the_graph() -> None:
    chain = i("ij*ij~ij")
    for _ in range(20_000):
        chain = chain >> i("-ij~ij")
    graph = wire(chain)
    started = time.process_time()
    shapes = infer(graph)
    assert shapes.extent(20_000, "j") == (0, 1)
    assert time.process_time() - started < 10
