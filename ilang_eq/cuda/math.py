"""CUDA C source of the scalar functions that generated kernels call, each emitted only where it is used.

They are what ``lower/scalar.py`` spells, on top of CUDA's own functions, whose errors the CUDA C++ programming guide
lists (without fast-math options: expf, exp2f 2 ulp; logf, log2f 1 ulp; powf 4 ulp). Infinities, NaN, signed zeros
and denormals are as in IEEE 754 and C's math.h.
"""

from __future__ import annotations

from collections.abc import Iterable

_FUNCTION = "__device__ __forceinline__ float "

_SOURCES: dict[str, str] = {
    "exp_of": "exp_of(float x) { return expf(x); }",
    "exp2_of": """\
exp2_of(float x, float high, float low)
{
    const float y = x * high;
    const float rest = fmaf(x, high, -y) + x * low;
    return fabsf(y) < 160.0f ? exp2f(y) * fmaf(rest, 0.693147181f, 1.0f) : exp2f(y);
}""",
    "ln_of": "ln_of(float x) { return logf(x); }",
    "log_in": """\
log_in(float x, float scale, float scale_low, float two, float two_low)
{
    return log2f(x) * two;
}""",
    "log_of": "log_of(float b, float x) { return logf(x) / logf(b); }",
    "pow_of": "pow_of(float x, float y) { return powf(x, y); }",
    "larger": "larger(float x, float y) { return fmaxf(x, y); }",
    "smaller": "smaller(float x, float y) { return fminf(x, y); }",
    "max_of": "max_of(float x, float y) { return fmaxf(x, y); }",
    "min_of": "min_of(float x, float y) { return fminf(x, y); }",
    "abs_of": "abs_of(float x) { return fabsf(x); }",
    "square": "square(float x) { return x * x; }",
    "cube": "cube(float x) { return x * x * x; }",
    "fourth": "fourth(float x) { return x * x * (x * x); }",
    "root": "root(float x) { return sqrtf(x == -INFINITY ? INFINITY : x) + 0.0f; }",
    "finite_or": "finite_or(float x, float y) { return fabsf(x) < INFINITY ? x : y; }",
    "shift_factor": """\
shift_factor(float rate, float old, float moved)
{
    return expf(fabsf(old) < INFINITY && fabsf(moved) < INFINITY ? rate * (old - moved) : 0.0f);
}""",
}

_COMMENTS: dict[str, str] = {
    "exp2_of": "2^(x * (high + low)).",
    "log_in": "The logarithm to a base b, given 1 / ln(b) and log_b(2), each in two parts.",
    "log_of": "The logarithm of x to the base b.",
    "larger": "The larger of the two; one NaN is skipped.",
    "smaller": "The smaller of the two; one NaN is skipped.",
    "root": "x^0.5, which unlike sqrtf maps -inf to inf and -0 to 0.",
    "shift_factor": "e^(rate * (old - moved)), and 1 where old or moved is not finite.",
}


def functions(names: Iterable[str]) -> list[str]:
    """The source of the functions called ``names``, sorted."""
    found: list[str] = []
    for name in sorted(set(names)):
        comment = f"// {_COMMENTS[name]}\n" if name in _COMMENTS else ""
        found.append(comment + _FUNCTION + _SOURCES[name])
    return found


NAMES = frozenset(_SOURCES)
"""Every function there is."""
