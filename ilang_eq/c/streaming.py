"""Stores past the caches, for outputs larger than they are: a store into a cache would first read what it overwrites.

Whether an output is that large is known when the kernel is called. The loop that writes it then goes in steps: up to
the first line, by bursts of lines, then line by line, and the rest, which is the whole loop where nothing is streamed.
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang_eq.c.ahead import LINE
from ilang_eq.c.layout import Layout
from ilang_eq.c.nodes import VectorNest
from ilang_eq.c.stages import staged_nest_lines
from ilang_eq.c.vectors import Used, indented, nest_lines
from ilang_eq.lower.addresses import size_text
from ilang_eq.lower.ir import Assign, For, Load
from ilang_eq.lower.streamed import FEWEST
from ilang_eq.lower.walk import replace_in_body, substituted
from ilang_eq.lower.widths import WIDTHS
from ilang_eq.lower.within import moved

BURST = 64
"""Floats that are computed before any is written: whole lines, and vectors enough for functions of many steps."""


def burst_lines(
    loop: For,
    target: Load,
    span: tuple[str, str],
    body: Sequence[str],
    layout: Layout,
    used: Used,
    *,
    fewest: int | None,
    alone: bool,
) -> list[str]:
    """``loop`` over ``span``; ``body`` is its scalar text. Empty if neither streaming nor stages gain anything.

    By bursts that are streamed if ``target`` has the ``fewest`` floats for that; by others in stages, if it has any,
    and if it is ``alone``: in other loops it is short.
    """
    begin, end = span
    first = f"{loop.variable}_first"
    lines: list[str] = []
    if fewest is not None:
        floats = " * ".join(size_text(size) for size in layout.buffers[target.buffer].dims)
        length = end if begin == "0" else f"{end} - {begin}"
        stream = _until_aligned(loop, target, begin, body, layout)
        for floats_each in (BURST, LINE):
            nest = burst(loop, first, frozenset({target.buffer}), floats_each)
            vectors = staged_nest_lines(nest, layout, used, alike=True) or nest_lines(nest, layout, used, alike=True)
            stream += [_strips(first, end, floats_each), *indented(vectors), "}"]
        lines += [f"if ({floats} >= {fewest} && {length} >= {FEWEST}) {{", *indented(stream), "}"]
    if alone:
        stages = staged_nest_lines(burst(loop, first, frozenset()), layout, used, alike=True)
        lines += [_strips(first, end, BURST), *indented(stages), "}"] if stages else []
    if not lines:
        return []
    v = loop.variable
    rest = ["#pragma omp simd", f"for (int64_t {v} = {first}; {v} < {end}; {v}++) {{", *indented(body), "}"]
    lines = [f"int64_t {first} = {begin};", *lines, *rest]
    return ["{", *indented(lines), "}"]


def _strips(first: str, end: str, floats: int) -> str:
    return f"for (; {first} + {floats} <= {end}; {first} += {floats}) {{"


def _until_aligned(loop: For, target: Load, begin: str, body: Sequence[str], layout: Layout) -> list[str]:
    """``loop`` from ``begin`` to the first line of ``target``."""
    v, first = loop.variable, f"{loop.variable}_first"
    start = moved(Assign(target, target), lambda place: substituted(place, v, (first,)))
    assert isinstance(start, Assign), "as it was"
    head = f"for (int64_t {v} = {begin}; {v} < {first}; {v}++) {{"
    aligned = f"{first} += until_aligned(&{layout.element(start.target)});"
    return [aligned, "#pragma omp simd", head, *indented(body), "}"]


def burst(loop: For, first: str, streamed: frozenset[str], floats: int = BURST) -> VectorNest:
    """``floats`` iterations of ``loop``, from ``first`` on."""
    lane = f"{loop.variable}_lane"
    body = replace_in_body(loop.body, loop.variable, (first, lane))
    inside = For(lane, loop.extent, 1, floats, (*loop.outer, first), body)
    return VectorNest((inside,), WIDTHS[0], tuple(s for s in body if not isinstance(s, For)), streamed=streamed)


def fenced(lines: list[str]) -> list[str]:
    """The inside of a function, with a fence at its end if something in it is streamed."""
    return [*lines, "fence();"] if any("stream16(" in line for line in lines) else lines
