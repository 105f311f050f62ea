"""C text that copies the mirror images of what was computed of symmetric results (``lower/halves.py``)."""

from __future__ import annotations

from ilang_eq.c.bounds import many_text
from ilang_eq.lower.addresses import size_text
from ilang_eq.lower.halves import Half

MIRROR = """\
// Copies a block of a matrix with rows of n floats to its mirror image, where rows become columns.
static inline void transpose(const float *from, float *to, int64_t n, int64_t rows, int64_t columns)
{
    float block[16][16];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            block[r][c] = from[r * n + c];
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = 0; r < rows; r++)
            to[c * n + r] = block[r][c];
}

// Completes square matrices that were computed on and below the diagonal, or on and ``above`` it, in blocks of 16: rows
// of 64 at a time, which lie in as many pages.
static NOINLINE void mirror(float *matrices, int64_t count, int64_t n, int above, int threads)
{
    const int64_t strips = ceil_div(n, 64);
    const int team = team_for(20.0 * count * n * n, threads);
#pragma omp parallel for schedule(dynamic) num_threads(team) if (team > 1)
    for (int64_t task = 0; task < count * strips; task++) {
        float *const x = matrices + task / strips * n * n;
        const int64_t first = task % strips * 64, last = least(first + 64, n);
        for (int64_t beside = above ? 0 : first; beside < (above ? last : n); beside += 64)
            for (int64_t i = first; i < last; i += 16) {
                const int64_t end = least(beside + 64, above ? i : n);
                for (int64_t j = above || beside > i ? beside : i + 16; j < end; j += 16) {
                    const float *const from = x + j * n + i;
                    float *const to = x + i * n + j;
                    if (n - i >= 16 && n - j >= 16)
                        transpose(from, to, n, 16, 16);
                    else
                        transpose(from, to, n, least(16, n - j), least(16, n - i));
                }
            }
    }
}
"""


def mirrored_lines(half: Half, threads: str) -> list[str]:
    """The call that completes what a kernel has computed one half of."""
    *outer, n = half.buffer.dims[:-1]
    count = " * ".join(map(size_text, outer)) or "1"
    arguments = (half.buffer.name, count, size_text(n), str(int(half.above)), threads)
    return [f"if ({many_text(half.summed, half.rows)})", f"    mirror({', '.join(arguments)});"]
