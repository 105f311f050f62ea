"""Panels are asked for before they are needed, a little in each step of the reductions over those at hand.

before →  for j: for i: for k: tile += a[i][k] * b[j][k]                        b in panels of K×64 floats
after  →  for j: for i: for k: { ask for a share of b[j + 64]; tile += a[i][k] * b[j][k]; }

A panel is read once for every tile of rows. All but the first time it comes from a near cache, but the first time from
where it was packed, and the prefetchers of processors see no further than a page. So the reductions that read a panel
share the next one out among them: memory works all the time, and the reductions never wait for it. (BLIS hands its
micro-kernels the address of the next panel for this; van Zee and van de Geijn, ACM TOMS 41(3), 2015.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ilang_eq.c.bounds import trips_text
from ilang_eq.c.layout import Layout
from ilang_eq.c.nodes import Loop, VectorNest
from ilang_eq.lower.addresses import flat_index, index_text, size_text
from ilang_eq.lower.ir import For, Index, Load
from ilang_eq.lower.walk import loads, mentions, updates

LINE = 16
"""Floats in a cache line: what one request brings."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """A panel that reductions read, and the next one of which each asks for a share.

    Args:
        place: where the next panel begins.
        width: the floats of it that a step of the reduction reads.
        inside: the loops between the one that goes from panel to panel and the reduction.
        again: those of them that read the same again.
    """

    place: Load
    width: int
    inside: tuple[For, ...]
    again: tuple[For, ...]


def panels_ahead(reduction: Loop, layout: Layout) -> tuple[Ahead, ...]:
    """What is worth asking for in each step of ``reduction``."""
    nests = [node for node in reduction.body if isinstance(node, VectorNest)]
    found: dict[str, Ahead] = {}
    for nest in nests:
        written = {update.target.buffer for update in updates(nest.body)}
        for place in (load for update in updates(nest.body) for load in loads(update.value)):
            if place.buffer not in written and layout.storage.get(place.buffer) in ("argument", "shared"):
                width = _width(place, reduction.source, nest.loops, layout)
                ahead = _ahead(place, width, reduction) if width else None
                if ahead is not None:
                    found.setdefault(place.buffer, ahead)
    return tuple(found.values())


def _width(place: Load, reduction: For, nest: Sequence[For], layout: Layout) -> int:
    """The floats that a step of ``reduction`` reads, if the next step goes on where it ends; else 0."""
    if len(place.indices) < 2:
        return 0
    size = layout.buffers[place.buffer].dims[-1]
    *_, step, last = place.indices
    lengths = [loop.limit for loop in nest if loop.variable in last.variables and len(last.variables) == 1]
    follows = reduction.variable in step.variables and step.divisor == 1 and reduction.step == 1
    elsewhere = sum(reduction.variable in index.variables for index in place.indices) > 1
    return size if isinstance(size, int) and lengths == [size] and follows and not elsewhere else 0


def _ahead(place: Load, width: int, reduction: Loop) -> Ahead | None:
    moving = [n for n, loop in enumerate(reduction.around) if mentions(place, loop.variable)]
    reread = [n for n in moving if len(moving) - moving.index(n) < len(reduction.around) - n]
    if not moving:
        return None
    turn = max(reread, default=moving[-1])
    inside = reduction.around[turn + 1 :]
    again = tuple(loop for loop in inside if not mentions(place, loop.variable))
    outside = {loop.variable for loop in reduction.around[:turn]}
    return Ahead(_moved_on(place, reduction.around[turn], outside), width, inside, again)


def _moved_on(place: Load, loop: For, outside: set[str]) -> Load:
    """``place`` one step of ``loop`` further, all loops inside at their start."""

    def index(old: Index) -> Index:
        kept = tuple(v for v in old.variables if v in outside)
        moved = (*kept, loop.variable, str(loop.step)) if loop.variable in old.variables else kept
        return Index(moved, old.divisor if moved else 1)

    return Load(place.buffer, tuple(map(index, place.indices)))


def _share(ahead: Ahead) -> str:
    """The floats of a panel that a step asks for: one line at most."""
    most = min(LINE, ahead.width)
    readers = " * ".join(trips_text(loop) for loop in ahead.again)
    return f"least({most}, ceil_div({ahead.width}, {readers}))" if readers else str(most)


def _start(ahead: Ahead, layout: Layout, steps: str) -> str:
    """The float at which the share of the reduction at hand begins."""
    dims = layout.buffers[ahead.place.buffer].dims
    indices = [index_text(index) for index in ahead.place.indices]
    count = max(n for n, index in enumerate(indices, 1) if index != "0")
    panel = _product(flat_index(indices[:count], dims[:count]), *map(size_text, dims[count:]))
    turn = ""
    for loop in ahead.inside:
        here = f"{loop.variable} / {loop.step}" if loop.step > 1 else loop.variable
        turn = f"{_product(turn, trips_text(loop))} + {here}" if turn else here
    return f"{panel} + {_product(turn, steps, f'{ahead.place.buffer}_share')}" if turn else panel


def _product(*factors: str) -> str:
    return " * ".join(f"({x})" if " " in x and not x.startswith(("least(", "ceil_div(")) else x for x in factors)


def fetching_lines(reduction: Loop, aheads: Sequence[Ahead], layout: Layout, steps: str) -> tuple[list[str], list[str]]:
    """What stands before ``reduction``, which takes ``steps``, and what at the start of its body."""
    before: list[str] = []
    inside: list[str] = []
    for ahead in aheads:
        name = ahead.place.buffer
        before += [
            f"const int64_t {name}_share = {_share(ahead)};",
            f"const int64_t {name}_next = {_start(ahead, layout, steps)};",
        ]
        inside.append(f"fetch_ahead({name}, {name}_next + {reduction.source.variable} * {name}_share);")
    return before, inside
