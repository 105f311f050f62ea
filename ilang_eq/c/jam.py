"""Sums of rows: some rows at a time, so that what they are added to is read and written once for all of them.

before →  for k: for j: out[j] += x[k][j]
after  →  for k by 4: for j: out[j] = out[j] + x[k][j] + … + x[k + 3][j];  then the rows that are left

Each element takes its terms one after the other as before: results are the same to the last bit. Compilers call it
unroll and jam; of them GCC does it for two rows, where it sees that it may. Short rows that come from memory stay
alone: prefetchers follow one better than several. Long ones are gone through by whole lines,
if all begin as far into one: first come the floats before a line, in the same loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang_eq.c.bounds import bound_text
from ilang_eq.c.layout import Layout
from ilang_eq.c.nodes import Jam, Node, Simd, Sum
from ilang_eq.c.quotients import inverted
from ilang_eq.lower.addresses import size_text
from ilang_eq.lower.ir import Accumulate, Comment, For, Load, Statement
from ilang_eq.lower.passes import FAR, calls_functions
from ilang_eq.lower.walk import declared_in, loads, mentions, replace_in_body, stride, substituted, updates

TOGETHER = 4
"""How many rows are added at a time. Of a sum over the middle axis of 16×512×2048 2, 4 and 8 take 0.81, 0.70 and 0.91
of the time of one on Zen 4: beyond 4 too many lie at the same place of a page."""
LONG_ROW = 512
"""The shortest rows, in floats, that are added together where they come from memory. Sums over the middle axis of
64×512×512 take 0.71 of the time, those of 128×512×256 0.95, and those of 256×512×128 1.28."""
LINED_ROW = 1024
"""The shortest rows, in floats, that are gone through by whole lines, however far into one they begin. A vector times
2048×2048 takes 0.84 of the time on Zen 4, out of the third level, if it begins 16 bytes into a line, as NumPy's do."""
FEWEST = 4 * TOGETHER
"""The least limit of a loop that goes so: tiles of fewer rows are for registers."""


def jam(loop: For, body: Sequence[Node]) -> Jam | None:
    """``loop`` with ``body`` as sums of rows; None if it is anything else, or what it computes takes longer."""
    sums = tuple(found for node in body if (found := _sum(loop, node)) is not None)
    many = loop.step == 1 and (loop.limit is None or loop.limit >= FEWEST)
    targets = {found.target.buffer for found in sums}
    read = {place.buffer for found in sums for place in _read(found.row.source)}
    apart = len(targets) == len(sums) and not read & targets
    return Jam(loop, sums) if many and sums and len(sums) == len(body) and apart else None


def added(loop: For, row: For) -> list[tuple[Statement, ...]]:
    """What each of ``TOGETHER`` iterations of ``loop`` around ``row`` adds to an element of it."""
    body = [s for s in row.body if not isinstance(s, Comment)]
    positions = [(loop.variable, *([str(n)] if n else [])) for n in range(TOGETHER)]
    return [replace_in_body(body, loop.variable, position) for position in positions]


def worth_text(node: Jam, layout: Layout) -> str | None:
    """Whether rows are added together, as extents decide: they are long, or near; None if they are in any case."""
    rows = dict.fromkeys(bound_text(found.row.source, found.row.full) for found in node.sums)
    moving = [p.buffer for found in node.sums for p in _read(found.row.source) if _moves(p, node.source, found)]
    sizes = dict.fromkeys(" * ".join(map(size_text, layout.buffers[name].dims)) for name in moving)
    unless_long = [f"{row} >= {LONG_ROW}" for row in rows if not row.isdigit() or int(row) < LONG_ROW]
    unless_near = [f"{floats} < {FAR}" for floats in sizes if not floats.isdigit() or int(floats) >= FAR]
    if not unless_long or not unless_near:
        return None
    return f"{_all(unless_long)} || {_all(unless_near)}"


def until_line_text(node: Jam, found: Sum, end: str, layout: Layout) -> str | None:
    """How many floats of the rows that ``found`` adds up lie before a line, if that is the same in all of them.

    None if it adds up no rows of an array, but multiples of one. Each goes to ``end``.
    """
    row = found.row.source
    place = next((p for p in _read(row) if _moves(p, node.source, found)), None)
    if place is None:
        return None
    width = size_text(layout.buffers[place.buffer].dims[-1])
    first = layout.element(substituted(place, row.variable, ()))
    return f"{width} % 16 == 0 && {end} >= {LINED_ROW} ? until_aligned(&{first}) : 0"


def _all(tests: Sequence[str]) -> str:
    return tests[0] if len(tests) == 1 else f"({' && '.join(tests)})"


def _moves(place: Load, loop: For, found: Sum) -> bool:
    """Whether ``place`` moves from row to row and along rows."""
    return mentions(place, loop.variable) and mentions(place, found.row.source.variable)


def _sum(loop: For, node: Node) -> Sum | None:
    """``node`` as a row of sums, one accumulated float after the other, to which ``loop`` adds other neighbours."""
    match node:
        case Simd(source=row, reductions=(), asked=()) if loop.variable not in row.outer:
            private = set(declared_in(row.body))
            results = [update for update in updates(row.body) if update.target.buffer not in private]
        case _:
            return None
    if calls_functions(row.body) or inverted(row) is not None:
        return None
    match results:
        case [Accumulate(target)] if stride(target, row.variable) == "unit" and not mentions(target, loop.variable):
            return Sum(node, target) if _others_each_time(loop, row) else None
        case _:
            return None


def _others_each_time(loop: For, row: For) -> bool:
    read = _read(row)
    return (
        any(mentions(place, loop.variable) for place in read)
        and all(stride(place, row.variable) in ("none", "unit") for place in read)
        and all(stride(place, loop.variable) != "uneven" for place in read)
    )


def _read(row: For) -> list[Load]:
    """What ``row`` reads, but for locals that it declares."""
    private = set(declared_in(row.body))
    return [place for u in updates(row.body) for place in loads(u.value) if place.buffer not in private]
