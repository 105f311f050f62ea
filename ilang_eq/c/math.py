"""C source of the scalar functions that generated kernels call, each emitted only where it is used.

All are branch-free ``static inline float`` functions of floats, so that a compiler vectorises the loop around them;
some have a text for several vectors besides, which may ask first whether all elements are ordinary. The polynomials
are minimax fits made for this package; ``tests/c/test_math.py`` measures every error bound below.

Invariants:
  * a function calls only functions in its ``calls``; following ``calls`` never cycles
  * infinities, NaN, signed zeros and denormals are handled as IEEE 754 and C's math.h do
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ends:
    """Steps as in ``Function.several`` that leave out what only ends need; ``bits{n}`` are vectors of uint32_t.

    Args:
        limit: how large an element may be, whatever its sign.
        inside: the steps for vectors of such elements.
        anywhere: the steps for any; to the same results, to the bit.
    """

    limit: float
    inside: str
    anywhere: str


@dataclass(frozen=True, slots=True)
class Function:
    """A C function.

    Args:
        source: its text.
        calls: the names of the functions it calls.
        several: where it has one, the inside of a function that replaces ``count`` <= 8 vectors x[v] of {n} lanes by
            their results: one step for all vectors, then the next. A step takes four cycles, and a core looks too few
            instructions ahead to find others meanwhile, unless they stand beside it. The results are those of single
            floats, to the bit.
        avx512: the same with AVX-512 (F and DQ), fewer steps to other results.
        avx2: the same with AVX2 and FMA, for two vectors and more, to other results.
    """

    source: str
    calls: tuple[str, ...] = ()
    several: str | None = None
    avx512: str | None = None
    avx2: Ends | None = None


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


_EXP_TERMS = """\
    // e^x = e^r * 2^m with a whole m and |r| <= 0.3466, within 0.91 ulp; m in the highest nine bits of each word.
    vec{n} p[8];
    bits{n} m[8];
    EACH p[v] = x[v] * 1.44269504f + 12582912.0f;
    EACH m[v] = (bits{n})p[v] << 23;
    EACH p[v] = p[v] - 12582912.0f;
    EACH x[v] = x[v] - p[v] * 0.693359375f;
    EACH x[v] = x[v] - p[v] * -2.12194440e-4f;
    EACH p[v] = 1.3814320555e-3f * x[v] + 8.3688516170e-3f;
    EACH p[v] = p[v] * x[v] + 4.1668400168e-2f;
    EACH p[v] = p[v] * x[v] + 1.6666519642e-1f;
    EACH p[v] = p[v] * x[v] + 4.9999994040e-1f;
    EACH p[v] = p[v] * x[v] + 1.0f;
    EACH p[v] = p[v] * x[v] + 1.0f;
