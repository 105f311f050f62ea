"""C source of the scalar functions that generated kernels call, each emitted only where it is used.

All are branch-free ``static inline float`` functions of floats, so that a compiler vectorises the loop around them. The
polynomials are minimax fits made for this package; ``tests/c/test_math.py`` measures every error bound below.

Invariants:
  * a function calls only functions in its ``calls``; following ``calls`` never cycles
  * infinities, NaN, signed zeros and denormals are handled as IEEE 754 and C's math.h do
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Function:
    """A C function: its source and the names of the functions it calls."""

    source: str
    calls: tuple[str, ...] = ()


def with_callees(names: Iterable[str]) -> tuple[str, ...]:
    """``names`` and everything they call, each once, callees first; deterministic."""
    found: dict[str, None] = {}

    def visit(name: str) -> None:
        for callee in FUNCTIONS[name].calls:
            visit(callee)
        found[name] = None

    for name in sorted(set(names)):
        visit(name)
    return tuple(found)


FUNCTIONS: dict[str, Function] = {
    "float_of": Function(
        """\
static inline float float_of(uint32_t bits)
{
    union { uint32_t bits; float value; } x = {.bits = bits};
    return x.value;
}"""
    ),
    "bits_of": Function(
        """\
static inline uint32_t bits_of(float value)
{
    union { float value; uint32_t bits; } x = {.value = value};
    return x.bits;
}"""
    ),
    "scaled_exp": Function(
        """\
// e^r * 2^n for |r| <= 0.35 and a whole |n| <= 152. Adding 1.5 * 2^23 leaves n in the low bits; scaling twice by
// half the exponent reaches denormals and infinity with one rounding.
static inline float scaled_exp(float r, float n)
{
    float p = 1.3814320555e-3f;
    p = p * r + 8.3688516170e-3f;
    p = p * r + 4.1668400168e-2f;
    p = p * r + 1.6666519642e-1f;
    p = p * r + 4.9999994040e-1f;
    p = p * r * r + r + 1.0f;
    const int32_t whole = (int32_t)(bits_of(n + 12582912.0f) - bits_of(12582912.0f));
    const uint32_t half = (uint32_t)(whole >> 1);
    const uint32_t rest = (uint32_t)whole - half;
    return p * float_of((half + 127u) << 23) * float_of((rest + 127u) << 23);
}""",
        ("bits_of", "float_of"),
    ),
    "exp_of": Function(
        """\
// e^x, within 1.01 ulp.
static inline float exp_of(float x)
{
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    const float n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
    return scaled_exp(x - n * 0.693359375f - n * -2.12194440e-4f, n);
}""",
        ("scaled_exp",),
    ),
    "power_of": Function(
        """\
// b^x for a constant b, given log2(b) in two parts and the |x| beyond which b^x overflows or vanishes, within 1.2 ulp.
static inline float power_of(float x, float log2_high, float log2_low, float limit)
{
    x = x > limit ? limit : x;
    x = x < -limit ? -limit : x;
    const float high = x * log2_high;
    const float low = fmaf(x, log2_high, -high) + x * log2_low;
    const float n = (high + 12582912.0f) - 12582912.0f;
    return scaled_exp(((high - n) + low) * 0.693147181f, n);
}""",
        ("scaled_exp",),
    ),
    "ln_of": Function(
        """\
// The natural logarithm, within 0.9 ulp. x = m * 2^e with m in [sqrt(1/2), sqrt(2)); denormals are scaled up first.
static inline float ln_of(float x)
{
    const float y = x < 1.17549435e-38f ? x * 8388608.0f : x;
    const uint32_t bits = bits_of(y) - 0x3f3504f3u;
    const float f = float_of((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    const float e = (float)((int32_t)bits >> 23) - (x < 1.17549435e-38f ? 23.0f : 0.0f);
    float p = -7.6365485787e-2f;
    p = p * f + 1.2764675915e-1f;
    p = p * f - 1.3160890341e-1f;
    p = p * f + 1.4201395214e-1f;
    p = p * f - 1.6623252630e-1f;
    p = p * f + 2.0001238585e-1f;
    p = p * f - 2.5000822544e-1f;
    p = p * f + 3.3333331347e-1f;
    const float low = (p * f - 0.5f) * f * f + e * -2.12194440e-4f;
    float y_log = (low + f) + e * 0.693359375f;
    y_log = x == 0.0f ? -INFINITY : y_log;
    y_log = x == INFINITY ? INFINITY : y_log;
    return (x < 0.0f) | (x != x) ? NAN : y_log;
}""",
        ("bits_of", "float_of"),
    ),
    "larger": Function(
        """\
// The larger of the two; y if x is NaN. y is not NaN.
static inline float larger(float x, float y) { return x > y ? x : y; }"""
    ),
    "smaller": Function(
        """\
// The smaller of the two; y if x is NaN. y is not NaN.
static inline float smaller(float x, float y) { return x < y ? x : y; }"""
    ),
    "max_of": Function(
        """\
// The larger of the two; one NaN is skipped.
static inline float max_of(float x, float y) { return x > y ? x : y == y ? y : x; }"""
    ),
    "min_of": Function(
        """\
// The smaller of the two; one NaN is skipped.
static inline float min_of(float x, float y) { return x < y ? x : y == y ? y : x; }"""
    ),
    "square": Function("static inline float square(float x) { return x * x; }"),
    "cube": Function("static inline float cube(float x) { return x * x * x; }"),
    "root": Function(
        """\
// x^0.5, which unlike sqrtf maps -inf to inf and -0 to 0.
static inline float root(float x) { return sqrtf(x == -INFINITY ? INFINITY : x) + 0.0f; }"""
    ),
    "finite_or": Function(
        "static inline float finite_or(float x, float y) { return fabsf(x) < INFINITY ? x : y; }",
    ),
    "shift_factor": Function(
        """\
// e^(rate * (old - new)), and 1 where old or new is not finite.
static inline float shift_factor(float rate, float old, float new)
{
    const float moved = (fabsf(old) < INFINITY) & (fabsf(new) < INFINITY) ? rate * (old - new) : 0.0f;
    return exp_of(moved);
}""",
        ("exp_of",),
    ),
}
"""Every function by name."""
