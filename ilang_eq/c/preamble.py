"""The fixed part of generated C: integer arithmetic, threads, vector types and operations, each where it is used."""

from __future__ import annotations

from collections.abc import Sequence

from ilang_eq.c.abreast import abreast
from ilang_eq.c.columns import COLUMNS
from ilang_eq.c.fetches import fetches
from ilang_eq.c.math import FUNCTIONS, with_callees
from ilang_eq.c.mirror import MIRROR
from ilang_eq.c.sharing import sharing
from ilang_eq.c.turned import TURN
from ilang_eq.c.vectors import Used
from ilang_eq.lower.addresses import CROWDED, SPACE

HEADERS = """\
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#ifdef _OPENMP
#include <omp.h>
#endif
"""

_SHARED_LOADS = """\
// GCC's tuning for AMD's processors has each multiply-add load by itself what several share.
#if !defined(__clang__) && (defined(__tune_znver1__) || defined(__tune_znver2__) || defined(__tune_znver3__) || \\
                            defined(__tune_znver4__) || defined(__tune_znver5__))
#pragma GCC target("tune=skylake")
#endif
"""

_NOINLINE = """\
#define NOINLINE __attribute__((noinline))
"""

_UNROLL = """\
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 64")
#endif
"""

_HIDE = """\
// Has GCC take a variable to change here, so that it holds it in a register.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define HIDE(x) __asm__("" : "+r"(x))
#else
#define HIDE(x) (void)(x)
#endif
"""

_HOLD = """\
// Has GCC take a vector to change here, so that it is in a register. Sums may be stored in every step of a loop else.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define HOLD(x) __asm__("" : "+v"(x))
#else
#define HOLD(x) (void)(x)
#endif
"""

_SELDOM = """\
// Most results are small. Where compilers take them to be large as often, products of 64 terms take 3 % longer.
#define SELDOM(x) __builtin_expect(x, 0)
"""

_LEAST = """\
static inline int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }
"""

_CEIL_DIV = """\
static inline int64_t ceil_div(int64_t x, int64_t y) { return (x + y - 1) / y; }
"""

_PADDED = """\
// A number of floats, rounded up to whole cache lines.
static inline int64_t padded(int64_t floats) { return (floats + 15) / 16 * 16; }
"""

_SPACED = f"""\
// The floats from one row to the next: those that lie a multiple of 2 KiB apart would have few places in a cache.
static inline int64_t spaced(int64_t floats) {{ return floats % {CROWDED} == 0 ? floats + {SPACE} : floats; }}
"""

_UNTIL_ALIGNED = """\
// How many floats there are to the next line.
static inline int64_t until_aligned(const float *p) { return (int64_t)(-(uintptr_t)p / sizeof(float) % 16); }
"""

_STREAMS = """\
// Whether writing past the caches while others read takes less than writing through them. Not on Intel's servers from
// Skylake to Cascade Lake, where a line on its way to memory has the place of one on its way from there.
#if defined(__SSE__) && !defined(__skylake_avx512__) && !defined(__cascadelake__)
#define STREAMS 1
#else
#define STREAMS 0
#endif
"""

_FENCE = """\
// Makes streamed vectors visible to other threads.
static inline void fence(void)
{
#if defined(__SSE__)
    __builtin_ia32_sfence();
#endif
}
"""

_LANES = """\
// The lanes of a vector register.
#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
"""

_VECTOR = """\
// Vectors of {n} lanes, or as many as a register has; V{n} reads or writes one in memory.
#define LANES{n} (LANES < {n} ? LANES : {n})
typedef float vec{n} __attribute__((vector_size(4 * LANES{n}), aligned(4), may_alias));
#define V{n}(x) (*(vec{n} *)&(x))
"""

_SHUFFLED = """\
// Lanes of two vectors, by number; those of the second come after those of the first.
#ifdef __clang__
#define SHUFFLED{n}(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
typedef int32_t places{n} __attribute__((vector_size(4 * LANES{n})));
#define SHUFFLED{n}(x, y, ...) __builtin_shuffle(x, y, (places{n}){{__VA_ARGS__}})
#endif
"""

