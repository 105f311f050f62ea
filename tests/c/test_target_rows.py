"""Rows that register tiles end up in have pointers of their own, found anew by each tile."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

from ilang_eq.c.emit import emit
from ilang_eq.lang.component import Component, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

PRODUCT = i("ik*kj~kij|i:6,j:32|ijki'j'") >> i("+kij~ij|i:6,j:32|ijki'j'0")
BATCHES = i("aik*akj~akij|a:2,i:3,j:16|aijka'i'j'") >> i("+akij~aij|a:2,i:3,j:16|aijka'i'j'0")
IN_STEPS = i("ik*kj~kij|i:6,j:32,k:8|ijkk'i'j'") >> i("+kij~ij|i:6,j:32,k:8|ijkk'i'j'0")
AGAIN = i("ik*kj~kij|i:6,j:32,k:8|kijk'i'j'") >> i("+kij~ij|i:6,j:32,k:8|kijk'i'j'0")
ONE_ROW = i("ik*kj~kij|j:32|ijkj'") >> i("+kij~ij|j:32|ijkj'0")
COPIED = i("+ik~ki|i:6|iki'")


def source(component: Component) -> str:
    return emit(lower(wire(component)))


@pytest.mark.parametrize(
    ("component", "declared", "row", "floats"),
    [
        (PRODUCT, "float *out0_rows[6];", "out0_rows[i1]", 32),
        (BATCHES, "float *out0_rows[2][3];", "out0_rows[a1][i1]", 16),
    ],
)
def test_each_row_of_a_whole_tile_has_a_pointer(component: Component, declared: str, row: str, floats: int) -> None:
    text = source(component)
    assert declared in text
    assert f"make_room({row}, 0, {floats});" in text
    assert f"V16({row}[j1]) = V16(out0_tile" in text
    assert text.count(declared) == text.count("HIDE(out0_rows")


@pytest.mark.parametrize("component", [ONE_ROW, AGAIN, IN_STEPS, COPIED])
def test_others_need_none(component: Component) -> None:
    """Tiles of one row, whose sums do not go in blocks, and what is no tile."""
    assert "_rows[" not in source(component)


def test_what_may_be_short_needs_none() -> None:
    assert re.search(r"store16\(&out0\[", source(PRODUCT)), "the ends of rows are written under a mask"
    assert not re.search(r"store16\(&out0_rows", source(PRODUCT))


@needs_compiler
@pytest.mark.parametrize("component", [PRODUCT, IN_STEPS, AGAIN])
@pytest.mark.parametrize("shape", [(6, 32, 5), (12, 64, 1), (13, 40, 70), (5, 31, 3), (6, 32, 0), (18, 97, 2050)])
def test_the_results_stay_the_same(component: Component, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
    np.testing.assert_allclose(component.compile()(a, b), component.interpret(a, b), rtol=1e-3, atol=1e-3)


@needs_compiler
@pytest.mark.parametrize("shape", [(4, 6, 32, 5), (3, 7, 33, 9), (2, 3, 16, 1030)])
def test_batches_stay_the_same(shape: tuple[int, int, int, int]) -> None:
    batches, m, n, k = shape
    rng = np.random.default_rng(1)
    a = rng.standard_normal((batches, m, k), dtype=np.float32)
    b = rng.standard_normal((batches, k, n), dtype=np.float32)
    np.testing.assert_allclose(BATCHES.compile()(a, b), BATCHES.interpret(a, b), rtol=1e-3, atol=1e-3)
