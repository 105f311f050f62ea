"""The C source of the microbenchmarks.

Every probe is ``double name(int64_t times, float *memory, int64_t bytes, int threads)``, does its unit of work so many
times, and returns the seconds that took, without waiting for threads to start. Operands of the rates stay in registers,
in ``UNITS`` independent chains, which is more than the latency of any unit that is pipelined; ``exp``, ``ln`` and
``pow`` are the functions that kernels call, in a loop over ``STRIP`` floats.
"""

from __future__ import annotations

from ilang_eq.c.math import FUNCTIONS
from ilang_eq.c.preamble import preamble
from ilang_eq.c.vectors import Used

UNITS = 12
STRIP = 1024
ADDS = 64
"""Dependent additions, or eights of issued instructions, in a unit of work."""
ROWS = 4
"""Rows that are read side by side."""

_HEAD = """\
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

// The compiler may assume nothing about x from here on.
#if defined(__x86_64__) || defined(__i386__)
#define OPAQUE(x) __asm__ volatile("" : "+x"(x))
#elif defined(__aarch64__)
#define OPAQUE(x) __asm__ volatile("" : "+w"(x))
#else
#define OPAQUE(x) __asm__ volatile("" : "+m"(x))
#endif
#define FORGET() __asm__ volatile("" ::: "memory")

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int lanes(void) { return LANES; }
int vector_registers(void)
{
#if defined(__AVX512F__) || defined(__aarch64__)
    return 32;
#else
    return 16;
#endif
}
"""

_RATE = """\
double {name}(int64_t times, float *memory, int64_t bytes, int threads)
{{
    const {type} *given = (const {type} *)memory;
    {type} b = given[0], c = given[1], {declared};
    const double begun = now();
    for (int64_t t = 0; t < times; t++) {{
        OPAQUE(b);
{steps}
    }}
    *({type} *)memory = {total};
    return now() - begun;
}}
"""

_WITH_ADD = "({{ OPAQUE(b); b - c; }}) * b + {a}"
"""A multiply-add and a difference, which is another one to the compiler in each chain."""
_STEPS = {
    "add": "{a} + b",
    "mul": "{a} * b",
    "fma": "{a} * b + c",
    "div": "{a} / b",
}
_LANEWISE = {"max": "larger", "compare": "above"}
"""Functions of two floats, which ``each_…`` applies to vectors lane by lane, as kernels do."""

_EACH = """\
static inline vec each_{name}(vec x, vec y)
{{
    vec r;
    _Pragma("omp simd")
    for (int l = 0; l < LANES; l++)
        r[l] = {name}(x[l], y[l]);
    return r;
}}
"""
_ABOVE = """\
static inline float above(float x, float y) { return x > y ? 1.0f : 0.0f; }
"""

_STRIP_RATE = """\
double vector_{name}(int64_t times, float *memory, int64_t bytes, int threads)
{{
    float *x = memory, *y = memory + STRIP;
    const double begun = now();
    for (int64_t t = 0; t < times; t++) {{
{vectors}
        FORGET();
    }}
    return now() - begun;
}}
double scalar_{name}(int64_t times, float *memory, int64_t bytes, int threads)
{{
    float *restrict y = memory + STRIP;
    const double begun = now();
    for (int64_t t = 0; t < times; t++)
        for (int l = 0; l < STRIP; l++) {{
            float x = memory[l];
            OPAQUE(x);
            y[l] = {scalar};
        }}
    return now() - begun;
}}
"""
_ONE_BY_ONE = """\
        _Pragma("omp simd")
        for (int l = 0; l < STRIP; l++)
            y[l] = {call};"""
_SIDE_BY_SIDE = """\
        enum {{ count = ABREAST(64 / LANES16) }};
        for (int l = 0; l < STRIP; l += count * LANES16) {{
            vec16 part[count];
            EACH part[v] = V16(x[l + v * LANES16]);
            {function}16_each(part, count);
            EACH V16(y[l + v * LANES16]) = part[v];
        }}"""
"""How kernels apply functions that are faster on several vectors."""
_CALLS = {"exp": "exp_of({x})", "ln": "ln_of({x})", "pow": "pow_of({x}, 1.7f)"}

