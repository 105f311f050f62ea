"""Errors of generated scalar functions in units in the last place, measured in C against double precision."""

from __future__ import annotations

import ctypes
from typing import Any

from ilang_eq.c.build import build
from ilang_eq.c.math import FUNCTIONS, with_callees
from ilang_eq.c.preamble import preamble
from ilang_eq.c.vectors import Used
from ilang_eq.lower.ir import Apply, Load
from ilang_eq.lower.scalar import Printer

X, Y = Load("x[i]", ()), Load("y[i]", ())

_CHECKER = """\
#include <math.h>
#include <stdint.h>
{functions}
#define BLOCK 4096

static uint32_t random_bits(uint64_t k)
{{
    k = (k + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    k = (k ^ k >> 29) * 0x94d049bb133111ebu;
    return (uint32_t)(k >> 32);
}}

static float as_float(uint32_t bits)
{{
    union {{ uint32_t bits; float value; }} x = {{.bits = bits}};
    return x.value;
}}

static double error(float got, double want)
{{
    const float rounded = (float)want;
    if (rounded != rounded || got != got)
        return rounded != rounded && got != got ? 0 : INFINITY;
    if (signbit(got) != signbit(rounded))
        return INFINITY;
    if (got == rounded)
        return 0;
    // half a unit around the largest float decides whether the right answer is infinite
    if (isinf(got) || isinf(rounded))
        return fabs(fabs(want) / 0x1.ffffffp127 - 1) < 0x1p-22 ? 1 : INFINITY;
    int exponent;
    frexp(want, &exponent);
    const double unit = fmax(ldexp(1, exponent - 24), 0x1p-149);
    return fabs(got - want) / unit;
}}

// The worst error over x = first, first + stride, ... up to about end; the other operand is drawn at random, or chosen
// by it.
double worst(uint64_t first, uint64_t end, uint64_t stride)
{{
    double most = 0;
#pragma omp parallel for schedule(dynamic) reduction(max : most)
    for (uint64_t start = first; start < end; start += stride * BLOCK) {{
        float x[BLOCK], y[BLOCK], got[BLOCK];
        for (int i = 0; i < BLOCK; i++) {{
            const uint64_t bits = start + i * stride;
            x[i] = as_float((uint32_t)bits);
            y[i] = {second};
        }}
{apply}
        for (int i = 0; i < BLOCK; i++)
            most = fmax(most, error(got[i], {reference}));
    }}
    return most;
}}
"""


_ONE = """\
#pragma omp simd
        for (int i = 0; i < BLOCK; i++)
            got[i] = {value};"""

_SEVERAL = """\
        enum {{ count = ABREAST(64 / LANES16) }};
        for (int i = 0; i < BLOCK; i += count * LANES16) {{
            vec16 part[count];
            EACH part[v] = V16(x[i + v * LANES16]);
            {function}16_each(part, count);
            EACH V16(got[i + v * LANES16]) = part[v];
        }}"""


def _checker(functions: str, apply: str, reference: str, second: str) -> Any:
    source = _CHECKER.format(functions=functions, apply=apply, reference=reference, second=second)
    worst = ctypes.CDLL(str(build(source))).worst
    worst.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64]
    worst.restype = ctypes.c_double
    return worst


def worst_ulp(
    value: Apply, reference: str, *, stride: int, first: int = 0, end: int = 2**32, second: str = "0.0f"
) -> float:
    """The largest error of ``value`` over every ``stride``-th float; infinite for a wrong sign, NaN or infinity.

    Args:
        value: in terms of ``X``, and of ``Y`` for a binary function.
        reference: the right result in C, in double precision, in terms of x[i] and y[i].
        stride: 1 for all 2^32 floats.
        first: the bit pattern to begin with.
        end: the one to end before; up to a block of 4096 floats more are looked at.
        second: y[i] in C, in terms of x[i] and ``bits``.
    """
    used: set[str] = set()
    text = Printer(lambda load: load.buffer, used).text(value)
    functions = "\n".join(FUNCTIONS[name].source for name in with_callees(used))
    return float(_checker(functions, _ONE.format(value=text), reference, second)(first, end, stride))


def worst_ulp_of_several(function: str, reference: str, *, stride: int) -> float:
    """The same of a function that is applied to several vectors side by side."""
    used = Used(several={(function, 16)}, widths={16})
    functions = preamble(used, "UNROLL least(")
    return float(_checker(functions, _SEVERAL.format(function=function), reference, "0.0f")(0, 2**32, stride))
