"""Rows of a tile go through several stages a few at a time, with the same results as one by one."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

from ilang_eq.c import statements
from ilang_eq.c.emit import emit
from ilang_eq.c.kernel import CKernel
from ilang_eq.lang.component import Component
from ilang_eq.lang.reading import read_component
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower

TILE = """i("ik*kj~kij|i:{rows},j:{columns}|ijki'j'") >> i("+kij~ij|i:{rows},j:{columns}|ijki'j'0")"""
STAGES = """ >> i("^ij~ij|i:{rows},j:{columns}|ij0i'j'") >> i("ij+1~ij|i:{rows},j:{columns}|iji'j'0")"""
STAGES += """ >> i("2/ij~ij|i:{rows},j:{columns}|iji'j'1") >> i("^ij~ij|i:{rows},j:{columns}|iji'j'0")"""

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def tile(rows: int, columns: int, text: str = TILE + STAGES) -> Component:
    return read_component(text.format(rows=rows, columns=columns))


def height(component: Component) -> int:
    """The rows that go through a stage together."""
    found = re.findall(r"i1_row < (\d+)", emit(lower(wire(component))))
    assert len(set(found)) <= 1
    return int(found[0]) if found else 1


@pytest.mark.parametrize(
    ("rows", "columns", "together"),
    [
        (24, 48, 4),
        (24, 64, 3),
        (24, 96, 2),
        (15, 48, 3),
        (24, 192, 1),
        pytest.param(14, 48, 1, id="too few at once"),
        pytest.param(25, 64, 1, id="rows that no number divides"),
    ],
)
def test_as_many_rows_as_fit_go_together(rows: int, columns: int, together: int) -> None:
    assert height(tile(rows, columns)) == together


def test_one_stage_goes_row_by_row() -> None:
    alone = """ >> i("^ij~ij|i:{rows},j:{columns}|ij0i'j'")"""
    assert height(tile(24, 48, TILE + alone)) == 1


def test_rows_from_memory_go_one_by_one() -> None:
    """They are asked for row by row."""
    text = """i("^ij~ij|i:24,j:48|iji'j'")""" + STAGES.replace("0i'j'", "i'j'0")
    assert height(tile(24, 48, text)) == 1


@needs_compiler
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(48, 5, 96), (50, 5, 100), (3, 5, 7)])
def test_results_are_those_of_rows_one_by_one(
    shape: tuple[int, int, int], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, k, m = shape
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((n, k), np.float32), rng.standard_normal((k, m), np.float32)
    component = tile(24, 48)
    together = CKernel(lower(wire(component)), threads)(a, b)
    np.testing.assert_allclose(together, component.interpret(a, b), rtol=1e-4)
    monkeypatch.setattr(statements, "in_bands", lambda loop, *_: loop)
    assert height(component) == 1
    np.testing.assert_array_equal(CKernel(lower(wire(component)), threads)(a, b), together)
