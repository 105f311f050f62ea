"""Rows of arguments are asked for some way ahead by the reductions that go along them, where prefetchers need that.

before →  for i: for j: { sum += x[i][j] }
after  →  for i: for j: { ask for x[i][j + 2048];  sum += x[i][j] }

On Zen 5 a vector that lies in two lines, as those of NumPy's arrays do with AVX-512, comes from memory at 0.7 of the
rate of one that is a whole line, unless its lines are in the nearest cache by then. With 2048 floats between asking and
reading, 4096 sums of as many floats take 1.16 ms there instead of 1.51, and 1.20 instead of 1.16 where vectors are
whole lines; products with a vector 1.57 instead of 2.14, and 1.35 instead of 1.33. Beyond the end of a row is the next
one. What is read again is left alone, as it is near by then.

Nor do prefetchers there see short rows coming that go side by side: 64 MiB of rows of 64, 128 and 256 floats, four at a
time, times a vector take 1.6, 2.4 and 1.8 ms asked for instead of 3.8, 3.4 and 1.8; 16 at a time 3.9, 2.1 and 2.1
instead of 4.5, 3.0 and 2.7; and the largest of 16 floats each, 16 rows at a time, 1.7 instead of 4.4. What is left of
such rows after their last whole step is asked for as well: the largest of 24 floats, eight rows at a time, take 1.15 ms
instead of 2.7. Long rows are better left alone: four of 4096 floats at a time take 1.6 ms, and would take 1.9.

On Emerald Rapids the largest of 16 floats each take 0.68 of the time for it, softmax of rows of 100 floats 0.80, their
variance 0.73, a log-sum-exp of 100 rows of 100,000 floats 0.67, RMSNorm of rows 0.84, a product with a vector 1.00 to
1.04; asking 512 floats ahead gains less, 4096 no more (medians of 9 to 15 calls in turn).
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from ilang_eq.c.ahead import reads
from ilang_eq.c.layout import Layout
from ilang_eq.c.nodes import Loop
from ilang_eq.c.vectors import indented, unrolled
from ilang_eq.lower.addresses import flat_index, index_text, size_text
from ilang_eq.lower.ir import For, Index, Load
from ilang_eq.lower.passes import FAR, LONG
from ilang_eq.lower.walk import mentions

DISTANCE = 2048
"""Floats from where a row is asked for to where it is read."""
SHORT = 512
"""The floats of rows that are asked for several at a time, at most: those of 1024 take 0.9 to 1.2 of the time."""


@dataclass(frozen=True, slots=True)
class Along:
    """``width`` floats of each of its ``rows``, from ``place`` on, that a reduction comes to ``DISTANCE`` further.

    Several rows are asked for if they have at ``most`` so many floats.
    """

    place: Load
    width: int
    rows: tuple[For, ...]
    most: int = SHORT


def rows_along(reduction: Loop, layout: Layout, foreseen: Set[str], parts: Set[str] = frozenset()) -> tuple[Along, ...]:
    """The rows of arguments that ``reduction`` goes along, once and in order, but what is ``foreseen`` otherwise.

    Of that, short rows are asked for all the same where passes go through them in ``parts``, among them those of a
    result that is read again: exp(x - m) / s in tiles of 4×32 takes 0.6 of the time with 100 and 128 floats a row. But
    in passes of which some go row by row, it takes 1.2 to 1.5 of the time.
    """
    found: dict[str, Along] = {}
    for place, nest in reads(reduction, layout, "argument") if reduction.part != "half" else ():
        along = _along(place, nest.loops, reduction)
        if along is not None and place.buffer in foreseen:
            along = replace(along, most=LONG - 1) if along.rows and place.buffer in parts else None
        if along is not None and (along.rows or reduction.part != "rest"):
            found.setdefault(place.buffer, along)
    return tuple(found.values())


def _along(place: Load, nest: tuple[For, ...], reduction: Loop) -> Along | None:
    *outer, last = place.indices or (Index(()),)
    step, (*rows, lane) = reduction.source, nest
    if lane.limit != step.step or any(index.divisor != 1 for index in place.indices):
        return None
    if not (_moves(lane, [last]) and _moves(step, [last])) or _moves(lane, outer) or _moves(step, outer):
        return None
    blocks = [_moves(loop, [last]) for loop in reduction.around]
    if not all(mentions(place, loop.variable) for loop in reduction.around) or blocks != sorted(blocks):
        return None
    there = tuple(v for v in last.variables if v != lane.variable)
    return Along(Load(place.buffer, (*outer, Index((*there, str(DISTANCE))))), step.step, tuple(rows))


def _moves(loop: For, indices: Sequence[Index]) -> bool:
    return any(loop.variable in index.variables for index in indices)


def along_lines(reduction: Loop, layout: Layout, foreseen: Set[str], parts: Set[str]) -> tuple[list[str], list[str]]:
    """What stands before ``reduction``, and what each of its steps asks for, as in ``rows_along``."""
    before: list[str] = []
    inside: list[str] = []
    for along in rows_along(reduction, layout, foreseen, parts):
        name, dims = along.place.buffer, layout.buffers[along.place.buffer].dims
        tests = ["ASKS_IN_ORDER", f"{' * '.join(map(size_text, dims))} >= {FAR}"]
        tests += [f"{size_text(dims[-1])} <= {along.most}"] if along.rows else []
        before.append(f"const int {name}_along = {' && '.join(tests)};")
        first = flat_index([index_text(index) for index in along.place.indices], dims)
        ask = [f"fetch_soon({name}, {first}, {along.width});"]
        if along.rows:
            inside += [f"if ({name}_along) {{", *indented(unrolled(along.rows, 1, ask)), "}"]
        else:
            inside += [f"if ({name}_along)", *indented(ask)]
    return before, inside
