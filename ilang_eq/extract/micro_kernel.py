"""The part of a tile whose accumulators fit the vector registers.

The micro-kernel of Goto and van de Geijn (ACM TOMS 34(3), 2008): r rows of v elements that a reduction updates in every
step, for which it loads v elements of one operand and broadcasts r of the other.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import ceil

SCRATCH = 4
"""Vector registers that are not free to hold accumulators, at least."""

BROADCASTS = 2
"""Vector registers for elements that are broadcast: the one at hand, and the next."""

MOST_ROWS = 14
"""Each row broadcasts from a pointer of its own, and integer registers are few."""


@lru_cache(maxsize=4096)
def micro_kernel(rows: int, width: int, lanes: int, registers: int) -> tuple[int, int] | None:
    """The (r, v), divisors of ``rows`` and ``width``, that need the fewest loads for every multiplication.

    Of several the largest, and of these the one with most rows. None if the whole tile fits, or nothing does.
    """
    if rows * ceil(width / lanes) <= registers - beside(ceil(width / lanes)):
        return None
    options = [
        (r, v)
        for r, v in product(_divisors(min(rows, MOST_ROWS), rows), _divisors(width, width))
        if v % lanes == 0 and r * (v // lanes) <= registers - beside(v // lanes)
    ]
    return min(options, key=lambda o: (1 / o[0] + lanes / o[1], -o[0] * o[1], o[1]), default=None)


def beside(vectors: float) -> float:
    """Vector registers that are not free beside a tile whose rows all wait for ``vectors`` of one operand.

    Where these are too few, compilers load them anew for each row, or spill: of 16 registers, 3 × 32 and 4 × 24 take as
    long an element as 6 × 16 or up to 1.3 times as long in GCC 12, and twice in clang (papers_notes/folded_loads.md).
    """
    return max(SCRATCH, vectors + BROADCASTS)


def _divisors(most: int, of: int) -> list[int]:
    return [d for d in range(1, most + 1) if of % d == 0]
