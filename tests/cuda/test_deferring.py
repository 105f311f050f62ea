"""Threads combine behind a loop what nothing in it reads."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

from ilang_eq import Component, I, i
from ilang_eq.cuda.emit import bound, emit
from ilang_eq.cuda.nodes import Combine, Node, Sweep
from tests.cuda.emulator import Emulated
from tests.cuda.schedules import ATTENTION, program

WEIGHTS = i("ij-i~ji|i:2,j:64|ij1j'i'") >> i("^ji~ji|i:2,j:64|ijj'i'0") >> i("+ji~i|i:2,j:64|ij0j'i'")
TILED = (
    (I & i(">ij~i|i:2,j:64|iji'j'"))
    >> (i("ij-i~ij|i:2|i1i'j") >> i("^ij~ij|i:2|ii'j0") & WEIGHTS)
    >> i("ij/i~ij|i:2|i1i'j0")
)
"""Softmax of rows online, 64 columns at a time."""
SUMS = i("ij*ij~ij|i:2,j:64|iji'j'") >> i("+ij~i|i:2,j:64|iji'j'0")
LARGEST = i("ij*ij~ij|i:2,j:64|iji'j'") >> i(">ij~i|i:2,j:64|iji'j'0")


def combines(nodes: tuple[Node, ...], loops: int = 0) -> list[tuple[str, int]]:
    """What is combined, and in how many loops that every thread runs through."""
    found: list[tuple[str, int]] = []
    for node in nodes:
        if isinstance(node, Sweep):
            found += combines(node.body, loops + (node.dim is None and node.source.limit is None))
        elif isinstance(node, Combine):
            found.append((node.op, loops))
    return found


@pytest.mark.parametrize(
    ("component", "expected"),
    [
        (SUMS, [("add", 0)]),
        (LARGEST, [("max", 0)]),
        (TILED, [("max", 1), ("add", 0)]),
        (ATTENTION, [("max", 1), ("add", 0)]),
    ],
)
def test_sums_wait_for_the_end_of_the_loop(component: Component, expected: list[tuple[str, int]]) -> None:
    """The largest so far is what the weights of an iteration need; of their sum, no iteration needs anything."""
    ((launch, homes),) = bound(program(component))
    assert combines(launch.body) == expected
    own = [name for name in launch.shares if "_own" in name]
    assert len(own) == sum(not loops for _, loops in expected)
    assert {homes[name].where for name in own} == {"registers"}


def test_a_sum_is_scaled_where_each_thread_has_its_own() -> None:
    """And not before that, where it is nothing yet."""
    source = emit(program(TILED)).source
    assert re.search(r"(add\d_own) = \1 \* max\d_factor;", source)
    assert not re.search(r"(add\d) = \1 \* max\d_factor;", source)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_results_are_the_same() -> None:
    components = (SUMS, LARGEST, TILED)
    emulated = Emulated([program(component) for component in components])
    rng = np.random.default_rng(0)
    for shape in ((2, 64), (5, 300), (1, 1), (3, 63)):
        x, y = rng.standard_normal((2, *shape), dtype=np.float32)
        for number, component in enumerate(components):
            arrays = [x, y][: len(program(component).inputs)]
            (got,) = emulated.run(number, arrays)
            np.testing.assert_allclose(got, np.asarray(component.interpret(*arrays)), rtol=1e-5, atol=1e-6)
