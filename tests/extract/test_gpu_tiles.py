"""What variants of schedules for a GPU are made of. Each graph made is the same function, and can be lowered."""

from __future__ import annotations

import numpy as np

from ilang_eq import Component, i
from ilang_eq.extract.gpu_tiles import in_single_tiles, reduced_axes, retiled, without_copies
from ilang_eq.lang.graph import Graph
from ilang_eq.lang.unwiring import unwire
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower

NESTED = i("ik*kj~ikj|i:2:4,j:8|ii'jki''j'") >> i("+ikj~ij|i:2:4,j:8|ii'jki''j'0")
COPIED = (
    (i("+ik~ki|i:8,k:4|iki'k'") | i("+kj~kj|j:8|jkj'"))
    >> i("ki*kj~kij|i:8,j:8,k:4|ijk0k'i'j'")
    >> i("+kij~ij|i:8,j:8,k:4|ijkk'i'j'0")
)
"""A product with one copy that is staged and one that is whole."""


def same(graph: Graph, component: Component) -> Component:
    """``graph`` as a component, which computes what ``component`` does."""
    lower(graph)
    made = unwire(graph)
    arrays = [np.random.default_rng(0).standard_normal(shape) for shape in ((9, 7), (7, 11))]
    np.testing.assert_allclose(made.interpret(*arrays), component.interpret(*arrays))
    return made


def test_tiles_inside_tiles_become_one() -> None:
    made = same(in_single_tiles(wire(NESTED)), NESTED)
    assert str(made) == """i("ik*kj~ikj|i:8,j:8|ijki'j'") >> i("+ikj~ij|i:8,j:8|ijki'j'0")"""


def test_copies_are_left_out_staged_or_whole() -> None:
    made = same(without_copies(wire(COPIED)), COPIED)
    assert str(made) == """i("ik*kj~kij|i:8,j:8,k:4|ijkk'i'j'") >> i("+kij~ij|i:8,j:8,k:4|ijkk'i'j'0")"""


def test_what_was_split_alike_still_is() -> None:
    graph = wire(COPIED)
    over = reduced_axes(graph)
    made = same(retiled(graph, lambda axis: 3 if axis in over else 5), COPIED)
    assert "i:5,j:5,k:3" in str(made)
    assert "k:4" not in str(made)
