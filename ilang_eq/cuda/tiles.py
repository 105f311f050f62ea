"""CUDA C text of tiles that all threads of a block copy, in one line or while the iteration before works."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ilang_eq.cuda.ahead import next_tile
from ilang_eq.cuda.context import At, Lane, end_of, indented, under
from ilang_eq.cuda.nodes import TOGETHER, Copy, Node, Sweep, part_of
from ilang_eq.cuda.runs import conditions, first_of, may_move
from ilang_eq.cuda.text import Places
from ilang_eq.cuda.used import Used
from ilang_eq.cuda.walks import parts_of_tiles
from ilang_eq.lower.addresses import size_text
from ilang_eq.lower.ir import Comment, Declare, For, Load
from ilang_eq.lower.walk import replace_variable

IN_FLIGHT = 8
"""Trips of a shared-out loop that are unrolled, so that their loads are under way together."""


@dataclass(frozen=True, slots=True)
class Strides:
    """A copy in whose trips a thread stays in its column, ``rows`` rows further on each time.

    The positions of the first trip are then all that a thread has to divide for, and addresses are so many rows apart.
    """

    row: For
    rows: int

    @property
    def first(self) -> str:
        """The row of the first trip."""
        return f"{self.row.variable}_first"


def strides_of(copy: Copy, width: int, threads: int) -> Strides | None:
    """How a thread moves through a tile of two loops, by runs of ``width``; None unless threads take whole rows."""
    if len(copy.loops) != 2:
        return None
    row, near = copy.loops
    columns = (near.limit or 1) // width
    rows = threads // columns
    even = threads % columns == 0 and (row.limit or 1) % rows == 0 and row.limit != rows
    together = copy.rows_together(width)
    return Strides(row, rows) if even and (together == 1 or rows % TOGETHER == 0) else None


def in_line(copy: Copy, width: int, threads: int, body: Sequence[str], most: int = IN_FLIGHT) -> list[str]:
    """``body`` for every run of ``width`` elements, which go to the threads in turn, unrolled ``most`` times."""
    name, strides = copy.target.buffer, strides_of(copy, width, threads)
    count = copy.runs * copy.width // width
    at = "threadIdx.x" if strides else f"{name}_at"
    positions = _positions(copy, width, at, strides)
    if strides:
        positions.append(f"const int {strides.row.variable} = {name}_trip * {strides.rows} + {strides.first};")
    lines = [*positions, *body]
    lines = lines if count % threads == 0 else under([f"{name}_at < {count}"], lines)
    trips = -(-count // threads)
    if trips == 1:
        return ["{", *indented([f"const int {name}_at = threadIdx.x;", *lines]), "}"]
    head = f"for (int {name}_trip = 0; {name}_trip < {trips}; {name}_trip++) {{"
    unroll = "#pragma unroll" if trips <= most else f"#pragma unroll {most}"
    lines = lines if strides else [f"const int {name}_at = {name}_trip * {threads} + threadIdx.x;", *lines]
    return [unroll, head, *indented(lines), "}"]


def _positions(copy: Copy, width: int, at: str, strides: Strides | None) -> list[str]:
    """The positions of run number ``at``; with ``strides``, of a thread's first, where the row is called that."""
    near = copy.loops[-1]
    rows = copy.rows_together(width)
    positions: list[str] = []
    left = at
    for n, loop in enumerate(reversed(copy.loops)):
        size = (loop.limit or 1) // (1 if n else width)
        position = left if n == len(copy.loops) - 1 else f"{left} % {size}"
        called = strides.first if strides and loop is strides.row else loop.variable
        if loop is near and width > 1:
            positions.append(f"const int {Lane(near.variable, width, 'int').run_name} = {position} * {width};")
        elif n == 1 and rows > 1:
            row = f"{copy.target.buffer}_row"
            among = f"{row} % {rows} * {TOGETHER // rows} + {row} % {TOGETHER} / {rows}"
            positions.append(f"const int {called} = {row} / {TOGETHER} * {TOGETHER} + {among};")
            positions.append(f"const int {row} = {position};")
        else:
            positions.append(f"const int {called} = {position};")
        left = f"{left} / {size}"
    return positions[::-1]