_PART = """// Four lanes of a vector, from lane ``l`` on.
#define PART4(x, l) V4(((float *)&(x))[l])
"""

_HELPERS = {
    "broadcast": """\
static inline vec{n} broadcast{n}(float x) {{ return x - (vec{n}){{0}}; }}
""",
    "highest": """\
// What minima start with. It is read anew each time: in a register through a reduction it could take an accumulator's
// place, and GCC compares and blends with what it knows to be infinite, where it has an instruction for minima.
static inline vec{n} highest{n}(void)
{{
    static const volatile float infinity = INFINITY;
    return infinity - (vec{n}){{0}};
}}
""",
    "lowest": """\
// What maxima start with, read anew each time, as it could take an accumulator's place.
static inline vec{n} lowest{n}(void)
{{
    static const volatile float infinity = -INFINITY;
    return infinity - (vec{n}){{0}};
}}
""",
    "multiply_add": """\
// x * y + sum. GCC makes one instruction of it late, with copies of registers, which take a slot each; and where these
// are short it may hold a sum in memory, but not if that has to be in a register after each step.
static inline vec{n} multiply_add{n}(vec{n} x, vec{n} y, vec{n} sum)
{{
#if !defined(__FMA__) || defined(__AVX512F__) || defined(__clang__)
    return x * y + sum;
#else
#if {n} == 4
    sum = __builtin_ia32_vfmaddps(x, y, sum);
#else
    sum = __builtin_ia32_vfmaddps256(x, y, sum);
#endif
    __asm__("" : "+x"(sum));
    return sum;
#endif
}}
""",
    "load": """\
// The first ``left`` lanes from memory, zero in the others.
static inline vec{n} load{n}(const float *p, int64_t left)
{{
    const int32_t count = (int32_t)least(left, LANES{n});
#if defined(__AVX512F__) && {n} == 16
    const float __attribute__((vector_size(64))) zero = {{0}};
    return (vec{n})__builtin_ia32_loadups512_mask(p, zero, (uint16_t)(count > 0 ? (1u << count) - 1 : 0));
#else
    vec{n} x;
#pragma omp simd
    for (int32_t l = 0; l < LANES{n}; l++)
        x[l] = l < count ? p[l] : 0.0f;
    return x;
#endif
}}
""",
    "gather": """\
// Lanes that are ``step`` floats apart in memory. All are spelled out: of a loop over them GCC may make one that stores
// each by itself, and waits for them, 35 cycles on Zen 4 for 16 instead of 8. On Zen 5, where the loop takes 23 cycles
// for 8 and 30 for 16, an instruction takes 7 and 13, but waits for lines that are far one after the other. Steps that
// are known are those of tiles, which are near. Sanitizers do not see what it reads.
static inline vec{n} gather{n}(const float *p, int64_t step)
{{
#if ZEN5 && LANES{n} == {n} && {n} >= 8 && !defined(__SANITIZE_ADDRESS__)
    if (__builtin_constant_p(step) && step <= INT32_MAX / {n}) {{
        int32_t __attribute__((vector_size({n} * 4))) places;
#pragma omp simd
        for (int32_t l = 0; l < LANES{n}; l++)
            places[l] = l * (int32_t)step;
        const vec{n} zero = {{0}};
#if {n} == 16
        return __builtin_ia32_gathersiv16sf(zero, p, places, (uint16_t)-1, 4);
#else
        return __builtin_ia32_gathersiv8sf(zero, p, places, (vec{n})(places == places), 4);
#endif
    }}
#endif
#define AT(l) p[(l) * step]
    return (vec{n})LISTED{n}(AT);
#undef AT
}}
""",
    "gather_left": """\
// The first ``left`` lanes from places ``step`` floats apart, zero in the others. The others read the last of these
// again, without a branch for each.
static inline vec{n} gather_left{n}(const float *p, int64_t step, int64_t left)
{{
    const int32_t count = (int32_t)least(left, LANES{n});
    if (count <= 0)
        return (vec{n}){{0}};
    const int32_t last = count - 1;
#define AT(l) p[least(l, last) * step]
    vec{n} x = LISTED{n}(AT);
#undef AT
#pragma omp simd
    for (int32_t l = 0; l < LANES{n}; l++)
        x[l] = l < count ? x[l] : 0.0f;
    return x;
}}
""",
    "scatter": """\
// Lanes to places ``step`` floats apart in memory.
static inline void scatter{n}(float *p, vec{n} x, int64_t step)
{{
#pragma omp simd
    for (int32_t l = 0; l < LANES{n}; l++)
        p[l * step] = x[l];
}}
""",
    "scatter_left": """\
// The first ``left`` lanes to places ``step`` floats apart in memory.
static inline void scatter_left{n}(float *p, vec{n} x, int64_t step, int64_t left)
{{
    const int32_t count = (int32_t)least(left, LANES{n});
#pragma omp simd
    for (int32_t l = 0; l < LANES{n}; l++)
        if (l < count)
            p[l * step] = x[l];
}}
""",
    "store": """\
// The first ``left`` lanes to memory.
static inline void store{n}(float *p, vec{n} x, int64_t left)
{{
    const int32_t count = (int32_t)least(left, LANES{n});
#if defined(__AVX512F__) && {n} == 16
    __builtin_ia32_storeups512_mask(
        p, (float __attribute__((vector_size(64))))x, (uint16_t)(count > 0 ? (1u << count) - 1 : 0));
#else
#pragma omp simd
    for (int32_t l = 0; l < LANES{n}; l++)
        if (l < count)
            p[l] = x[l];
#endif
}}
""",
    "stream": """\
// To aligned memory that nobody reads soon: past the caches, where the machine can. A fence must follow.
static inline void stream{n}(float *p, vec{n} x)
{{
#if defined(__clang__)
    __builtin_nontemporal_store(x, (vec{n} *)__builtin_assume_aligned(p, 4 * LANES{n}));
#elif defined(__AVX512F__)
    __builtin_ia32_movntps512(p, (float __attribute__((vector_size(64))))x);
#elif defined(__AVX__)
    __builtin_ia32_movntps256(p, (float __attribute__((vector_size(32))))x);
#elif defined(__SSE__)
    __builtin_ia32_movntps(p, (float __attribute__((vector_size(16))))x);
#else
    V{n}(*p) = x;
#endif
}}
""",
    "keep": """\
// The first ``left`` lanes, ``other`` in the rest.
static inline vec{n} keep{n}(vec{n} x, int64_t left, float other)
{{
    const int32_t count = (int32_t)least(left, LANES{n});
#pragma omp simd
    for (int32_t l = 0; l < LANES{n}; l++)
        x[l] = l < count ? x[l] : other;
    return x;
}}
""",
}

