"""Throughput of the generated scalar functions, in ns an element from cache, and of libmvec where there is one.

python benchmarks/vector_math.py
"""

from __future__ import annotations

import ctypes

from ilang_eq.c.build import build
from ilang_eq.c.math import FUNCTIONS, with_callees
from ilang_eq.errors import BuildError

OURS = {
    "exp": "exp_of(x[i])",
    "2^x": "exp2_of(x[i], 1.0f, 0.0f)",
    "ln": "ln_of(x[i])",
    "log2": "log_in(x[i], 1.44269502f, 1.92596303e-8f, 1.0f, 0.0f)",
    "x^1.7": "pow_of(x[i], 1.7f)",
    "x^y": "pow_of(x[i], 0.1f * x[i])",
    "log_b(x), b varies": "log_of(2.0f + x[i], x[i])",
    "1 / x": "1.0f / x[i]",
    "tanh": "1.0f - 2.0f / (exp_of(2.0f * x[i]) + 1.0f)",
}
LIBMVEC = {"exp": "v_expf(x)", "2^x": "v_exp2f(x)", "ln": "v_logf(x)", "log2": "v_log2f(x)", "tanh": "v_tanhf(x)"}
LIBMVEC |= {"x^1.7": "vv_powf(x, 0.0f * x + 1.7f)", "x^y": "vv_powf(x, 0.1f * x)"}

_HEAD = """\
#include <math.h>
#include <stdint.h>
#include <time.h>
#define COUNT 2048
static float in[COUNT] __attribute__((aligned(64))), out[COUNT] __attribute__((aligned(64)));
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
"""

_OURS = """\
static void __attribute__((noinline)) loop(const float *restrict x, float *restrict y)
{{
#pragma omp simd
    for (int i = 0; i < COUNT; i++)
        y[i] = {value};
}}
"""

_LIBMVEC = """\
typedef float vec __attribute__((vector_size(64)));
vec _ZGVeN16{name}({parameters});
static void __attribute__((noinline)) loop(const float *restrict values, float *restrict y)
{{
    for (int i = 0; i < COUNT; i += 16) {{
        const vec x = *(const vec *)&values[i];
        *(vec *)&y[i] = _ZGVeN16{call};
    }}
}}
"""

_TIME = """\
double nanoseconds(void)
{
    double best = 1;
    for (int i = 0; i < COUNT; i++)
        in[i] = 0.1f + 0.01f * i;
    for (int round = 0; round < 2000; round++) {
        const double start = now();
        for (int repeat = 0; repeat < 8; repeat++)
            loop(in, out);
        best = fmin(best, now() - start);
    }
    return best / 8 / COUNT * 1e9;
}
"""


def _run(*parts: str) -> float:
    library = ctypes.CDLL(str(build("\n".join(parts))))
    library.nanoseconds.restype = ctypes.c_double
    return float(library.nanoseconds())


def ours(value: str) -> float:
    """ns an element of ``value``, a C expression in x[i]."""
    functions = "\n".join(FUNCTIONS[name].source for name in with_callees(FUNCTIONS))
    return _run(_HEAD, functions, _OURS.format(value=value), _TIME)


def libmvec(call: str) -> float | None:
    """ns an element of glibc's vector function; None where there is none, or no AVX-512."""
    name = call.split("(")[0]
    try:
        parameters = ", ".join(["vec"] * (2 if name.startswith("vv") else 1))
        return _run(_HEAD, _LIBMVEC.format(name=name, parameters=parameters, call=call), _TIME)
    except (BuildError, OSError) as error:
        print(f"libmvec {name}: {error}")
        return None


if __name__ == "__main__":
    for name, value in OURS.items():
        theirs = libmvec(LIBMVEC[name]) if name in LIBMVEC else None
        print(f"{name:20s} {ours(value):6.3f} ns" + (f"   libmvec {theirs:6.3f} ns" if theirs else ""))