def _start(copy: Copy, place: Load, width: int, places: Places) -> str:
    """Where ``place`` lies in memory: where the thread's first run does, and so many rows further on."""
    strides = strides_of(copy, width, places.block.threads)
    if strides is None:
        return places.address(place)
    moving = [n for n, index in enumerate(place.indices) if strides.row.variable in index.variables]
    if len(moving) != 1 or place.indices[moving[0]].divisor != 1:
        return places.address(place)
    first = replace_variable(place, strides.row.variable, (strides.first,))
    assert isinstance(first, Load), "a place stays one"
    length = [size_text(size) for size in places.homes[place.buffer].buffer.dims[moving[0] + 1 :]]
    return f"{places.address(first)} + {copy.target.buffer}_trip * ({' * '.join([str(strides.rows), *length])})"


def begun(copy: Copy, at: At, places: Places, used: Used, aligned: dict[str, None]) -> list[str]:
    """The text that begins to copy a tile; ``aligned`` gets what is assumed of the array."""
    source, near = copy.update.value, copy.loops[-1]
    assert isinstance(source, Load), "what is copied ahead is copied as it is"
    tests = [
        f"{loop.variable} < {end_of(loop, False, loop.outer)}" for loop in copy.loops if part_of(loop) not in at.full
    ]
    lane = Lane(near.variable, copy.width, "int")
    together = at.together and not tests and copy.width > 1
    if together and all(may_move(place, lane, at.steps, places.homes) for place in (source, copy.target)):
        aligned |= dict.fromkeys(conditions(places.homes[source.buffer], copy.width))
        used.moves.add(f"begin_{copy.width}")
        to = places.element(first_of(copy.target, lane))
        start = _start(copy, first_of(source, lane), copy.width, places)
        return in_line(copy, copy.width, places.block.threads, [f"begin_{copy.width}(&{to}, {start});"])
    used.moves.add("begin_1")
    exists = " && ".join(tests) or "true"
    text = f"begin_1(&{places.element(copy.target)}, {_start(copy, source, 1, places)}, {exists});"
    # a tail is seldom, and nothing waits for it here: no registers for the addresses of several
    return in_line(copy, 1, places.block.threads, [text], 1 if tests else IN_FLIGHT)


def begun_next(
    loop: For, copies: Sequence[Copy], at: At, places: Places, used: Used, aligned: dict[str, None]
) -> list[str]:
    """Begins to copy the tiles at the position ``next_name`` of ``loop``, if there is one."""
    name = next_name(loop)
    following = [next_tile(copy, loop.variable, name) for copy in copies]
    at = replace(at, steps={**at.steps, name: loop.step})
    whole = parts_of_tiles(replace(loop, variable=name), following)
    end = end_of(loop, False, loop.outer)
    rest = [line for copy in following for line in begun(copy, at, places, used, aligned)]
    if not whole or at.tail:
        return under([f"{name} < {end}"], rest)
    full = replace(at, full=at.full | whole)
    main = [line for copy in following for line in begun(copy, full, places, used, aligned)]
    return [
        f"if ({name} + {loop.step} <= {end}) {{",
        *indented(main),
        f"}} else if ({name} < {end}) {{",
        *indented(rest),
        "}",
    ]


def next_name(loop: For) -> str:
    """The position of the iteration after."""
    return f"{loop.variable}_next"


def stage_name(loop: For) -> str:
    """Which of its places the tile of this iteration has."""
    return f"{loop.variable}_stage"


def apart(node: Sweep) -> tuple[list[str], Sweep]:
    """What is said of the copies that run ahead in ``node``, and the loop without them."""
    said: list[str] = []
    kept: list[Node] = []
    for inner in node.body:
        if isinstance(inner, Copy) and inner.ahead:
            behind = len(kept)
            while behind and isinstance(kept[behind - 1], Comment | Declare):
                behind -= 1
            said += [f"// {n.text}" for n in kept[behind:] if isinstance(n, Comment)]
            kept[behind:] = [n for n in kept[behind:] if not isinstance(n, Comment)]
        else:
            kept.append(inner)
    return said, replace(node, body=tuple(kept))