_CORE = """\
double clock_ticks(int64_t times, float *memory, int64_t bytes, int threads)
{
    uint64_t x = (uint64_t)bytes, step = (uint64_t)times;
    const double begun = now();
    for (int64_t t = 0; t < times; t++) {
        // a loop of so few instructions takes one cycle or two, as it happens; constants are added when registers are
        // renamed on some cores, several in a cycle
        UNROLL
        for (int j = 0; j < ADDS; j++) { x += step; __asm__ volatile("" : "+r"(x), "+r"(step)); }
    }
    memory[0] += (float)(x == 1);
    return now() - begun;
}
// Copies of a register, which are renamed, not executed: some cores make empty instructions one with their neighbours.
// So many that the loop around them takes no time: Golden Cove issues six a cycle, but 2.4 with a branch in every ten.
#if defined(__x86_64__) || defined(__i386__)
#define ISSUED "mov %1, %0\\n"
#else
#define ISSUED "nop\\n"
#endif
#define EIGHT(code) code code code code code code code code
double issued_instructions(int64_t times, float *memory, int64_t bytes, int threads)
{
    const uintptr_t x = (uintptr_t)memory;
    uintptr_t y;
    const double begun = now();
    for (int64_t t = 0; t < times; t++)
        for (int j = 0; j < ADDS / 8; j++) __asm__ volatile(EIGHT(EIGHT(ISSUED)) : "=r"(y) : "r"(x));
    return now() - begun;
}
double chain(int64_t times, float *memory, int64_t bytes, int threads)
{
    const vec *given = (const vec *)memory, b = given[0], c = given[1];
    vec a = b;
    const double begun = now();
    for (int64_t t = 0; t < times; t++)
        for (int j = 0; j < ADDS; j++) a = a * b + c;
    *(vec *)memory = a;
    return now() - begun;
}
static __attribute__((noinline)) int started(float **inputs, float **outputs, int64_t *extents, void *workspace)
{
    __asm__ volatile("" :: "r"(inputs), "r"(outputs), "r"(extents), "r"(workspace) : "memory");
    return 0;
}
double kernel(int64_t times, float *memory, int64_t bytes, int threads)
{
    int (*volatile call)(float **, float **, int64_t *, void *) = started;
    const double begun = now();
    for (int64_t t = 0; t < times; t++)
        call(&memory, &memory, &bytes, memory);
    return now() - begun;
}
"""

_MEMORY = """\
// As long as the quickest of all regions, each time: threads that lost their processor would count as overhead.
double fork_join(int64_t times, float *memory, int64_t bytes, int threads)
{
    double least = 1.0;
    for (int64_t t = 0; t < times; t++) {
        const double begun = now();
        _Pragma("omp parallel for schedule(static) num_threads(threads)")
        for (int i = 0; i < threads; i++)
            FORGET();
        const double spent = now() - begun;
        least = spent < least ? spent : least;
    }
    return least * (double)times;
}
// Each thread reads a part of its own, again and again, once all have come.
double read_all(int64_t times, float *memory, int64_t bytes, int threads)
{
    const int64_t part = bytes / 4 / threads / (8 * LANES) * 8;
    double begun = 0, ended = 0;
    _Pragma("omp parallel num_threads(threads)")
    {
        _Pragma("omp for schedule(static)")
        for (int i = 0; i < threads; i++)
            FORGET();
        _Pragma("omp master")
        begun = now();
        _Pragma("omp for schedule(static)")
        for (int i = 0; i < threads; i++)
            read_part((const vec *)memory + i * part, part, times);
        _Pragma("omp master")
        ended = now();
    }
    return ended - begun;
}
// Each thread copies the first half of a part of its own to the second, again and again, once all have come.
double copy_all(int64_t times, float *memory, int64_t bytes, int threads)
{
    const int64_t part = bytes / 4 / threads / (8 * LANES) * 8;
    double begun = 0, ended = 0;
    _Pragma("omp parallel num_threads(threads)")
    {
        _Pragma("omp for schedule(static)")
        for (int i = 0; i < threads; i++)
            FORGET();
        _Pragma("omp master")
        begun = now();
        _Pragma("omp for schedule(static)")
        for (int i = 0; i < threads; i++)
            copy_part((const vec *)memory + i * part, (vec *)memory + i * part + part / 2, part / 2, times);
        _Pragma("omp master")
        ended = now();
    }
    return ended - begun;
}
// Reads rows side by side, ROWS of them, some lines of each in turn.
double read_abreast(int64_t times, float *memory, int64_t bytes, int threads)
{
    const int64_t row = bytes / 4 / ROWS / (8 * LANES) * 8;
    const double begun = now();
    read_rows((const vec *)memory, row, times);
    return now() - begun;
}
// Follows a cycle of offsets in floats, one a line, from where it was left.
double chase(int64_t times, float *memory, int64_t bytes, int threads)
{
    int64_t at;
    memcpy(&at, memory + 2, sizeof at);
    const double begun = now();
    for (int64_t t = 0; t < times; t++)
        memcpy(&at, memory + at, sizeof at);
    memcpy(memory + 2, &at, sizeof at);
    return now() - begun;
}
"""

