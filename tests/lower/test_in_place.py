"""Rows move to where their last reader writes, and only if that reads and writes the same element once."""

from __future__ import annotations

import numpy as np
import pytest

from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.check import check
from ilang_eq.lower.in_place import in_place
from ilang_eq.lower.ir import Extent, For, Program
from ilang_eq.lower.passes import passes
from ilang_eq.lower.walk import buffers_of
from tests.lower.execute import execute

EXPONENTIALS = (I & i(">ij~i")) >> i("ij-i~ij||i1j") >> i("^ij~ij||ij0")
SOFTMAX = EXPONENTIALS >> (I & i("+ij~i||i0j")) >> i("ij/i~ij||i10j")
TILED = (
    (I & i(">ij~i|i:4,j:2|iji'j'"))
    >> i("ij-i~ij|i:4|i1i'j")
    >> i("^ij~ij|i:4|ii'j0")
    >> (I & i("+ij~i|i:4|i0i'j"))
    >> i("ij/i~ij|i:4|i10i'j")
)
FURTHER = SOFTMAX >> i("ij*2~ij||ij0")
PAIRS = EXPONENTIALS >> (I & i("+ij~i||i0j") >> i("i+1~i||i0")) >> i("ij/i~ij||i10j") >> i("0>ij~ij||ij1")


def rows(program: Program) -> list[str]:
    """The locals as long as an axis."""
    return [b.name for b in program.buffers if b.role == "local" and any(isinstance(d, Extent) for d in b.dims)]


def placed(component: Component) -> Program:
    program = in_place(lower(wire(component)))
    check(program)
    return program


@pytest.mark.parametrize("component", [SOFTMAX, TILED, FURTHER, PAIRS])
@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (8, 4)])
def test_rows_are_computed_where_they_end(component: Component, shape: tuple[int, int]) -> None:
    """Also where scalars, computed on the way, stand between the row and what becomes of it."""
    before, after = lower(wire(component)), placed(component)
    assert rows(before) == ["pow2"]
    assert not rows(after)
    array = np.random.default_rng(0).standard_normal(shape)
    np.testing.assert_array_equal(execute(after, [array])[0], execute(before, [array])[0])


@pytest.mark.parametrize(
    "component",
    [
        pytest.param(i("^ij~ij") >> i("+ij~i||ij0"), id="nothing becomes of it"),
        pytest.param(EXPONENTIALS >> (I & I) >> i("ij+ik~ijk||i01jk"), id="read again for each of another axis"),
        pytest.param(EXPONENTIALS >> (I & i("+ij~i||i0j")) >> i("ij/i~ji||i10j"), id="returned across rows"),
        pytest.param(i("+kij~ij") >> i("0>ij~ij||i1j"), id="accumulated"),
        pytest.param(i("^ij~ij|j:4|ijj'") >> i("ij*2~ij|j:4|ij0j'"), id="a tile"),
    ],
)
def test_others_stay(component: Component) -> None:
    before = lower(wire(component))
    assert in_place(before) == before


def test_passes_ask_for_a_row_in_place_until_it_is_written() -> None:
    """The pass that writes it asks for what is further along; the next rows of the argument come as before."""
    program = placed(SOFTMAX)
    (kernel,) = program.kernels
    (row,) = (s for s in kernel.body if isinstance(s, For))
    assert buffers_of([row]) == ("max0", "in0", "sub1", "out0", "add3")
    found = passes(row, {buffer.name: buffer for buffer in program.buffers})
    assert found is not None
    assert [{r.place.buffer: (r.first, r.count) for r in each} for each in found.requests] == [
        {"out0": (0, 1)},
        {"in0": (0, 2), "out0": (1, 3)},
        {"in0": (2, 1)},
        {"in0": (3, 1)},
    ]
