"""C text of functions that are applied to several vectors side by side, step by step.

``Function.several`` in ``math.py`` has what they do and says why.
"""

from __future__ import annotations

from collections.abc import Collection

from ilang_eq.c.math import FUNCTIONS
from ilang_eq.lower.groups import AARCH64, AVX512, OTHERS, Grouping

_EACH = """\
#define EACH UNROLL for (int v = 0; v < count; v++)
// How many of n vectors stand side by side, as many as divide n: each takes up to four registers.
#if defined(__AVX512F__)
{avx512}
#elif defined(__aarch64__)
{aarch64}
#else
{others}
#endif
"""

_STEPS = {
    "bounded": """\
// No less than low and no more than high; NaN stays. GCC makes two instructions each of comparisons with constants.
static inline vec{n} bounded{n}(vec{n} x, float low, float high)
{{
#if defined(__clang__) || !defined(__SSE__)
#pragma omp simd
    for (int l = 0; l < LANES{n}; l++)
        x[l] = x[l] < low ? low : x[l] > high ? high : x[l];
    return x;
#else
    const vec{n} lowest = low - (vec{n}){{0}}, highest = high - (vec{n}){{0}};
#if LANES{n} == 16
    x = __builtin_ia32_maxps512_mask(lowest, x, x, (uint16_t)-1, 4);
    return __builtin_ia32_minps512_mask(highest, x, x, (uint16_t)-1, 4);
#elif LANES{n} == 8
    return __builtin_ia32_minps256(highest, __builtin_ia32_maxps256(lowest, x));
#else
    return __builtin_ia32_minps(highest, __builtin_ia32_maxps(lowest, x));
#endif
#endif
}}
""",
    "power_of_two": """\
// The float whose exponent is in the low bits of shift.
static inline vec{n} power_of_two{n}(vec{n} shift)
{{
    typedef uint32_t words __attribute__((vector_size(4 * LANES{n})));
    return (vec{n})((words)shift << 23);
}}
""",
    "part_of_power": """\
#if LANES{n} == 16 && defined(__AVX512DQ__)
// 2^(k / 16), where k is in the low four bits of shift.
static inline vec{n} part_of_power{n}(vec{n} shift)
{{
    typedef int32_t words __attribute__((vector_size(64)));
    const vec{n} powers = {{1.0f,        1.04427373f, 1.09050775f, 1.13878858f, 1.18920708f, 1.24185777f,
                            1.29683959f, 1.35425556f, 1.41421354f, 1.47682619f, 1.54221082f, 1.61049032f,
                            1.68179286f, 1.75625217f, 1.8340081f,  1.91520655f}};
#ifdef __clang__
    return __builtin_ia32_permvarsf512(powers, (words)shift);
#else
    return __builtin_shuffle(powers, (words)shift);
#endif
}}
#endif
""",
    "within_half": """#if LANES{n} == 16 && defined(__AVX512DQ__)
// No less than -0.5 and no more than 0.5; 0.5 for NaN.
static inline vec{n} within_half{n}(vec{n} x)
{{
    return __builtin_ia32_rangeps512_mask(x, 0.5f - (vec{n}){{0}}, 6, x, (uint16_t)-1, 4);
}}
#endif
""",
    "beyond": """\
#if LANES{n} == 8 && defined(__AVX2__)
typedef uint32_t bits{n} __attribute__((vector_size(32)));
typedef int32_t whole{n} __attribute__((vector_size(32)));

// Whether an element of some vectors is larger than ``most``, whatever its sign, or NaN: hardly ever.
static inline int beyond{n}(const vec{n} *x, int count, float most)
{{
    const whole{n} limit = (whole{n})(most - (vec{n}){{0}});
    whole{n} found = {{0}};
    EACH found |= ((whole{n})x[v] & 0x7fffffff) > limit;
    return __builtin_expect(__builtin_ia32_movmskps256((vec{n})found), 0) != 0;
}}

static inline bits{n} chosen{n}(bits{n} mask, bits{n} x, bits{n} y) {{ return (mask & x) | (~mask & y); }}

// x * 2^m with one rounding, given 0.7 < x < 1.5 or NaN, and m >= -151 in the highest nine bits of each word. What is
// below 2^-126 is, as a number of times 2^-149, its own bits: a product that small would take tens of cycles.
static inline vec{n} scaled{n}(vec{n} x, bits{n} m)
{{
    const bits{n} infinity = (bits{n})(INFINITY - (vec{n}){{0}}), sum = (bits{n})x + m;
    const bits{n} above = (bits{n})((whole{n})sum > (whole{n})infinity);
    const bits{n} below = (bits{n})((whole{n})m < -125 * (1 << 23));
    const bits{n} times = (bits{n})__builtin_ia32_cvtps2dq256(x * (vec{n})(m + (149u + 127u) * (1u << 23)));
    const bits{n} number = chosen{n}(below, times, chosen{n}(above, infinity, sum));
    return (vec{n})chosen{n}((bits{n})(x == x), number, (bits{n})x);
}}
#endif
""",
}
"""Steps of ``Function.several`` and ``Function.avx512`` that C has no operator for."""