_COPY = """\
static __attribute__((noinline)) void copy_part(const vec *from, vec *to, int64_t vectors, int64_t times)
{
    for (int64_t t = 0; t < times; t++) {
        for (int64_t n = 0; n < vectors; n++)
            to[n] = from[n] + from[n];
        FORGET();
    }
}
"""

_READ = """\
static __attribute__((noinline)) void read_part(const vec *p, int64_t vectors, int64_t times)
{{
    vec {sums};
    for (int64_t t = 0; t < times; t++) {{
        for (int64_t n = 0; n < vectors; n += 8) {{
{reads}
        }}
        FORGET();
    }}
    x0 += {total};
    OPAQUE(x0);
}}
"""

_READ_ROWS = """\
static __attribute__((noinline)) void read_rows(const vec *p, int64_t row, int64_t times)
{{
    vec {sums};
    for (int64_t t = 0; t < times; t++) {{
        for (int64_t n = 0; n < row; n += 8)
            for (int64_t r = 0; r < ROWS * row; r += row) {{
{reads}
            }}
        FORGET();
    }}
    x0 += {total};
    OPAQUE(x0);
}}
"""

RATES = ("add", "mul", "fma", "div", "exp", "ln", "pow", "max", "compare")


def probe_source() -> str:
    """All probes, as one C file."""
    names = {"exp_of", "ln_of", "pow_of", "larger"}
    several = {name for name in names if FUNCTIONS[name].several is not None}
    used = Used(names, several={(name, 16) for name in several}, widths={16})
    functions = preamble(used, "UNROLL")
    constants = f"#define UNITS {UNITS}\n#define STRIP {STRIP}\n#define ADDS {ADDS}\n#define ROWS {ROWS}\n"
    return "\n".join([constants, _HEAD, functions, "", _ABOVE, *_rates(), _CORE, _reading(), _COPY, _MEMORY])


def _rates() -> list[str]:
    """The probes of every rate, of vectors and of scalars."""
    found = [_EACH.format(name=function) for function in _LANEWISE.values()]
    for kind, of, each in (("vector", "vec", "each_"), ("scalar", "float", "")):
        lanewise = {name: f"{each}{function}({{a}}, b)" for name, function in _LANEWISE.items()}
        for name, step in {**_STEPS, **lanewise}.items():
            found.append(_rate(f"{kind}_{name}", of, step, kind == "scalar"))
    found.append(_rate("vector_fma_with_add", "vec", _WITH_ADD, False))
    for name, call in _CALLS.items():
        function = call.split("(")[0]
        vectors = _ONE_BY_ONE if FUNCTIONS[function].several is None else _SIDE_BY_SIDE
        text = vectors.format(call=call.format(x="x[l]"), function=function)
        found.append(_STRIP_RATE.format(name=name, vectors=text, scalar=call.format(x="x")))
    return found


def _rate(name: str, of: str, step: str, apart: bool) -> str:
    """``UNITS`` chains of ``step``; ``apart`` if a compiler is not to put several of them in one vector."""
    chains = [f"a{n}" for n in range(UNITS)]
    barrier = " OPAQUE({a});" if apart else ""
    return _RATE.format(
        name=name,
        type=of,
        declared=", ".join(f"{a} = given[{n + 2}]" for n, a in enumerate(chains)),
        steps="\n".join(f"        {{a}} = {step};{barrier}".format(a=a) for a in chains),
        total=" + ".join([*chains, "c"]),
    )


def _reading() -> str:
    """Loops over memory with as many sums as hide the latency of an addition."""
    sums = [f"x{n}" for n in range(8)]
    zeros, total = ", ".join(f"{x} = {{0}}" for x in sums), " + ".join(sums[1:])
    one, several = (
        "\n".join(f"{indent}{x} += p[{at} + {n}];" for n, x in enumerate(sums))
        for indent, at in ((" " * 12, "n"), (" " * 16, "r + n"))
    )
    rows = _READ_ROWS.format(sums=zeros, reads=several, total=total)
    return _READ.format(sums=zeros, reads=one, total=total) + rows
