"""The part of a tile whose accumulators fit the vector registers.

The micro-kernel of Goto and van de Geijn (ACM TOMS 34(3), 2008): r rows of v elements that a reduction updates in every
step, for which it loads v elements of one operand and broadcasts r of the other.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import ceil

SCRATCH = 4
"""Vector registers that are not free to hold accumulators."""

MOST_ROWS = 14
"""Each row broadcasts from a pointer of its own, and integer registers are few."""


@lru_cache(maxsize=4096)
def micro_kernel(rows: int, width: int, lanes: int, registers: int) -> tuple[int, int] | None:
    """The (r, v), divisors of ``rows`` and ``width``, that need the fewest loads for every multiplication.

    None if the whole tile fits, or nothing does.
    """
    room = registers - SCRATCH
    if rows * ceil(width / lanes) <= room:
        return None
    options = [
        (r, v)
        for r, v in product(_divisors(min(rows, MOST_ROWS), rows), _divisors(width, width))
        if v % lanes == 0 and r * (v // lanes) <= room
    ]
    return min(options, key=lambda o: (1 / o[0] + lanes / o[1], -o[1]), default=None)


def _divisors(most: int, of: int) -> list[int]:
    return [d for d in range(1, most + 1) if of % d == 0]