_ALIKE = """\
// To the results of single floats.
static inline void {name}{n}_alike(vec{n} *x, int count)
{{
{several}}}
"""

_ENDS = """\
#if LANES{n} == 8 && defined(__AVX2__) && defined(__FMA__)
// Four vectors of any elements. Apart, so that what it needs takes no registers elsewhere.
static __attribute__((noinline)) void {name}{n}_ends(vec{n} *x)
{{
    enum {{ count = 4 }};
{anywhere}}}
#endif
"""

_ANY = """\
static inline void {name}{n}_each(vec{n} *x, int count)
{{
#if LANES{n} == 16 && defined(__AVX512DQ__)
{avx512}#elif LANES{n} == 8 && defined(__AVX2__) && defined(__FMA__)
    if (count < 2) {{
        {name}{n}_alike(x, count);
    }} else if (beyond{n}(x, count, {limit}f)) {{
        vec{n} any[8] = {{0}};
        EACH any[v] = x[v];
        for (int v = 0; v < count; v += 4)
            {name}{n}_ends(&any[v]);
        EACH x[v] = any[v];
    }} else {{
{inside}    }}
#else
    {name}{n}_alike(x, count);
#endif
}}
"""


_ALONE = """\
static inline vec{n} {name}{n}_alone(vec{n} x)
{{
    {name}{n}_each(&x, 1);
    return x;
}}
"""


def abreast(several: Collection[tuple[str, int]], alone: Collection[tuple[str, int]] = ()) -> list[str]:
    """For each (function, lanes) ``function{lanes}_each`` and ``function{lanes}_alike``, after what they need.

    They replace ``count`` vectors by their results; ``_alike`` by those of single floats, to the bit. For those that
    are called ``alone`` there is ``function{lanes}_alone``, too: of one vector.
    """
    parts: list[str] = []
    for name, n in sorted(several):
        function = FUNCTIONS[name]
        assert function.several is not None, f"{name} is applied to one vector after the other"
        assert function.avx512 is not None, f"{name} has no steps for AVX-512"
        assert function.avx2 is not None, f"{name} has no steps for AVX2"
        texts = {"several": function.several, "avx512": function.avx512}
        texts |= {"inside": function.avx2.inside, "anywhere": function.avx2.anywhere}
        steps = {kind: text.format(n=n) for kind, text in texts.items()}
        parts += [form.format(name=name, n=n, limit=function.avx2.limit, **steps) for form in (_ALIKE, _ENDS, _ANY)]
        if (name, n) in alone:
            parts.append(_ALONE.format(name=name, n=n))
    needed = sorted({n for _, n in several})
    steps = [text.format(n=n) for n in needed for text in _STEPS.values()]
    macros = _EACH.format(avx512=_macro(AVX512), aarch64=_macro(AARCH64), others=_macro(OTHERS))
    return [*([macros] if several else []), *steps, *parts]


def _macro(grouping: Grouping) -> str:
    """``Grouping.abreast`` in C, of a constant."""
    sizes = " : ".join(f"(n) % {size} == 0 ? {size}" for size in grouping.sizes)
    return f"#define ABREAST(n) ((n) <= {grouping.all_of} ? (n) : {sizes} : 1)"
