"""Values as sums: each sum is what its node computes, and equal values have equal sums."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.graph import Graph, Value
from ilang_eq.lang.wiring import wire
from ilang_eq.lower.sums import Sums, bounded

LINEAR = ["ij+ij~ij", "ij-ij~ij", "ij+ji~ij", "ij*2~ij", "0.25*ij~ij", "ij/4~ij", "-ij~ij", "ij-1~ij", "+ji~ij"]


def outputs(graph: Graph) -> list[int]:
    return [wire.node for wire in graph.outputs if isinstance(wire, Value)]


@pytest.mark.parametrize("seed", range(40))
def test_a_sum_of_multiples_of_an_input_is_what_is_computed(seed: int) -> None:
    rng = random.Random(seed)
    component: Component = i("+ij~ij")
    for _ in range(5):
        step = i(rng.choice(LINEAR))
        component = component >> ((I & I) >> step if wire(step).inputs == 2 else step)
    graph = wire(component)
    (output,) = outputs(graph)
    x = np.random.default_rng(seed).standard_normal((5, 5)).astype(np.float32)
    letters = graph.nodes[output].expr.output
    terms = Sums(graph).of_node[output].items()
    values = {"": np.ones((1, 1)), letters: x, letters[::-1]: x.T}
    found = sum((c * values[axes] for (_, axes), c in terms), np.zeros((5, 5)))
    np.testing.assert_allclose(found, component.interpret(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (i("^ij~ij") >> i("+ij~i"), i("^ab~ab") >> i("+cd~cd") >> i("+ab~a")),
        (i("ij*0.5~ij") >> i(">ij~i"), i("ij/2~ij") >> i(">ij~i")),
        ((I & I) >> i("ij*ij~ij"), i("+ij~ij") >> (I & I) >> i("ij*ij~ij")),
    ],
)
def test_equal_values_are_one_atom(first: Component, second: Component) -> None:
    both = Sums(wire(first & second))
    (left,), (right,) = (both.of_node[n] for n in outputs(both.graph))
    assert left[0] == right[0]


def test_other_values_are_other_atoms() -> None:
    both = Sums(wire(i(">ij~i") & i(">ji~i") & i("<ij~i") & ((I & I) >> i("ij*ij~ij")) & ((I & I) >> i("ij*ji~ij"))))
    ends = outputs(both.graph)
    assert len({term for n in ends for term, _ in both.of_node[n]}) == len(ends)


def test_a_maximum_bounds_its_elements_alone() -> None:
    sums = Sums(wire((I & i(">ij~i")) >> i("ij-i~ij")))
    value = sums.of_node[1]
    (maximum,) = (term for term in value if term[0] in sums.extrema)
    assert bounded(sums, value, maximum, [("j",)])
    assert not bounded(sums, value, maximum, [("i",)])
    assert not bounded(sums, value, maximum, [])
    assert not bounded(sums, {**value, (99, "j"): 1.0}, maximum, [("j",)])
    assert bounded(sums, {**value, (99, "i"): 1.0}, maximum, [("j",)])
