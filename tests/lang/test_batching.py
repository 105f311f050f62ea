from __future__ import annotations

import numpy as np
import pytest

from ilang_eq import Component, I, i, optimize
from ilang_eq.lang.batching import axes_of, set_aside, without_batch
from ilang_eq.lang.unscheduled import unscheduled
from ilang_eq.lang.unwiring import unwire
from ilang_eq.lang.wiring import wire

SOFTMAX = (I & i(">bij~bi")) >> i("bij-bi~bij") >> i("^bij~bij") >> (I & i("+bij~bi")) >> i("bij/bi~bij")
HEADS = i("bik*bjk~bijk") >> i("+bijk~bij") >> SOFTMAX >> i("bij*bjd~bidj") >> i("+bidj~bid")
ONE_HEAD = [(8, 3), (5, 3), (5, 4)]

BATCHED = [
    (HEADS, [(2, *shape) for shape in ONE_HEAD]),
    (i("ijb+b~ijb"), [(3, 4, 2), (2,)]),
    (i("bij*i~ijb") >> i("+ijb~bi"), [(2, 3, 4), (3,)]),
    (i("bik*bjk~bijk") >> i("+bijk~bij") >> i("bij+ij~bij") >> SOFTMAX, [(2, 3, 4), (2, 5, 4), (3, 5)]),
    (I << i("i+j~ij") >> i("ij*bij~bij"), [(3,), (4,), (2, 3, 4)]),
]


@pytest.mark.parametrize(("component", "shapes"), BATCHED)
def test_a_batch_axis_is_set_aside_and_put_back(component: Component, shapes: list[tuple[int, ...]]) -> None:
    graph = unscheduled(wire(component))
    found = without_batch(graph)
    assert found is not None
    element, batch = found
    assert axes_of(element) == axes_of(graph) - 1
    extents = {(k, d): n for k, shape in enumerate(shapes) for d, n in enumerate(shape)}
    whole = set_aside(graph, extents, most=axes_of(graph) - 1).whole(element)
    arrays = [np.random.default_rng(0).standard_normal(shape) for shape in shapes]
    again = unwire(whole)
    np.testing.assert_allclose(again.interpret(*arrays), component.interpret(*arrays))
    assert batch.without(extents).keys() < extents.keys()
    for k, shape in enumerate(shapes):
        left = [n for (index, _), n in sorted(batch.without(extents).items()) if index == k]
        place = batch.inputs[k]
        assert left == [n for d, n in enumerate(shape) if d != place]


@pytest.mark.parametrize(
    "component",
    [
        i("ik*kj~ijk") >> i("+ijk~ij"),
        i("+ij~."),
        i("ij*ij~ij") & (i("ij*ij~ij") >> i("+ij~.")),
        i("ii*ii~i"),
        i("bik*jk~bijk") >> i("+bijk~bij"),
        i("bik-jk~bijk") >> i("+bijk~bij"),
        i("ik*jk~ijk") >> i("+ijk~ij") >> i("kj*bik~bikj") >> i("+bikj~bij"),
    ],
)
def test_what_some_output_lacks_or_another_argument_reuses_is_no_batch_axis(component: Component) -> None:
    assert without_batch(unscheduled(wire(component))) is None


def test_heads_are_optimised_as_one_and_computed_right() -> None:
    shapes = [(3, 40, 16), (3, 56, 16), (3, 56, 24)]
    best = optimize(HEADS, shapes, threads=1, database=False)
    arrays = [np.random.default_rng(1).standard_normal(shape).astype(np.float32) for shape in shapes]
    right = HEADS.interpret(*arrays)
    np.testing.assert_allclose(best(*arrays), right, rtol=1e-4, atol=1e-5)
    other = [np.random.default_rng(2).standard_normal(shape).astype(np.float32) for shape in [(2, 7, 5)] * 3]
    np.testing.assert_allclose(best(*other), HEADS.interpret(*other), rtol=1e-4, atol=1e-5)
