"""Rows that register tiles take elements from have pointers of their own, held in registers."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from ilang_eq.c.emit import emit
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def source(component: Component) -> str:
    return emit(lower(wire(component)))


def tiled(rows: int, left: str = "ik", pack: Component = I) -> Component:
    order = f"|i:{rows},j:16|ijki'j'"
    return (pack | I) >> i(f"{left}*kj~ijk{order}") >> i(f"+ijk~ij{order}0")


@pytest.mark.parametrize("rows", [3, 6])
def test_each_row_has_a_pointer(rows: int) -> None:
    text = source(tiled(rows))
    assert text.count(f"const float *in0_row{rows - 1} = &in0[(i + {rows - 1}) * in0_1 + 0];") >= 1
    assert f"in0_row{rows}" not in text
    assert text.count("HIDE(in0_row0);") == text.count("const float *in0_row0 =")


def test_others_need_none() -> None:
    """More rows than registers, rows whose elements are neighbours, and rows a constant apart."""
    assert "in0_row" not in source(tiled(8))
    assert "in0_row" not in source(tiled(6, "ki"))
    packed = source(tiled(6, "ki", i("+ik~ki|i:6|iki'")))
    assert "_row0 =" not in packed


@needs_compiler
@pytest.mark.parametrize("shape", [(6, 16, 5), (12, 33, 1), (13, 40, 70), (5, 15, 3), (6, 16, 0)])
def test_the_results_stay_the_same(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
    component = tiled(6)
    np.testing.assert_allclose(component.compile()(a, b), component.interpret(a, b), rtol=1e-4, atol=1e-4)
