"""What is put off, and what it takes along."""

from __future__ import annotations

import numpy as np
import pytest

from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.ir import For
from ilang_eq.lower.late import HANDED_ON, LONG, MOST, Late, late
from ilang_eq.lower.streamed import STREAMED_FLOATS
from ilang_eq.lower.walk import updates

SOFTMAX = (I & i(">ij~i||ij")) >> i("ij-i~ij||i1j") >> i("^ij~ij||ij0") >> (I & i("+ij~i||i0j")) >> i("ij/i~ij||i10j")
NORM = (I & (I & I) >> i("ij*ij~ij") >> i("+ij~i||ij0") >> i("i^0.5~i||i0")) >> i("ij/i~ij||i1j")
BATCHES = (I & (I & I) >> i("kij*kij~kij") >> i("+kij~ki||kij0") >> i("ki^0.5~ki||ki0")) >> i("kij/ki~kij||ki1j")


def found(component: Component) -> Late | None:
    program = lower(wire(component))
    (kernel,) = program.kernels
    return late(program, kernel)


def test_rows_and_numbers_that_the_last_pass_reads_are_handed_on() -> None:
    put_off = found(SOFTMAX)
    assert put_off is not None
    assert put_off.row == "i"
    assert (len(put_off.rows), len(put_off.scalars)) == (1, 1)
    (dims,) = (b.dims for b in put_off.program.buffers if b.name in put_off.rows)
    assert (len(dims), dims[0]) == (2, 2)


def test_arguments_are_not() -> None:
    put_off = found(NORM)
    assert put_off is not None
    assert put_off.rows == ()
    assert len(put_off.scalars) == 1


def test_the_last_pass_alone_is_put_off() -> None:
    put_off = found(SOFTMAX)
    assert put_off is not None
    with_it, without = ([u.target.buffer for u in updates(loops)] for loops in (put_off.loops, put_off.rest))
    assert put_off.target.buffer == "out0"
    assert [name for name in with_it if name != "out0"] == without
    assert [loop.variable for loop in put_off.rest] == ["i"]


def test_rows_of_several_axes() -> None:
    put_off = found(BATCHES)
    assert put_off is not None
    assert [loop.variable for loop in put_off.loops] == ["k", "i"]
    assert all(isinstance(loop, For) for loop in put_off.rest)


@pytest.mark.parametrize(
    "component",
    [
        pytest.param(i("^ij~ij"), id="a pass alone"),
        pytest.param(i("+ij~i"), id="no rows"),
        pytest.param((I & i(">ij~i|i:4,j:64|iji'j'")) >> i("ij-i~ij|i:4|i1i'j"), id="several rows at a time"),
        pytest.param((I & i(">ij~i")) >> i("ij-i~ij|j:64|i1jj'"), id="in tiles"),
        pytest.param((I & i(">ij~i")) >> i("ij-i~ij||i1j") >> i("ij*2~ij"), id="for another kernel"),
        pytest.param((I & i(">ij~i")) >> i("ij-i~ji||i1j"), id="across rows"),
        pytest.param(i("+ij~i|i:4|ii'j") >> i("i*2~i|i:4|i0i'"), id="a number for each row of a tile"),
    ],
)
def test_what_has_to_wait_for_nobody_is_not(component: Component) -> None:
    program = lower(wire(component))
    assert all(late(program, kernel) is None for kernel in program.kernels)


def test_what_is_worth_it() -> None:
    kept, alone = found(SOFTMAX), found(NORM)
    assert kept is not None
    assert alone is not None
    rows = STREAMED_FLOATS // HANDED_ON
    assert kept.worthwhile((rows, HANDED_ON))
    assert not kept.worthwhile((rows - 1, HANDED_ON)), "too small"
    assert not kept.worthwhile((2 * rows, HANDED_ON - 1))
    assert alone.worthwhile((2 * rows, HANDED_ON - 1))
    assert not alone.worthwhile((STREAMED_FLOATS, LONG - 1))
    assert alone.worthwhile((STREAMED_FLOATS // MOST, MOST))
    assert not alone.worthwhile((STREAMED_FLOATS // MOST, MOST + 1)), "too long"
    assert np.prod((rows, HANDED_ON)) == STREAMED_FLOATS
