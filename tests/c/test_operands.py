"""What passes read beside the sums of register tiles is asked for by the reductions, once, and nothing else is."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

from ilang_eq.c.emit import emit
from ilang_eq.c.kernel import CKernel
from ilang_eq.lang.component import Component
from ilang_eq.lang.reading import read_component
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.passes import FAR
from tests.c.counting import counters

LINE = 16
ROWS, COLUMNS = 12 * 64, 32 * 32

PRODUCT = """i("ik*kj~kij|i:{rows},j:32|ji{inner}") >> i("+kij~ij|i:{rows},j:32|ji{inner}0")"""
WHOLE = PRODUCT.format(rows="12", inner="ki'j'")
SPLIT = PRODUCT.format(rows="3:4", inner="i'ki''j'")
WIDE = """i("ik*kj~kij|i:12,j:16:32|jij'ki'j''") >> i("+kij~ij|i:12,j:16:32|jij'ki'j''0")"""
ADDED = """ >> i("ij+ij~ij|i:12,j:32|ji0i'j'")"""
SCORES = """ >> i("ij+ij~ij|i:12,j:32|ji0i'j'") >> i("^ij~ij|i:12,j:32|jii'j'0")"""

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def asks(component: Component) -> bool:
    return "_lines" in emit(lower(wire(component)))


def counted(
    component: Component, arrays: list[np.ndarray], threads: int, monkeypatch: pytest.MonkeyPatch
) -> np.ndarray:
    """How often each line from the third of ``arrays`` on was asked for, by a kernel that counts."""

    def counting(source: str) -> str:
        count = f"    __atomic_add_fetch(&asked[first / {LINE}], p == third_input && floats == {LINE}, 0);\n}}"
        body = re.compile(r"(static inline void fetch_soon\(.*?\)\n\{\n).*?\n\}", re.DOTALL)
        text, found = body.subn(rf"const float *third_input;\nint asked[1 << 17];\n\1{count}", source)
        assert found == 1
        entered = text.index("const float *const in0 = inputs[0];")
        return f"{text[:entered]}third_input = inputs[2];\n    {text[entered:]}"

    taken = counters(counting, 1 << 17, monkeypatch)
    got = CKernel(lower(wire(component)), threads)(*arrays)
    np.testing.assert_allclose(got, component.interpret(*arrays), rtol=1e-3, atol=1e-3)
    return taken[-1]


def arrays(steps: int, rows: int = ROWS, columns: int = COLUMNS) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = (rows, steps), (steps, columns), (rows, columns)
    return [(0.1 * rng.standard_normal(shape)).astype(np.float32) for shape in shapes]


@needs_compiler
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("steps", [1, 7, 100])
@pytest.mark.parametrize("product", [WHOLE, SPLIT])
@pytest.mark.parametrize("epilogue", [ADDED, SCORES])
def test_every_line_beside_full_tiles_is_asked_for(
    epilogue: str, product: str, steps: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three lines of each row of 32 floats, which may begin anywhere in a line; so inner ones are asked for twice."""
    assert ROWS * COLUMNS >= FAR
    count = counted(read_component(product + epilogue), arrays(steps), threads, monkeypatch)
    rows = count[: ROWS * COLUMNS // LINE].reshape(ROWS, COLUMNS // LINE)
    once = np.ones_like(rows)
    once[:, 2::2] += 1
    # the last tile of a row goes on in the next one
    once[1:, 0] += 1
    np.testing.assert_array_equal(rows, once)


@needs_compiler
def test_tails_ask_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    count = counted(read_component(SPLIT + ADDED), arrays(40, ROWS + 3, COLUMNS), 1, monkeypatch)
    rows = count[: (ROWS + 3) * COLUMNS // LINE].reshape(ROWS + 3, COLUMNS // LINE)
    assert rows[: ROWS - 1].all()
    assert not rows[ROWS + 1 :].any()


@needs_compiler
def test_what_is_near_anyway_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not counted(read_component(SPLIT + ADDED), arrays(40, 48, 64), 1, monkeypatch).any()


@pytest.mark.parametrize(
    ("component", "reason"),
    [
        (WHOLE + """ >> i("ij+j~ij|i:12,j:32|ji0i'j'")""", "the same of all rows"),
        (WHOLE + """ >> i("ij+i~ij|i:12,j:32|ji0i'j'")""", "a float of each row"),
        (WIDE + """ >> i("ij+ij~ij|i:12,j:512|ji0i'j'")""", "long rows"),
        (WHOLE + """ >> i("ij+ji~ij|i:12,j:32|ji0i'j'")""", "columns"),
        (WHOLE, "no pass"),
    ],
)
def test_other_operands_are_not_asked_for(component: str, reason: str) -> None:
    assert not asks(read_component(component)), reason


def test_a_sum_in_parts_asks_for_nothing() -> None:
    """Each part would ask for the same."""
    parts = """i("ik*kj~kij|i:12,j:32,k:64|jikk'i'j'") >> i("+kij~ij|i:12,j:32,k:64|jikk'i'j'0")"""
    assert not asks(read_component(parts + ADDED))
