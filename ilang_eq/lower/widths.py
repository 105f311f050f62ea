"""The vectors that generated code is made of, as far as tiles depend on them."""

from __future__ import annotations

WIDTHS = (16, 8, 4)
"""Each vector type has that many lanes, or as many as the machine has if that is less."""


def dividing(limit: int) -> int:
    """The lanes of the widest vector that divides ``limit`` steps; 1 if there is none."""
    return next((width for width in WIDTHS if limit % width == 0), 1)


def masked(limit: int) -> int:
    """The lanes of the vectors that take ``limit`` steps best if the last may be under a mask; 1 for a few steps.

    As few vectors as possible, as short as possible: 14 are most of 16 lanes, and 6 most of 8.
    """
    if limit < min(WIDTHS) or dividing(limit) > 1:
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
