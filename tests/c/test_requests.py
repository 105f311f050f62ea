"""Rows that passes ask for come whole, once, and nothing else does."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

from ilang_eq.c.along import DISTANCE
from ilang_eq.c.emit import emit
from ilang_eq.c.kernel import CKernel
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.reading import read_component
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.passes import FAR, LONG
from tests.c.counting import counters
from tests.lower.test_passes import PRODUCT, SOFTMAX, SUM_OF_EXPONENTIALS, SUM_OF_SQUARES, TILED

LINE = 16
ROWS, WIDTH = 1027, 512
assert ROWS * WIDTH >= FAR
assert WIDTH >= LONG

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def counts(
    component: Component, x: np.ndarray, threads: int, by: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[np.ndarray, np.ndarray]:
    """The result, and how often each line of ``x``, or of the output, was asked for, by a kernel that counts."""

    def counting(source: str) -> str:
        body = re.compile(rf"(static inline void {by}\(.*?\)\n\{{\n).*?\n\}}", re.DOTALL)
        counted = (
            f"int asked[1 << 20];\n\\1    (void)p;\n    for (int64_t f = first; f < first + floats; f += {LINE})\n"
        )
        text, found = body.subn(counted + f"        __atomic_add_fetch(&asked[f / {LINE}], 1, 0);\n}}", source)
        assert found == 1
        return text

    taken = counters(counting, 1 << 20, monkeypatch)
    result = CKernel(lower(wire(component)), threads)(x)
    return result, taken[-1]


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def operand(rows: int, width: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((rows, width), np.float32)


def _further(step: int) -> int:
    """How many rows further than the next ones what would come too late is asked for, in tiles of ``step``."""
    return DISTANCE // (WIDTH * step) * step


IN_PARTS = (
    (I & i(">ij~i")) >> i("ij-i~ij|j:64|i1jj'") >> i("^ij~ij|j:64|ijj'0") >> (I & i("+ij~i||i0j")) >> i("ij/i~ij||i10j")
)
"""One pass in tiles, the last of which may be shorter."""
KEPT = (
    i("ij+1~ij")
    >> (I & i(">ij~i||ij0"))
    >> i("ij-i~ij||i10j")
    >> i("^ij~ij||ij0")
    >> (I & i("+ij~i||i0j"))
    >> i("ij/i~ij||i10j")
)
"""The first pass stores a row, and reduces it meanwhile."""


@needs_compiler
@pytest.mark.parametrize(("component", "step"), [(SOFTMAX, 1), (TILED, 4), (IN_PARTS, 1), (KEPT, 1)])
@pytest.mark.parametrize("threads", [1, 2])
def test_every_line_of_the_next_rows_is_asked_for_once(
    component: Component, step: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = operand(ROWS, WIDTH)
    result, count = counts(component, x, threads, "fetch_row", monkeypatch)
    np.testing.assert_allclose(result, softmax(x), rtol=1e-5)
    lines = count[: x.size // LINE].reshape(ROWS, -1)
    whole, further = ROWS // step * step, _further(step)
    assert not lines[: step + further].any(), "the first rows are at hand when anything could be asked for"
    assert (lines[step + further : whole] == 1).all()
    assert not count[(whole + further) * WIDTH // LINE :].any(), "where there are no whole tiles any more"


@needs_compiler
@pytest.mark.parametrize(("component", "step"), [(SOFTMAX, 1), (TILED, 4)])
def test_every_line_to_be_written_is_asked_for_once(
    component: Component, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, count = counts(component, operand(ROWS, WIDTH), 1, "make_room", monkeypatch)
    whole, further = ROWS // step * step * WIDTH // LINE, _further(step)
    assert (count[further * WIDTH // LINE : whole] == 1).all()
    assert not count[(ROWS + further) * WIDTH // LINE :].any()


@needs_compiler
@pytest.mark.parametrize("shape", [(ROWS, LONG // 2), (8, WIDTH), (9, 1 << 17)])
def test_what_is_near_or_short_or_too_long_is_not_asked_for(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = operand(*shape)
    result, count = counts(SUM_OF_EXPONENTIALS, x, 1, "fetch_row", monkeypatch)
    np.testing.assert_allclose(result, np.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1), rtol=1e-4)
    assert not count.any()


@needs_compiler
@pytest.mark.parametrize("component", [SOFTMAX, TILED, KEPT])
@pytest.mark.parametrize("shape", [(1, 1), (3, 300), (541, 1001), (2049, 257)])
def test_results_stay_what_they_were(component: Component, shape: tuple[int, int]) -> None:
    x = operand(*shape)
    np.testing.assert_allclose(component.compile(threads=2)(x), softmax(x), rtol=1e-5)


def test_kernels_without_such_passes_ask_for_nothing() -> None:
    assert not re.search(r"fetch_row|_asked", emit(lower(wire(PRODUCT))))


def test_passes_that_only_read_and_compute_little_ask_where_that_gains() -> None:
    tests = re.findall(r"const int in0_asked = (\w+)", emit(lower(wire(SUM_OF_SQUARES))))
    assert tests == ["ASKS_IN_ORDER"]


@needs_compiler
def test_rows_as_many_as_they_are_long() -> None:
    """Loops over the rows at hand are none along them, though their extents are the same."""
    component = read_component(
        """(I & I) >> i("kj*ki~kij|i:32:3,j:24|iji'ki''j'") >> i("+kij~ij|i:32:3,j:24|iji'ki''j'0")"""
        """ >> (i("ij*0.5~ij|i:96,j:24|iji'j'") & I) >> (I & i("ij*ji~ij"))"""
        """ >> (I | I & (I & i("+ij~i|i:96,j:24|iji'j'")) >> i("ij+i~ij|i:96|i1i'j"))"""
    )
    x = operand(16, 130)
    for got, want in zip(component.compile(threads=2)(x), component.interpret(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)