"""

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
// e^r * 4^m for |r| <= 0.6934 and a whole |m| <= 80, given shift = 1.5 * 2^23 + 127 + m, whose low bits are the
// exponent of 2^m. Scaling twice by 2^m reaches denormals and infinity with one rounding.
static inline float scaled_exp(float r, float shift)
{
    float p = 1.9629912276e-4f;
    p = p * r + 1.4104773290e-3f;
    p = p * r + 8.3359340206e-3f;
    p = p * r + 4.1661228985e-2f;
    p = p * r + 1.6666617990e-1f;
    p = p * r + 5.0000035763e-1f;
    p = p * r + 1.0f;
    const float scale = float_of(bits_of(shift) << 23);
    return (p * r + 1.0f) * scale * scale;
}""",
        ("bits_of", "float_of"),
    ),
    "exp_of": Function(
        """\
// e^x, within 1.65 ulp. The upper end is held as an integer, which compilers make one instruction of.
static inline float exp_of(float x)
{
    const float y = x < -104.0f ? -104.0f : x;
    int32_t bits = (int32_t)bits_of(y * 0.72134752f + 12583039.0f);
    bits = bits < 0x4b4000c4 ? bits : 0x4b4000c4;
    const float shift = float_of((uint32_t)bits);
    const float m = shift - 12583039.0f;
    return scaled_exp(y - m * 1.38671875f - m * -4.2438880e-4f, shift);
}""",
        ("scaled_exp",),
        """\
    vec{n} n[8], p[8];
    EACH x[v] = bounded{n}(x[v], -104.0f, 89.0f);
    EACH n[v] = x[v] * 0.72134752f + 12583039.0f;
    EACH p[v] = n[v] - 12583039.0f;
    EACH x[v] = x[v] - p[v] * 1.38671875f;
    EACH x[v] = x[v] - p[v] * -4.2438880e-4f;
    EACH p[v] = 1.9629912276e-4f * x[v] + 1.4104773290e-3f;
    EACH p[v] = p[v] * x[v] + 8.3359340206e-3f;
    EACH p[v] = p[v] * x[v] + 4.1661228985e-2f;
    EACH p[v] = p[v] * x[v] + 1.6666617990e-1f;
    EACH p[v] = p[v] * x[v] + 5.0000035763e-1f;
    EACH p[v] = p[v] * x[v] + 1.0f;
    EACH p[v] = p[v] * x[v] + 1.0f;
    EACH n[v] = power_of_two{n}(n[v]);
    EACH x[v] = p[v] * n[v] * n[v];
""",
        """\
    // e^x = e^r * 2^n with whole 16 n and |r| <= 0.0217, within 0.99 ulp. Infinities and NaN come from n.
    vec{n} n[8], q[8], p[8];
    EACH n[v] = x[v] * 1.44269504f + 786432.0f;
    EACH q[v] = part_of_power{n}(n[v]);
    EACH n[v] = n[v] - 786432.0f;
    EACH x[v] = x[v] - n[v] * 0.693359375f;
    EACH x[v] = x[v] - n[v] * -2.12194440e-4f;
    EACH x[v] = within_half{n}(x[v]);
    EACH p[v] = 1.6666719317e-1f * x[v] + 5.0001615286e-1f;
    EACH p[v] = p[v] * (x[v] * x[v]) + x[v];
    EACH p[v] = p[v] * q[v] + q[v];
    EACH x[v] = __builtin_ia32_scalefps512_mask(p[v], n[v], p[v], (uint16_t)-1, 4);
""",
        Ends(
            87.0,
            _EXP_TERMS + "    EACH x[v] = (vec{n})((bits{n})p[v] + m[v]);\n",
            "    EACH x[v] = bounded{n}(x[v], -104.5f, 89.0f);\n"
            + _EXP_TERMS
            + "    EACH x[v] = scaled{n}(p[v], m[v]);\n",
        ),
    ),
    "exp2_of": Function(
        """\
// 2^(x * (high + low)); high + low may be infinite. Within 1.3 ulp if high + low is good to 2^-34. Scaling twice by
// half the exponent leaves |r| <= 0.35, where fewer terms do, and more exactly, than in scaled_exp.
static inline float exp2_of(float x, float high, float low)
{
    const float y = x * high;
    int32_t bits = (int32_t)bits_of(y + 12582912.0f);
    bits = bits < 0x4b4000a0 ? bits : 0x4b4000a0;
    bits = bits > 0x4b3fff60 ? bits : 0x4b3fff60;
    const float n = float_of((uint32_t)bits) - 12582912.0f;
    float r = fmaf(fmaf(x, high, -n), 0.693147181f, x * low * 0.693147181f);
    r = fabsf(y) >= 160.0f ? 0.0f : r;
    float p = 1.3814320555e-3f;
    p = p * r + 8.3688516170e-3f;
    p = p * r + 4.1668400168e-2f;
    p = p * r + 1.6666519642e-1f;
    p = p * r + 4.9999994040e-1f;
    const int32_t whole = bits - 0x4b400000;
    const uint32_t half = (uint32_t)(whole >> 1);
    const uint32_t rest = (uint32_t)whole - half;
    return (p * r * r + r + 1.0f) * float_of((half + 127u) << 23) * float_of((rest + 127u) << 23);
}""",
        ("bits_of", "float_of"),
    ),
    "ln_of": Function(
        """\
// The natural logarithm, within 0.9 ulp. x = m * 2^e with m in [sqrt(1/2), sqrt(2)); denormals are scaled up first.
static inline float ln_of(float x)
{
    const uint32_t up = x < 1.17549435e-38f ? 23u << 23 : 0u;
    const uint32_t bits = bits_of(x * float_of(up + 0x3f800000u)) - 0x3f3504f3u;
    const float f = float_of((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    const float e = (float)((int32_t)(bits - up) >> 23);
    const float y = ln_low(f, e * -2.12194440e-4f) + f + e * 0.693359375f;
    return ends_of_log(x, y);
}""",
        ("bits_of", "float_of", "ln_low", "ends_of_log"),
    ),
    "ln_low": Function(
        """\
// ln(1 + f) - f + more, for f in [sqrt(1/2) - 1, sqrt(2) - 1).
static inline float ln_low(float f, float more)
{
    const float square = f * f;
    const float p7 = -7.6365485787e-2f * f + 1.2764675915e-1f;
    const float p5 = -1.3160890341e-1f * f + 1.4201395214e-1f;
    const float p3 = -1.6623252630e-1f * f + 2.0001238585e-1f;
    const float p1 = -2.5000822544e-1f * f + 3.3333331347e-1f;
    const float p = ((p7 * square + p5) * square + p3) * square + p1;
    return (p * f - 0.5f) * square + more;
}"""
    ),
    "ends_of_log": Function(
        """\
// y, a logarithm of x, put right where x is zero, negative, infinite or NaN.
static inline float ends_of_log(float x, float y)
{
    y = x < INFINITY ? y : x;
    y = x > 0.0f ? y : NAN;
    return x == 0.0f ? -INFINITY : y;
}"""
    ),
    "log_in": Function(
        """\
// The logarithm to a constant base b, given 1 / ln(b) and log_b(2), each in two parts, within 1.2 ulp.
static inline float log_in(float x, float scale, float scale_low, float two, float two_low)
{
    const uint32_t up = x < 1.17549435e-38f ? 23u << 23 : 0u;
    const uint32_t bits = bits_of(x * float_of(up + 0x3f800000u)) - 0x3f3504f3u;
    const float f = float_of((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    const float e = (float)((int32_t)(bits - up) >> 23);
    const float low = ln_low(f, 0.0f), high = low + f;
    const float rest = ((f - high) + low) * scale + (high * scale_low + e * two_low);
    float y = fmaf(e, two, fmaf(high, scale, rest));
    y = x == 1.0f ? 0.0f * scale : y;
    y = x < INFINITY ? y : x * scale;
    y = x > 0.0f ? y : NAN;
    return x == 0.0f ? -INFINITY * scale : y;
}""",
        ("bits_of", "float_of", "ln_low"),
    ),
    "log2_of": Function(
        """\
// log2(x) for x >= 0 in two parts, good to 2^-34: with s = f / (f + 2), log2(1 + f) = 2 / ln(2) * (s + s^3/3 + ...).
struct parts { float high, low; };
static inline struct parts log2_of(float x)
{
    const uint32_t up = x < 1.17549435e-38f ? 23u << 23 : 0u;
    const uint32_t bits = bits_of(x * float_of(up + 0x3f800000u)) - 0x3f3504f3u;
    const float f = float_of((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    const float e = (float)((int32_t)(bits - up) >> 23);
    const float d = f + 2.0f, inverse = 1.0f / d;
    const float s = f * inverse;
    const float s_low = (fmaf(-s, d, f) - s * (f - (d - 2.0f))) * inverse;
    const float z = s * s;
    const float z_low = fmaf(s, s, -z) + 2.0f * s * s_low;
    const float q = (z * 1.1710070074e-1f + 1.4273539186e-1f) * z + 2.0000076294e-1f;
    const float p = z * q + 0.333333343f;
    const float p_low = fmaf(z, q, 0.333333343f - p) - 9.934107e-9f;
    const float u = z * p;
    const float u_low = fmaf(z, p, -u) + (z * p_low + z_low * p);
    const float v = s * u;
    const float h = s + v;
    const float h_low = (s - h) + v + (fmaf(s, u, -v) + (s * u_low + s_low * u) + s_low);
    const float g = h * 2.88539004f;
    const float g_low = fmaf(h, 2.88539004f, -g) + (h * 3.8519608e-8f + h_low * 2.88539004f);
    const float high = e + g;
    const float low = (e - high) + g + g_low;
    const struct parts y = {ends_of_log(x, high), (x > 0.0f) & (x < INFINITY) ? low : 0.0f};
    return y;
}""",
        ("bits_of", "float_of", "ends_of_log"),
    ),
    "log_of": Function(
        """\
// The logarithm of x to the base b, within 1.1 ulp: the quotient of two logarithms, corrected once.
static inline float log_of(float b, float x)
{
    const struct parts above = log2_of(x), below = log2_of(b);
    const float y = above.high / below.high;
    const float rest = (fmaf(-y, below.high, above.high) + (above.low - y * below.low)) / below.high;
    return fabsf(rest) < INFINITY ? y + rest : y;
}""",
        ("log2_of",),
    ),
    "pow_of": Function(
        """\
// x^y, within 1.3 ulp; special cases as in C.
static inline float pow_of(float x, float y)
{
    const float half = y * 0.5f;
    const int whole = truncf(y) == y, odd = whole & (truncf(half) != half);
    const struct parts log2_x = log2_of(fabsf(x));
    float p = exp2_of(y, log2_x.high, log2_x.low);
    p = (y == 0.0f) | (x == 1.0f) | ((x == -1.0f) & (fabsf(y) == INFINITY)) ? 1.0f : p;
    p = (x < 0.0f) & (x > -INFINITY) & !whole ? NAN : p;
    return odd ? copysignf(p, x) : p;
}""",
        ("log2_of", "exp2_of"),
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
    "abs_of": Function("static inline float abs_of(float x) { return fabsf(x); }"),
    "square": Function("static inline float square(float x) { return x * x; }"),
    "cube": Function("static inline float cube(float x) { return x * x * x; }"),
    "fourth": Function(
        """\
static inline float fourth(float x)
{
    const float square = x * x;
    return square * square;
}"""
    ),
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

TRUTHS = {">": "above", ">=": "not_below", "<": "below", "<=": "not_above", "==": "equal", "!=": "unequal"}
TRUTHS |= {"&": "both", "|": "either", "^": "one_of"}
"""Comparisons, and logic on truth values, by their operators in C: the names of functions that do them."""

FUNCTIONS |= {
    name: Function(f"static inline float {name}(float x, float y) {{ return {test} ? 1.0f : 0.0f; }}")
    for op, name in TRUTHS.items()
    for test in [f"(x != 0.0f) {op} (y != 0.0f)" if op in ("&", "|", "^") else f"x {op} y"]
}
