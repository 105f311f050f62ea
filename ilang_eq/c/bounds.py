"""C text of loops: where they end, how they step, how often they run."""

from __future__ import annotations

from collections.abc import Sequence

from ilang_eq.lower.addresses import extent_name
from ilang_eq.lower.halves import FEW, LARGE
from ilang_eq.lower.ir import Extent, For


def bound_text(loop: For, full: bool) -> str:
    """The exclusive end of ``loop``."""
    if full and loop.limit is not None:
        return str(loop.limit)
    left = left_text(loop.extent, loop.outer)
    return left if loop.limit is None else f"least({loop.limit}, {left})"


def beyond_lines(loop: For) -> list[str]:
    """What leaves out an iteration of ``loop`` beyond the diagonal at which it stops; nothing if it goes to its end."""
    if loop.diagonal is None:
        return []
    stop = loop.diagonal
    end = " + ".join((*stop.others, str(stop.reach)))
    many = many_text(stop.summed, loop.extent)
    return [f"if ({' + '.join(stop.position)} >= padded({end}) && {many})", "    continue;"]


def many_text(summed: Sequence[Extent], rows: Extent) -> str:
    """Whether sums have terms enough for half of a symmetric result to be copied."""
    terms = " * ".join(map(extent_name, summed))
    return f"{terms} >= ({extent_name(rows)} < {LARGE} ? {FEW} : {2 * FEW})"


def step_text(loop: For) -> str:
    """The third clause of a C for."""
    return f"{loop.variable}++" if loop.step == 1 else f"{loop.variable} += {loop.step}"


def trips_text(loop: For) -> str:
    """The number of iterations of ``loop``."""
    bound = bound_text(loop, False)
    return bound if loop.step == 1 else f"ceil_div({bound}, {loop.step})"


def left_text(extent: Extent, outer: Sequence[str]) -> str:
    """What is left of ``extent`` inside loops over ``outer``."""
    return " - ".join((extent_name(extent), *outer))
