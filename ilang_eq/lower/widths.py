"""The vectors that generated code is made of, as far as tiles depend on them."""

from __future__ import annotations

WIDTHS = (16, 8, 4)
"""Each vector type has that many lanes, or as many as the machine has if that is less."""
LINE = 16
"""Floats in a cache line."""
MOST_VECTORS = 64
"""The most vectors of a nest of constant loops that is unrolled."""
MOST_SUMS = 28
"""The same where vectors are summed: what 32 registers hold beside what they are multiplied with. Steps of more go to
memory and back: of 48, a step takes 1.8 to 4.6 cycles a vector on Zen 4, unrolled, and 1.0 to 1.2 if rows stay loops,
and several steps are taken together (``STEPS``)."""
STEPS = 4
"""The steps of a reduction that are taken together where its sums lie in the nearest cache. One, two, four and eight
take 2.3 to 4.2, 1.4 to 1.8, 1.06 to 1.3 and 1.08 to 1.6 cycles a vector on Zen 4, in tiles of 72 to 128 vectors."""
MOST_IN_ROW = 8
"""The vectors of such a nest, at most, that are inside of all loops that stay: short loops over few go with those over
lanes. Products of 128×128×64 in tiles of 16 × 8 × 16 take 0.64 of the time so, as 16 rows share eight vectors."""
MOST_CALLS = 32
"""The same where functions of many steps are called, whose code is long: the sum of exp of 4096×1000 takes 0.90, 0.69
and 0.70 of the time on Zen 5 if the rows of tiles of 14×64, 16×64 and 32×32 stay loops, and 0.98 of those of 8×64."""
LARGEST_TILE = 8192
"""The most floats that a reduction holds beside its target, in registers or in the nearest cache."""
BLOCK = 1024
"""The most steps that a register tile sums at once, where a loop may have more: no error grows with all of them."""
FEWEST_STEPS = 8
"""The least constant number of steps for which it does so in the nearest cache. In tiles of 32×48, a product of 480³ in
blocks of 4, 8, 16 and 64 steps takes 1.38, 0.94, 0.78 and 0.55 of the time on Zen 5 that it takes in its target."""


def dividing(limit: int) -> int:
    """The lanes of the widest vector that divides ``limit`` steps; 1 if there is none."""
    return next((width for width in WIDTHS if limit % width == 0), 1)


def masked(limit: int) -> int:
    """The lanes of the vectors that take ``limit`` steps best if the last may be under a mask; 1 for a few steps.

    As few vectors as possible, as short as possible: 12 and 14 are most of 16 lanes, and 6 most of 8. But whole ones of
    8 lanes, which many machines have no longer ones than.
    """
    if limit < min(WIDTHS) or dividing(limit) > min(WIDTHS):
        return dividing(limit)
    return min(WIDTHS, key=lambda width: (-(-limit // width), width))


def narrower(limit: int) -> range:
    """Fewer lanes than ``limit`` that are worth code of their own, the most first."""
    step = max(WIDTHS[0], -(-limit // 4 // WIDTHS[0]) * WIDTHS[0])
    return range(limit - step, 0, -step)


def covering(length: int, limit: int) -> int:
    """The lanes that code for ``length`` of at most ``limit`` steps takes, where vectors are the widest."""
    taken = next(width for width in (*reversed(narrower(limit)), limit) if width >= length)
    return -(-taken // WIDTHS[0]) * WIDTHS[0]
