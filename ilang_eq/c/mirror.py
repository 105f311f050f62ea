"""C text that copies the mirror images of what was computed of symmetric results (``lower/halves.py``)."""

from __future__ import annotations

from ilang_eq.lower.addresses import extent_name, size_text
from ilang_eq.lower.halves import FEW, Half

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

// Copies the blocks below, or ``above``, the diagonal of square matrices to the other side.
static NOINLINE void mirror(float *matrices, int64_t count, int64_t n, int above, int threads)
{
    const int64_t blocks = ceil_div(n, 16);
    const int team = team_for(20.0 * count * n * n, threads);
#pragma omp parallel for schedule(dynamic) num_threads(team) if (team > 1)
    for (int64_t task = 0; task < count * blocks; task++) {
        float *const x = matrices + task / blocks * n * n;
        const int64_t i = task % blocks * 16, height = least(16, n - i), end = above ? i : n;
        for (int64_t j = above ? 0 : i + 16; j < end; j += 16) {
            const float *const from = x + j * n + i;
            float *const to = x + i * n + j;
            if (height == 16 && n - j >= 16)
                transpose(from, to, n, 16, 16);
            else
                transpose(from, to, n, least(16, n - j), height);
        }
    }
}
"""


def mirrored_lines(half: Half, threads: str) -> list[str]:
    """The call that completes what a kernel has computed one half of."""
    *outer, n = half.buffer.dims[:-1]
    count = " * ".join(map(size_text, outer)) or "1"
    terms = " * ".join(map(extent_name, half.summed))
    arguments = (half.buffer.name, count, size_text(n), str(int(half.above)), threads)
    return [f"if ({terms} >= {FEW})", f"    mirror({', '.join(arguments)});"]
