from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.graph import Input
from ilang_eq.lang.interpreter import interpret
from ilang_eq.lang.wiring import wire
from ilang_eq.rewrites import rule_set
from ilang_eq.rewrites.explore import explore
from ilang_eq.rewrites.naming import Terms, name_axes
from ilang_eq.rewrites.space import Apply, ENode, Number, Read, Reduce, View
from tests.rewrites.components import ATTENTION
from tests.rewrites.evaluation import outputs_of
from tests.rewrites.programs import random_program


def nodes(component: Component) -> tuple[ENode, ...]:
    return name_axes(wire(component)).nodes


def test_an_axis_keeps_its_number_wherever_it_flows() -> None:
    assert nodes(i("ik*jk~ijk") >> i("+abc~ab") >> i("^pq~qp")) == (
        Read(0, (1, 2)),
        Read(1, (0, 2)),
        Apply("mul", (0, 1)),
        Reduce("add", (2,), 2),
        Apply("pow", (3,)),
    )


def test_extents_name_the_input_dimension_of_each_axis() -> None:
    terms = name_axes(wire(ATTENTION))
    assert terms.outputs == ((11, (0, 1)),)
    assert terms.extents == ((0, 0), (2, 1), (1, 0), (0, 1))


def test_renaming_letters_changes_nothing() -> None:
    renamed = (
        i("zk*yk~zyk") >> i("+abc~ab") >> (I & i(">uv~u")) >> i("xy-x~xy") >> i("^ba~ba") >> (I & i("+ij~i"))
        >> i("qr/q~qr") >> i("ac*cb~abc") >> i("+kij~ki")
    )  # fmt: skip
    assert name_axes(wire(renamed)) == name_axes(wire(ATTENTION))


def test_readers_of_one_input_share_a_naming_where_they_can() -> None:
    softmax = (I & i(">ij~i")) >> i("kl-k~kl")
    assert nodes(softmax)[:2] == (Read(0, (0, 1)), Reduce("max", (1,), 0))


def test_an_input_read_under_two_namings_is_two_reads() -> None:
    gram = (I & I) >> i("ik*jk~ijk") >> i("+ijk~ij")
    assert nodes(gram)[:2] == (Read(0, (0, 2)), Read(0, (1, 2)))


@pytest.mark.parametrize(
    ("reader", "view"),
    [
        ((I & I) >> i("ik*jk~ijk"), View(2, (0, 2), (1, 2))),
        ((I & I) >> i("ij+ji~ij"), View(2, (0, 1), (1, 0))),
    ],
)
def test_a_value_read_under_two_namings_is_viewed(reader: Component, view: View) -> None:
    found = nodes(i("2*ij~ij") >> reader)
    assert found[:3] == (Number(2.0), Read(0, view.source), Apply("mul", (0, 1)))
    assert found[3] == view


def test_views_of_one_value_share_a_naming() -> None:
    gram = (I & I) >> i("ik*jk~ijk") >> i("+ijk~ij")
    found = nodes(i("2*ij~ij") >> (gram & I) >> i("ij*jk~ijk"))
    assert sum(isinstance(node, View) for node in found) == 1


def test_a_diagonal_of_an_input_is_a_read_and_of_a_value_a_view() -> None:
    assert nodes(i("+ii~i")) == (Read(0, (0, 0)), Apply("add", (0,)))
    assert nodes(i("^ij~ij") >> i("+ii~i"))[2] == View(1, (1, 2), (0, 0))


def test_equal_expressions_are_one_node() -> None:
    assert len(nodes(i("^ij~ij") & i("^pq~pq"))) == 2


def test_a_passed_input_is_its_own_output() -> None:
    terms: Terms = name_axes(wire(I & i("^ij~ij")))
    assert terms.outputs == ((Input(0), ()), (1, (0, 1)))


@given(st.integers(0, 10_000))
def test_terms_compute_what_the_graph_does(seed: int) -> None:
    program = random_program(seed)
    space, _ = explore(program.graph, rule_set("none"))
    for ours, theirs in zip(outputs_of(space, program.arrays), interpret(program.graph, program.arrays), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
