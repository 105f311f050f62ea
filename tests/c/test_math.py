"""The vector math functions against float64, over the whole range of float32."""

from __future__ import annotations

import ctypes
import math
import shutil
from collections.abc import Callable

import numpy as np
import pytest

from ilang_eq.c.build import build
from ilang_eq.c.math import FUNCTIONS, with_callees
from ilang_eq.lower.ir import Apply, Constant, Load
from ilang_eq.lower.scalar import Printer, as_float32, number_text

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

X = Load("x[i]", ())


def compiled(value: Apply) -> Callable[[np.ndarray], np.ndarray]:
    """``value`` of x[i], over an array, vectorised."""
    used: set[str] = set()
    text = Printer(lambda load: load.buffer, used).text(value)
    functions = "\n".join(FUNCTIONS[name].source for name in with_callees(used))
    loop = f"#pragma omp simd\n    for (int64_t i = 0; i < n; i++)\n        y[i] = {text};"
    head = "void apply(const float *restrict x, float *restrict y, int64_t n)"
    source = f"#include <stdint.h>\n#include <math.h>\n{functions}\n{head}\n{{\n{loop}\n}}\n"
    library = ctypes.CDLL(str(build(source)))
    library.apply.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]

    def run(x: np.ndarray) -> np.ndarray:
        y = np.empty_like(x)
        library.apply(x.ctypes.data, y.ctypes.data, x.size)
        return y

    return run


def everywhere() -> np.ndarray:
    """2^20 floats spread evenly over all bit patterns, and the special ones."""
    bits = np.arange(0, 2**32, 4099, dtype=np.uint64).astype(np.uint32)
    edges = np.array(
        [0x0, 0x80000000, 0x1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000], np.uint32
    )
    near_one = np.arange(0x3F7FFF00, 0x3F800100, dtype=np.uint32)
    return np.concatenate([bits, edges, near_one]).view(np.float32)


def worst_ulp(got: np.ndarray, want: np.ndarray) -> float:
    """The largest error in units in the last place; infinite where only one of the two is finite, or NaN."""
    with np.errstate(all="ignore"):
        rounded = want.astype(np.float32)
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        unit = np.maximum(np.spacing(np.abs(rounded)).astype(np.float64), 2.0**-149)
        error = np.where(same, 0.0, np.abs(got.astype(np.float64) - want) / unit)
    return float(np.nan_to_num(error, nan=np.inf).max())


def power(base: float) -> Apply:
    return Apply("pow", (Constant(base), X))


@pytest.mark.parametrize(
    ("value", "reference", "bound"),
    [
        (Apply("exp", (X,)), np.exp, 1.01),
        (power(math.e), np.exp, 1.01),
        (Apply("ln", (X,)), np.log, 0.9),
        (power(2.0), np.exp2, 1.2),
        (power(10.0), lambda x: np.power(10.0, x), 1.2),
        (power(0.3), lambda x: np.power(0.3, x), 1.2),
        (power(1.0001), lambda x: np.power(1.0001, x), 1.2),
        (power(3e38), lambda x: np.power(3e38, x), 1.2),
        (power(1.0), lambda x: np.power(1.0, x), 0.5),
        (power(0.0), lambda x: np.power(0.0, x), 0.5),
        (Apply("log", (Constant(2.0), X)), np.log2, 3.0),
        (Apply("pow", (X, Constant(0.5))), lambda x: np.power(x, np.full(x.shape, 0.5)), 0.5),
    ],
    ids=str,
)
def test_error_bound(value: Apply, reference: Callable[[np.ndarray], np.ndarray], bound: float) -> None:
    x = everywhere()
    with np.errstate(all="ignore"):
        want = reference(x.astype(np.float64))
    assert worst_ulp(compiled(value)(x), want) <= bound


def test_exp_at_the_ends() -> None:
    x = np.array([-np.inf, np.inf, np.nan, 0.0, -0.0, -87.5, -103.9, -104.5, 88.7, 88.8], dtype=np.float32)
    with np.errstate(over="ignore", under="ignore"):
        want = np.exp(x.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(compiled(Apply("exp", (X,)))(x), want, rtol=1.2e-7, atol=2e-45)


def test_ln_at_the_ends() -> None:
    x = np.array([0.0, -0.0, -1.0, -np.inf, np.inf, np.nan, 1.0, 1e-45], dtype=np.float32)
    want = np.array([-np.inf, -np.inf, np.nan, np.nan, np.inf, np.nan, 0.0, -149 * math.log(2.0)])
    np.testing.assert_allclose(compiled(Apply("ln", (X,)))(x), want, rtol=1.2e-7)


@pytest.mark.parametrize("value", [0.1, 1.0, -2.0, 1e-45, 3.4028234663852886e38, 123456789.0, 1e-7, 2.0**-126])
def test_number_text_reads_back(value: float) -> None:
    text = number_text(value)
    assert text.endswith("f")
    assert as_float32(float(text[:-1])) == as_float32(value)


def test_every_callee_exists_and_comes_first() -> None:
    order = with_callees(FUNCTIONS)
    assert set(order) == set(FUNCTIONS)
    for position, name in enumerate(order):
        assert set(FUNCTIONS[name].calls) <= set(order[:position])
