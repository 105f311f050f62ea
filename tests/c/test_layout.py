"""Where buffers lie, and how far apart their rows are."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from ilang_eq.c.emit import emit
from ilang_eq.lang.component import Component, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.addresses import SPACED_ROWS

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def exponentials_times(rows: int) -> Component:
    """Of so many rows at a time, which are kept for a product."""
    tile = f"i:{rows},j:64"
    product = i(f"ik*kj~kij|{tile}|i0jki'j'") >> i(f"+kij~ij|{tile}|ijki'j'0")
    return i(f"^ik~ik|i:{rows}|ii'k") >> product


@pytest.mark.parametrize(("rows", "spaced"), [(SPACED_ROWS - 1, False), (SPACED_ROWS, True)])
def test_many_rows_that_a_thread_keeps_have_room_between_them(rows: int, spaced: bool) -> None:
    assert ("* spaced(in0_1)" in emit(lower(wire(exponentials_times(rows))))) is spaced


def test_rows_of_constant_length_and_those_of_all_threads_have_none() -> None:
    shared = i("ij*2~ij|i:16|ii'j") >> i("^ij~ji|i:16|iji'")
    constant = i("^ik~ik|i:16,k:64|iki'k'") >> i("ik*kj~kij|i:16,k:64|ik0i'k'j") >> i("+kij~ij|i:16,k:64|iki'k'j0")
    for component in (shared, constant):
        assert "spaced(" not in emit(lower(wire(component)))


@needs_compiler
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("length", [500, 512, 1024])
def test_what_they_hold_stays(length: int, threads: int) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape, np.float32) for shape in ((100, length), (length, 70)))
    component = exponentials_times(24)
    np.testing.assert_allclose(
        component.compile(threads=threads)(x, y), component.interpret(x, y), rtol=1e-3, atol=1e-3
    )
