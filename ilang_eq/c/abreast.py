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
}
"""Steps of ``Function.several`` and ``Function.avx512`` that C has no operator for."""

_ALIKE = """\
// To the results of single floats.
static inline void {name}{n}_alike(vec{n} *x, int count)
{{
{several}}}
"""

_ANY = """\
static inline void {name}{n}_each(vec{n} *x, int count)
{{
#if LANES{n} == 16 && defined(__AVX512DQ__)
{avx512}#else
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
        alike, avx512 = FUNCTIONS[name].several, FUNCTIONS[name].avx512
        assert alike is not None, f"{name} is applied to one vector after the other"
        assert avx512 is not None, f"{name} has no steps for AVX-512"
        parts.append(_ALIKE.format(name=name, n=n, several=alike.format(n=n)))
        parts.append(_ANY.format(name=name, n=n, avx512=avx512.format(n=n)))
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