_HELPERS |= {"turn": TURN, **COLUMNS}

_LISTED = """\
// What ``at`` makes of each lane's number.
#define FOUR(at, l) at(l), at(l + 1), at(l + 2), at(l + 3)
#define LISTED4(at) {FOUR(at, 0)}
#if LANES == 4
#define LISTED8 LISTED4
#else
#define LISTED8(at) {FOUR(at, 0), FOUR(at, 4)}
#endif
#if LANES < 16
#define LISTED16 LISTED8
#else
#define LISTED16(at) {FOUR(at, 0), FOUR(at, 4), FOUR(at, 8), FOUR(at, 12)}
#endif
"""

_ACROSS = """\
static inline float across_{op}{n}(vec{n} x)
{{
    union {{ vec{n} all; float lane[LANES{n}]; }} part = {{x}};
{steps}
    return part.lane[0];
}}
"""

_ACROSS_STEP = """\
#pragma omp simd
    for (int l = 0; l < LANES{n} / {half}; l++)
        part.lane[l] = {combined};"""

_COMBINED = {
    "add": "{x} + {y}",
    "mul": "{x} * {y}",
    "max": "larger({y}, {x})",
    "min": "smaller({y}, {x})",
}

_REDUCTIONS = {
    "reduction_larger": """\
#pragma omp declare reduction(larger : float : omp_out = larger(omp_in, omp_out)) initializer(omp_priv = -INFINITY)
""",
    "reduction_smaller": """\
#pragma omp declare reduction(smaller : float : omp_out = smaller(omp_in, omp_out)) initializer(omp_priv = INFINITY)
""",
}


