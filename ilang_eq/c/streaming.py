"""Stores past the caches, for outputs larger than they are: a store into a cache would first read what it overwrites.

Whether an output is that large is known when the kernel is called. The loop that writes it then goes in steps: up to
the first line, by bursts of lines, then line by line, and the rest, which is the whole loop where nothing is streamed.
Sums go past the caches from their registers, and no room is made for them, where rows of a tile are whole lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ilang_eq.c.layout import Layout
from ilang_eq.c.nodes import Node, Registers, Room, VectorNest
from ilang_eq.c.stages import staged_nest_lines
from ilang_eq.c.vectors import Used, indented, nest_lines
from ilang_eq.lower.addresses import extent_name, size_text
from ilang_eq.lower.ir import Assign, Extent, For, Load
from ilang_eq.lower.streamed import FEWEST, SUMMED_FLOATS
from ilang_eq.lower.walk import replace_in_body, stride, substituted
from ilang_eq.lower.widths import BLOCK, LINE, WIDTHS
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


@dataclass(frozen=True, slots=True)
class PastSums:
    """Register tiles whose sums go past the caches, as ``node``, where ``test`` holds."""

    node: Registers
    test: str


def past_sums(node: Registers, sums: Mapping[str, tuple[Extent, ...]], layout: Layout) -> PastSums | None:
    """``node`` as it runs where that is worth it; None if it stores no whole lines of ``sums``.

    Nothing makes room for such sums then: that would fetch what they overwrite.

    Args:
        sums: outputs that may go past the caches, each with the extents that are short if a sum is done at once.
    """
    found = {target.buffer: (nest, target) for nest, target in _whole_lines(node.body) if target.buffer in sums}
    if not found:
        return None
    body: list[Node] = []
    for inner in node.body:
        match inner:
            case Room(target=target) if target.buffer in found:
                pass
            case VectorNest() if any(inner is nest for nest, _ in found.values()):
                body.append(replace(inner, streamed=frozenset(found)))
            case _:
                body.append(inner)
    tests = dict.fromkeys(t for name, one in found.items() for t in _tests(*one, sums[name], layout))
    return PastSums(replace(node, body=tuple(body)), f"SELDOM({' && '.join(tests)})")


def _whole_lines(nodes: Sequence[Node]) -> Iterator[tuple[VectorNest, Load]]:
    """Those of ``nodes`` that store whole lines of sums, which a register tile holds, and where."""
    for node in nodes:
        match node:
            case VectorNest(loops, lanes, (Assign(target, Load(tile)),), partial) if not partial:
                lane = loops[-1]
                whole = lanes == WIDTHS[0] and (lane.limit or 0) % LINE == 0 and stride(target, lane.variable) == "unit"
                if whole and tile == f"{target.buffer}_tile":
                    yield node, target
            case _:
                pass


def _tests(nest: VectorNest, target: Load, summed: Sequence[Extent], layout: Layout) -> list[str]:
    """Whether ``target`` is large, its lines are whole, and its sums are done at once."""
    dims = [size_text(size) for size in layout.buffers[target.buffer].dims]
    start = target
    for loop in nest.loops:
        start = substituted(start, loop.variable, ())
    return [
        "STREAMS",
        f"{' * '.join(dims)} >= {SUMMED_FLOATS}",
        f"{dims[-1]} % {LINE} == 0",
        *(f"{extent_name(extent)} <= {BLOCK}" for extent in summed),
        f"until_aligned(&{layout.element(start)}) == 0",
    ]


def fenced(lines: list[str]) -> list[str]:
    """The inside of a function, with a fence at its end if something in it is streamed."""
    return [*lines, "fence();"] if any("stream16(" in line for line in lines) else lines
