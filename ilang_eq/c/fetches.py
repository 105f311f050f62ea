"""The C text of what asks for lines before they are needed, and of where that is worth it.

Who asks, and for what: ``ahead.py``, ``along.py`` and ``requests.py``.
"""

from __future__ import annotations

_ZEN5 = """\
// Zen 5, which GCC before 14 takes for another.
#if defined(__znver5__) || defined(__AVX512VP2INTERSECT__) && (defined(__znver3__) || defined(__znver4__))
#define ZEN5 1
#else
#define ZEN5 0
#endif
"""

_SAPPHIRE_RAPIDS = """\
// Intel's servers from Sapphire Rapids on. Virtual machines may hide their registers for tiles.
#if defined(__sapphirerapids__) || defined(__AMX_TILE__) || defined(__AVX512FP16__)
#define SAPPHIRE_RAPIDS 1
#else
#define SAPPHIRE_RAPIDS 0
#endif
"""

_ASKS_IN_ORDER = """\
// Whether to ask for rows that are read in order while little is computed, beside what prefetchers do, and to have what
// is copied come all the way.
#if ZEN5 || SAPPHIRE_RAPIDS
#define ASKS_IN_ORDER 1
#else
#define ASKS_IN_ORDER 0
#endif
"""

_FETCHES = {
    "fetch_ahead": """\
// Asks for a line that is needed later; it may lie beyond the end.
static inline void fetch_ahead(const float *p, int64_t floats)
{
    __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)floats * sizeof(float)), 0, 2);
}
""",
    "fetch_soon": """\
// Asks the nearest cache for lines that are needed soon; they may lie beyond the end.
static inline void fetch_soon(const float *p, int64_t first, int64_t floats)
{
    UNROLL
    for (int64_t f = 0; f < floats; f += 16)
        __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)(first + f) * sizeof(float)), 0, 3);
}
""",
    "fetch_part": """\
// Asks the nearest cache for part of a panel's row that is needed soon; it may lie beyond the end. Not on Sapphire
// Rapids and later, whose prefetchers are there in time.
static inline void fetch_part(const float *p, int64_t first, int64_t floats)
{
    UNROLL
    for (int64_t f = 0; f < (SAPPHIRE_RAPIDS ? 0 : floats); f += 16)
        __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)(first + f) * sizeof(float)), 0, 3);
}
""",
    "fetch_streamed": """\
// Asks the nearest cache for lines of a row that comes from memory; they may lie beyond the end. Not on Zen 4, which
// GCC before 12.3 takes for Zen 3: it goes through such rows faster when left alone.
static inline void fetch_streamed(const float *p, int64_t first, int64_t floats)
{
#if defined(__znver4__) || defined(__znver3__) && defined(__AVX512F__)
    (void)p, (void)first, (void)floats;
#else
    UNROLL
    for (int64_t f = 0; f < floats; f += 16)
        __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)(first + f) * sizeof(float)), 0, 3);
#endif
}
""",
    "fetch_row": """\
// Asks the second cache for floats that are needed later, or the nearest where vectors in two lines need that; they may
// lie beyond the end.
static inline void fetch_row(const float *p, int64_t first, int64_t floats)
{
    UNROLL
    for (int64_t f = 0; f < floats; f += 16)
        __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)(first + f) * sizeof(float)), 0, ZEN5 ? 3 : 2);
}
""",
    "fetch_copied": """\
// Asks for a row that is copied soon, from wherever it is; it may lie beyond the end.
static inline void fetch_copied(const float *p, int64_t first, int64_t floats)
{
    UNROLL
    for (int64_t f = 0; f < floats; f += 16)
        __builtin_prefetch(
            (const void *)((uintptr_t)p + (uintptr_t)(first + f) * sizeof(float)), 0, ASKS_IN_ORDER ? 3 : 2);
}
""",
    "make_room": """\
// Asks for floats that are overwritten later; they may lie beyond the end.
static inline void make_room(const float *p, int64_t first, int64_t floats)
{
    UNROLL
    for (int64_t f = 0; f < floats; f += 16)
        __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)(first + f) * sizeof(float)), 1, 3);
}
""",
}


def fetches(body: str) -> list[str]:
    """What ``body`` names of these, in an order in which C accepts it."""
    in_order = "ASKS_IN_ORDER" in body or "fetch_copied(" in body
    conditions = (
        (_ZEN5, in_order or "ZEN5" in body or "fetch_row(" in body),
        (_SAPPHIRE_RAPIDS, in_order or "fetch_part(" in body),
        (_ASKS_IN_ORDER, in_order),
    )
    asked = (text for name, text in _FETCHES.items() if f"{name}(" in body)
    return [*(text for text, needed in conditions if needed), *asked]