def preamble(used: Used, body: str) -> str:
    """Everything that ``body`` relies on, in an order in which C accepts it."""
    across = sorted((name.removeprefix("across_"), n) for name, n in used.helpers if name.startswith("across_"))
    extrema = {"max": "larger", "min": "smaller"}
    functions = set(used.functions) | {name for name, _, _ in used.lifted}
    functions |= {extrema[op] for op, _ in across if op in extrema}
    vectors = [_VECTOR.format(n=n) for n in sorted(used.widths)]
    masks = [_HELPERS[name].format(n=n) for name, n in sorted(used.helpers) if name in _HELPERS]
    lifted = [_lifted(*function) for function in sorted(used.lifted)]
    sums = [_across(op, n) for op, n in across]
    mirrored = [MIRROR] if "mirror(" in body else []
    parts = [
        *([_SHARED_LOADS] if vectors else []),
        *_needed("".join([body, *masks, *mirrored])),
        *mirrored,
        *([_LANES] if vectors else []),
        *([_UNTIL_ALIGNED] if "until_aligned(" in body else []),
        *([_FENCE] if "fence();" in body else []),
        *vectors,
        *(_SHUFFLED.format(n=n) for n in (4, 8) if f"SHUFFLED{n}(" in "".join(masks)),
        *([_PART] if "PART4(" in "".join(masks) else []),
        *([_LISTED] if "LISTED" in "".join(masks) else []),
        *(FUNCTIONS[name].source + "\n" for name in with_callees(functions)),
        *(text for name, text in _REDUCTIONS.items() if (name, 0) in used.helpers),
        *masks,
        *lifted,
        *abreast(used.several, used.alone),
        *sums,
    ]
    return "\n".join(parts)


def _needed(body: str) -> Sequence[str]:
    """The integer helpers that ``body`` names."""
    asked = fetches(body)
    table = (
        (_NOINLINE, "NOINLINE" in body),
        (_UNROLL, any("UNROLL" in text for text in (body, *asked))),
        (_HIDE, "HIDE(" in body),
        (_HOLD, "HOLD(" in body),
        (_SELDOM, "SELDOM(" in body),
        (_LEAST, "least(" in body),
        (_CEIL_DIV, "ceil_div(" in body),
        (_PADDED, "padded(" in body),
        (_SPACED, "spaced(" in body),
        (_STREAMS, "STREAMS" in body),
    )
    return [*(text for text, needed in table if needed), *sharing(body), *asked]


def _across(op: str, lanes: int) -> str:
    """One float from all lanes, by halves."""
    steps = [
        _ACROSS_STEP.format(
            n=lanes,
            half=half,
            combined=_COMBINED[op].format(x="part.lane[l]", y=f"part.lane[l + LANES{lanes} / {half}]"),
        )
        for half in (2, 4, 8, 16)
    ]
    return _ACROSS.format(op=op, n=lanes, steps="\n".join(steps))


def _lifted(function: str, arity: int, lanes: int) -> str:
    """``function`` applied lane by lane: the pragma makes a vector of the loop before it can be unrolled to scalars."""
    names = "xyzwuv"[:arity]
    assert len(names) == arity, f"{function} takes {arity} arguments"
    parameters = ", ".join(f"vec{lanes} {name}" for name in names)
    arguments = ", ".join(f"{name}[l]" for name in names)
    lines = [
        f"static inline vec{lanes} {function}{lanes}({parameters})",
        "{",
        f"    vec{lanes} r;",
        "#pragma omp simd",
        f"    for (int l = 0; l < LANES{lanes}; l++)",
        f"        r[l] = {function}({arguments});",
        "    return r;",
        "}",
    ]
    return "\n".join(lines) + "\n"
