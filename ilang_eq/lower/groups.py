"""How many vectors a function of many steps is applied to side by side: C's nests and the cost model go by the same.

before →  for j' < 6: for i' < 32: e[j'][i'] = exp(x[j'][i'])      in registers of 8 floats
after  →  six groups of 4 vectors, one in each row

A core looks too few instructions ahead to find other vectors by itself, and has registers for a few.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

MOST_IN_LOOPS = 8
"""Vectors of the widest type, of several loops, that are divided into groups together."""


class Grouping(NamedTuple):
    """What a register file has room for.

    Args:
        all_of: as many vectors as that, or fewer, are one group.
        sizes: of more, the size of the groups is the first of these that divides their number; else 1.
    """

    all_of: int
    sizes: tuple[int, ...]

    def abreast(self, vectors: int) -> int:
        """How many of so many ``vectors`` go side by side."""
        if vectors <= self.all_of:
            return vectors
        return next((size for size in self.sizes if vectors % size == 0), 1)


AVX512 = Grouping(7, (6, 5, 4, 2, 3))
AARCH64 = Grouping(8, (8, 4, 2, 3))
OTHERS = Grouping(1, (4, 2, 3))


def grouped_from(vectors: Sequence[int]) -> int | None:
    """From which of its loops on a nest is divided into groups; None if there is but one vector in them.

    Args:
        vectors: of each loop from the outside in, how often it runs; of the last, how many of the widest type it has.
    """
    first = len(vectors) - 1
    while first > 0 and prod(vectors[first - 1 :]) <= MOST_IN_LOOPS:
        first -= 1
    return first if prod(vectors[first:]) > 1 else None
