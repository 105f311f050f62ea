"""The vector math functions against double precision: a sample of all floats, and with ``-m long`` every one."""

from __future__ import annotations

import math
import platform
import shutil

import pytest

from ilang_eq.c.math import FUNCTIONS, with_callees
from ilang_eq.lower.ir import Apply, Constant
from ilang_eq.lower.scalar import as_float32, number_text
from tests.c.ulp import X, Y, worst_ulp

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

STRIDE = 4099
"""Of the sampled tests: 2^20 floats spread evenly over all bit patterns."""
ROUND = 2**16
"""All floats whose significand has 8 bits at most: 0, 1, 2, infinity, half, ..."""
ONE = 0x3F800000
"""The bits of 1."""


def power(base: float) -> Apply:
    return Apply("pow", (Constant(base), X))


def raised(exponent: float) -> Apply:
    return Apply("pow", (X, Constant(exponent)))


def logarithm(base: float) -> Apply:
    return Apply("log", (Constant(base), X))


UNARY = {
    "exp": (Apply("exp", (X,)), "exp(x[i])", 1.65),
    "e^x": (power(math.e), "exp(x[i])", 1.65),
    "2^x": (power(2.0), "exp2(x[i])", 1.3),
    "10^x": (power(10.0), "pow(10.0, x[i])", 1.3),
    "0.3^x": (power(as_float32(0.3)), "pow((double)0.3f, x[i])", 1.3),
    "1.0001^x": (power(as_float32(1.0001)), "pow((double)1.0001f, x[i])", 1.3),
    "3e38^x": (power(as_float32(3e38)), "pow((double)3e38f, x[i])", 1.3),
    "1^x": (power(1.0), "pow(1.0, x[i])", 0.5),
    "0^x": (power(0.0), "pow(0.0, x[i])", 0.5),
    "ln": (Apply("ln", (X,)), "log(x[i])", 0.9),
    "log2": (logarithm(2.0), "log2(x[i])", 1.2),
    "log10": (logarithm(10.0), "log10(x[i])", 1.2),
    "log0.3": (logarithm(as_float32(0.3)), "log(x[i]) / log((double)0.3f)", 1.2),
    "x^2": (raised(2.0), "pow(x[i], 2.0)", 0.5),
    "x^3": (raised(3.0), "pow(x[i], 3.0)", 1.5),
    "x^4": (raised(4.0), "pow(x[i], 4.0)", 2.0),
    "x^0.5": (raised(0.5), "pow(x[i], 0.5)", 0.5),
    "x^-0.5": (raised(-0.5), "pow(x[i], -0.5)", 1.5),
    "x^-1": (raised(-1.0), "pow(x[i], -1.0)", 0.5),
    "x^-2": (raised(-2.0), "pow(x[i], -2.0)", 2.0),
    "x^1.7": (raised(as_float32(1.7)), "pow(x[i], (double)1.7f)", 1.3),
    "x^-3": (raised(-3.0), "pow(x[i], -3.0)", 1.3),
}
"""The function, the reference, and the error it may have."""

SECONDS = {
    "any": "as_float(random_bits(bits))",
    "in range": "(float)(300 * ((double)random_bits(bits) / 4294967296.0 - 0.5) / log2(fabs((double)x[i])))",
    "whole": "(float)((int)(random_bits(bits) % 61) - 30)",
    "special": "(const float[]){0, -0.0f, 1, -1, 0.5f, -2, 3, INFINITY, -INFINITY, NAN, 1e-45f, 3e38f}[bits % 12]",
}
"""How the second operand of a binary function is drawn."""


@pytest.mark.parametrize("name", UNARY)
def test_error_bound(name: str) -> None:
    value, reference, bound = UNARY[name]
    assert worst_ulp(value, reference, stride=STRIDE) <= bound
    assert worst_ulp(value, reference, stride=ROUND) <= bound
    assert worst_ulp(value, reference, stride=1, first=ONE - 4096, end=ONE + 4096) <= bound


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the flag is for x86-64")
@pytest.mark.parametrize("name", ["exp", "ln", "log2", "10^x", "x^1.7"])
def test_error_bound_without_fused_multiplication(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    value, reference, bound = UNARY[name]
    monkeypatch.setenv("CC", "cc -mno-avx")
    assert worst_ulp(value, reference, stride=4 * STRIDE) <= bound


@pytest.mark.parametrize("second", SECONDS)
def test_power_of_two_variables(second: str) -> None:
    value = Apply("pow", (X, Y))
    assert worst_ulp(value, "pow(x[i], y[i])", stride=STRIDE, second=SECONDS[second]) <= 1.3
    assert worst_ulp(value, "pow(x[i], y[i])", stride=ROUND, second=SECONDS[second]) <= 1.3


@pytest.mark.parametrize("second", ["any", "special"])
def test_logarithm_to_a_variable_base(second: str) -> None:
    value = Apply("log", (Y, X))
    assert worst_ulp(value, "log(x[i]) / log(y[i])", stride=STRIDE, second=SECONDS[second]) <= 1.1
    assert worst_ulp(value, "log(x[i]) / log(y[i])", stride=ROUND, second=SECONDS[second]) <= 1.1


@pytest.mark.long
@pytest.mark.parametrize("name", UNARY)
def test_error_bound_everywhere(name: str) -> None:
    value, reference, bound = UNARY[name]
    worst = worst_ulp(value, reference, stride=1)
    print(f"{name}: {worst:.3f} ulp")
    assert worst <= bound


@pytest.mark.long
@pytest.mark.parametrize("second", SECONDS)
def test_power_of_many_pairs(second: str) -> None:
    worst = worst_ulp(Apply("pow", (X, Y)), "pow(x[i], y[i])", stride=5, second=SECONDS[second])
    print(f"x^y, y {second}: {worst:.3f} ulp")
    assert worst <= 1.3


def test_the_checker_notices() -> None:
    """A function that is wrong, or right but for the sign of a zero, or for an infinity."""
    assert worst_ulp(Apply("exp", (X,)), "exp(x[i]) * 1.000001", stride=STRIDE) > 5
    assert worst_ulp(Apply("mul", (X, Constant(1.0))), "fabs(x[i])", stride=2**31) == math.inf
    assert worst_ulp(Apply("mul", (X, Constant(2.0))), "x[i]", stride=STRIDE) == math.inf


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
