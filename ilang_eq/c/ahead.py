"""Panels are asked for before they are needed, a little in each step of the reductions over those at hand.

before →  for j: for i: for k: tile += a[i][k] * b[j][k]                        b in panels of K×64 floats
after  →  for j: for i: for k: { ask for a share of b[j + 64], and for b[j][k + 8]; tile += a[i][k] * b[j][k]; }

A panel is read once for every tile of rows. All but the first time it comes from a near cache, but the first time from
where it was packed, and the prefetchers of processors see no further than a page. So the last reductions that read a
panel share the next one out among them, a line in each step, and nothing waits for memory. (BLIS hands its
micro-kernels the address of the next panel for this; van Zee and van de Geijn, ACM TOMS 41(3), 2015.) Earlier, lines
would drive out those at hand, or be driven out: a product of 4096×1024 and 1024×1024 in tiles of 6×64, of which each
pair of panels has 1366, takes 66 ms, and 113 if all of them ask. The others have a loop of their own, without the
request: its slot and its place in the queue to the second level are worth 2 to 4 % of a product.

Rows that are copied into a panel lie apart, a few lines in each place, so that prefetchers see none of them coming.
Asked for a few steps ahead, they are there in time: a product 64×2048×2048 takes 7.0 ms instead of 8.2. On Emerald
Rapids, packing 1024×1024 floats of 4 MiB in panels of 64 takes 0.35 ms if the nearest cache is asked, and 0.55 if the
second is, however far ahead; 64×2048 floats, which the second one holds, 20 and 23 µs with a tile of 6 rows.

Rows of arguments that one reduction alone goes through come from memory, and every phase in between, such as the
exponentials of decode attention, stops the prefetchers. Asked for a page ahead, 32 queries against 8192 keys each take
12.4 ms instead of 15.8 on Cascade Lake, where reading takes 12 to 13. On Zen 4 they take 4.8 ms instead of 5.3 if
nothing is asked for, and a product 1×2048×2048 takes 0.85 of its time, but attention with bias, 16 MiB of it, and
soft-cap 1.02 to 1.04. So there, only steps ask that apply slow functions. These ask for what comes next, be it of the
tile beside theirs: soft-cap in tiles of 96×96, with 16 MiB of bias, takes 0.90 of the time on Zen 3, and the
log-sum-exp of columns 0.93, than if the last rows of a tile ask for those below it, or none do if rows are long.

A panel is larger than the nearest cache, so that each row of it, or the part that a tile reads, comes from the second
one, at up to a line in three cycles. Asked for a few steps ahead, it is there in time: products take 4 to 10 % less on
Cascade Lake. Emerald Rapids does without for parts of a panel's rows, after whose end other parts come than those asked
for; whole rows, with which the next panel goes on, take as long either way, or 1.04 without (SwiGLU of 1365 columns).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from math import prod

from ilang_eq.c.bounds import trips_text
from ilang_eq.c.layout import Layout, Storage
from ilang_eq.c.nodes import Loop, VectorNest
from ilang_eq.c.stages import worth_stages
from ilang_eq.lower.addresses import flat_index, index_text, size_text
from ilang_eq.lower.ir import Assign, For, Index, Load
from ilang_eq.lower.passes import FAR, ROOM
from ilang_eq.lower.walk import code, loads, mentions, stride, updates
from ilang_eq.lower.widths import LINE

SOON = 8
"""Steps from asking for a row of a panel to reading it: some 100 cycles, where the second level takes 15."""
ENOUGH = 4
"""Rows that parts of a panel are multiplied with, from which on Sapphire Rapids and later prefetchers are soon enough.
On Emerald Rapids tiles of 6×64 take 0.95 to 0.99 of the time if they do not ask, those of 3×64 1.1 to 1.25."""
STREAMED = 1024
"""Floats from where a row of an argument is asked for to where it is read. With decode attention, whose rows have 256
bytes, 1 KiB takes 13.1 ms, 2 takes 12.6, 4 takes 12.4, 8 takes 13.0, and 16 takes 13.5; 15.8 without."""
FOLLOWED = 256
"""Floats of a row, at most, that are asked for: prefetchers find the end of longer ones, and not of shorter ones. Sums
along two axes of 64×512×784 in tiles of 6 × 784, 1.6 MB from row to row, take 0.80 of the time on Zen 3 unasked; rows
of 1024 whose columns go from 0 to 1 take as long."""
NARROW = 64
"""Floats of each row that a tile reads before the next row, at most, for prefetchers to follow all of its rows."""
PAGE = 1024
"""Floats in a page."""
NEAR = 16384
"""Floats that stay near while they are read again, at most: they fit into any second level. No other was tried."""
COPIED = 4
"""Steps from asking for a row to copying it into a panel: of 4, 8 and 16, products take as long with either."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """A panel that reductions read, and the next one, of which the last of them ask for a share each.

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


@dataclass(frozen=True, slots=True)
class Row:
    """The floats that a step reads of a panel, or copies to one, some steps further; ``by`` is what asks for them."""

    place: Load
    width: int
    by: str = "fetch_copied"


@dataclass(frozen=True, slots=True)
class Stream:
    """Part of a row of an argument, of which a step reads ``width`` floats, some rows further.

    Args:
        rows: those of a tile, at whose end it is one of a tile that does not come next, and waits until then, if any.
        by: what asks: a step that applies slow functions has time for it wherever it runs.
    """

    place: Load
    width: int
    rows: int | None
    by: str


@dataclass(frozen=True, slots=True)
class Fetching:
    """The text by which a reduction asks.

    Args:
        before: what stands before it.
        inside: what each step asks for.
        turn: whether this one asks for a share of what comes next; empty if none ever does.
        asking: what each of its steps asks for then.
    """

    before: list[str]
    inside: list[str]
    turn: str
    asking: list[str]


def panels_ahead(reduction: Loop, layout: Layout) -> tuple[Ahead, ...]:
    """What is worth asking for in each step of ``reduction``."""
    found: dict[str, Ahead] = {}
    for place, width in _panels(reduction, layout, "argument", "shared"):
        ahead = _ahead(place, width, reduction)
        if ahead is not None:
            found.setdefault(place.buffer, ahead)
    return tuple(found.values())


def rows_soon(reduction: Loop, layout: Layout) -> tuple[Row, ...]:
    """The rows of whole lines that steps of ``reduction`` come to soon."""
    found: dict[str, Row] = {}
    for place, nest in reads(reduction, layout, "argument", "shared", "private"):
        width = _width(place, reduction.source, nest.loops, layout)
        if width and width % LINE == 0:
            inside = {loop.variable for loop in nest.loops}
            rows = prod(loop.limit or 1 for loop in nest.loops if not mentions(place, loop.variable))
            by = "fetch_soon" if rows < ENOUGH or width == layout.buffers[place.buffer].dims[-1] else "fetch_part"
            found.setdefault(place.buffer, Row(_soon(place, reduction.source.variable, inside, SOON), width, by))
    return tuple(found.values())


def rows_streamed(reduction: Loop, layout: Layout, foreseen: Set[str]) -> tuple[Stream, ...]:
    """The rows of arguments that steps of ``reduction`` come to later, unless the next reduction reads the same.

    Nor those that are ``foreseen`` otherwise, or that passes ask for (``c/requests.py``).
    """
    found: dict[str, Stream] = {}
    asked = foreseen | {one.place.buffer for one in reduction.asked}
    for place, nest in reads(reduction, layout, "argument") if reduction.part in ("whole", "main") else ():
        stream = None if place.buffer in asked else _stream(place, nest, reduction)
        if stream is not None:
            found.setdefault(place.buffer, stream)
    return tuple(found.values())


def _stream(place: Load, nest: VectorNest, reduction: Loop) -> Stream | None:
    *outer, last = place.indices or (Index(()),)
    inside = {loop.variable for loop in nest.loops}
    lane, width = nest.loops[-1], nest.loops[-1].limit or 0
    if inside & set(last.variables) != {lane.variable} or any(inside & set(index.variables) for index in outer):
        return None
    around = (*reduction.around, reduction.source)
    steps = [loop for loop in around if any(loop.variable in index.variables for index in outer)]
    if not steps or steps[-1].step > 1 or any(index.divisor != 1 for index in place.indices):
        return None
    # a reduction along the row reads as much of it before the next step
    length = width if steps[-1] == reduction.source else reduction.source.limit
    rows = [index for index in place.indices if steps[-1].variable in index.variables]
    if length is None or length > FOLLOWED or len(rows) > 1:
        return None
    if _stays(place, reduction):
        return None
    short = reduction.source.limit is not None and width <= NARROW
    if short and reduction.around and _goes_along(place, reduction.around[-1]):
        return None
    distance, rows_of_tile = max(4, STREAMED // length), steps[-1].limit
    beyond = rows_of_tile is not None and rows_of_tile <= distance and width > NARROW
    if beyond and reduction.within is not None and _goes_along(place, reduction.within):
        return None
    by = "fetch_soon" if worth_stages(nest.body) else "fetch_streamed"
    goes_on = rows_of_tile is None
    if rows_of_tile is not None and by == "fetch_soon":
        loop = reduction.around[-1] if reduction.around else reduction.within
        if loop is not None and loop.step == width and _is_along(place, loop):
            return Stream(_in_turns(place, steps[-1], lane, distance), width, None, by)
        below = loop is not None and loop.step == rows_of_tile and loop.variable in rows[0].variables
        goes_on = below or rows_of_tile > distance
    if not goes_on and rows_of_tile is not None and _takes_turns(rows[0], steps):
        # the rows at hand go on where the loop around them steps, and those below come after all of it; of a tile of
        # a few, most would come after something else: 32 heads of decode attention take 0.86 of the time unasked
        further, steps_left = max(1, distance // rows_of_tile), steps[-2].limit
        if steps_left is not None and steps_left <= 2 * further:
            return None
        place = _soon(place, steps[-2].variable, {lane.variable}, further)
    else:
        place = _soon(place, steps[-1].variable, {lane.variable}, distance)
    return Stream(place, width, None if goes_on else rows_of_tile, by)


def _stays(place: Load, reduction: Loop) -> bool:
    """Whether ``reduction`` comes to the same rows again while they are near.

    What is asked for meanwhile may drive them out: four heads of attention, 128 wide, take 0.91 of the time on Zen 3 if
    16 tiles of 6 rows, which read the same 64 rows of values, do not ask, and five other kernels 0.94 to 0.99.
    """
    floats = reduction.source.limit
    for loop in reversed(reduction.around):
        if not mentions(place, loop.variable):
            return loop is reduction.around[-1] or (floats is not None and floats <= NEAR)
        floats = None if floats is None or loop.limit is None else floats * loop.limit
    return False


def _in_turns(place: Load, row: For, lane: For, distance: int) -> Load:
    """``place`` some rows further; after the last of a tile come the first of the tile beside it."""
    *outer, last = place.indices
    there = f"{row.variable} + {distance}"
    turned = {row.variable: f"({there}) % {row.limit}"}
    rows = (Index(tuple(turned.get(v, v) for v in index.variables)) for index in outer)
    along = (*(v for v in last.variables if v != lane.variable), f"({there}) / {row.limit} * {lane.limit}")
    return Load(place.buffer, (*rows, Index(along)))


def _takes_turns(rows: Index, steps: Sequence[For]) -> bool:
    """Whether the loop around that of ``steps`` which goes over ``rows`` goes over others, one by one."""
    return len(steps) > 1 and steps[-2].step == 1 and steps[-2].variable not in rows.variables


def _goes_along(place: Load, loop: For) -> bool:
    """Whether ``loop`` goes along the rows of ``place`` for a page or more: prefetchers follow them.

    What is asked for below these rows may be gone before it is read. Without, 1×2048×2048 in tiles of 4 to 32 rows and
    32 or 64 columns takes 0.60 to 1.04 of the time on Zen 3 (median 0.83), 1×4096×8192 in 4 to 8 rows 0.56 to 0.76, the
    sum of 4096² floats 0.6; but in tiles of 256 columns the former takes 1.12 to 1.29, and tiles of 4 × 32 that go 256
    floats along their rows 1.28. Without it in wide tiles of few rows that sum nothing, x·sigmoid(y) of 4096² in tiles
    of 6 × 128 takes 0.73 of the time on Zen 3 (0.75 at two threads), GELU 0.97 (0.86).
    """
    return _is_along(place, loop) and (loop.limit is None or loop.limit >= PAGE)


def _is_along(place: Load, loop: For) -> bool:
    *outer, last = (loop.variable in index.variables for index in place.indices)
    return last and not any(outer)


def _panels(reduction: Loop, layout: Layout, *storage: Storage) -> Iterator[tuple[Load, int]]:
    """The panels in some kinds of ``storage`` that ``reduction`` reads whole: where, and how much in a step."""
    for place, nest in reads(reduction, layout, *storage):
        width = _width(place, reduction.source, nest.loops, layout)
        if width and width == layout.buffers[place.buffer].dims[-1]:
            yield place, width


def reads(reduction: Loop, layout: Layout, *storage: Storage) -> Iterator[tuple[Load, VectorNest]]:
    """What ``reduction`` only reads in some kinds of ``storage``, and in which nest."""
    for nest in (node for node in reduction.body if isinstance(node, VectorNest)):
        written = {update.target.buffer for update in updates(nest.body)}
        for place in (load for update in updates(nest.body) for load in loads(update.value)):
            if place.buffer not in written and layout.storage.get(place.buffer) in storage:
                yield place, nest


def _width(place: Load, reduction: For, nest: Sequence[For], layout: Layout) -> int:
    """The floats of a panel's row that a step of ``reduction`` reads, if the next step reads the next row; else 0."""
    if len(place.indices) < 2 or not isinstance(layout.buffers[place.buffer].dims[-1], int):
        return 0
    *_, step, last = place.indices
    lengths = [loop.limit for loop in nest if loop.variable in last.variables]
    follows = reduction.variable in step.variables and step.divisor == 1 and reduction.step == 1
    elsewhere = sum(reduction.variable in index.variables for index in place.indices) > 1
    return lengths[0] or 0 if len(lengths) == 1 and last.divisor == 1 and follows and not elsewhere else 0


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


def _soon(place: Load, step: str, inside: set[str], steps: int) -> Load:
    """``place`` at the first iteration of the loops ``inside``, so many ``steps`` further of the loop ``step``."""

    def index(old: Index) -> Index:
        kept = tuple(v for v in old.variables if v not in inside)
        return Index((*kept, str(steps)) if step in kept else kept, old.divisor if kept else 1)

    return Load(place.buffer, tuple(map(index, place.indices)))


def _panel(ahead: Ahead, layout: Layout) -> tuple[str, str]:
    """The float at which the panel begins, and that at which the last one ends."""
    dims = layout.buffers[ahead.place.buffer].dims
    indices = [index_text(index) for index in ahead.place.indices]
    count = max(n for n, index in enumerate(indices, 1) if index != "0")
    sizes = [size_text(size) for size in dims]
    return _product(flat_index(indices[:count], dims[:count]), *sizes[count:]), _product(*sizes)


def _turn(ahead: Ahead, share: int) -> str:
    """How many reductions have asked before; negative as long as enough follow, nothing if the panel is one's alone."""
    turn = ""
    for loop in ahead.inside:
        here = f"{loop.variable} / {loop.step}" if loop.step > 1 else loop.variable
        turn = f"{_product(turn, trips_text(loop))} + {here}" if turn else here
    others = (trips_text(loop) for loop in ahead.inside if loop not in ahead.again)
    asking = _product(*others, str(-(-ahead.width // share)))
    return turn and f"{turn} - ({_product(*map(trips_text, ahead.inside))} - {asking})"


def _product(*factors: str) -> str:
    return " * ".join(f"({x})" if " " in x and not x.startswith(("least(", "ceil_div(")) else x for x in factors)


def row_copied(loop: For, layout: Layout) -> Row | None:
    """The row that a loop comes to soon, if each of its steps copies part of one; rows begin anywhere in a line."""
    match code(loop.body):
        case (For(limit=int(width)) as along,) if loop.step == 1:
            pass
        case _:
            return None
    match code(along.body):
        case (Assign(target, Load() as place),) if layout.storage.get(place.buffer) in ("argument", "shared"):
            gaps = stride(place, loop.variable) == "far" and loop.variable not in place.indices[-1].variables
            if gaps and stride(place, along.variable) == stride(target, along.variable) == "unit":
                return Row(_soon(place, loop.variable, {along.variable}, COPIED), width + 1)
        case _:
            pass
    return None


def fetching_lines(reduction: Loop, layout: Layout, steps: str, foreseen: Set[str]) -> Fetching:
    """What ``reduction``, which takes ``steps``, asks for that is not ``foreseen`` otherwise."""
    before: list[str] = []
    shares: list[str] = []
    inside: list[str] = []
    asking: list[str] = []
    for ahead in panels_ahead(reduction, layout):
        name, (panel, end) = ahead.place.buffer, _panel(ahead, layout)
        share = min(LINE, ahead.width)
        asked = _product(f"{name}_turn", steps, str(share))
        before += [
            f"const int64_t {name}_panel = {panel};",
            f"const int64_t {name}_turn = {_turn(ahead, share) or '0'};",
            f"const int64_t {name}_share = {name}_panel < {end} && {name}_turn >= 0 ? {share} : 0;",
            f"const int64_t {name}_next = {name}_share ? {name}_panel + {asked} : 0;",
        ]
        shares.append(f"{name}_share")
        asking.append(f"fetch_ahead({name}, {name}_next + {reduction.source.variable} * {name}_share);")
    for row in rows_soon(reduction, layout):
        name, dims = row.place.buffer, layout.buffers[row.place.buffer].dims
        first = flat_index([index_text(index) for index in row.place.indices], dims).removesuffix(" + 0")
        inside.append(f"{row.by}({name}, {first}, {row.width});")
    for stream in rows_streamed(reduction, layout, foreseen):
        name, dims = stream.place.buffer, layout.buffers[stream.place.buffer].dims
        tests = [f"{_product(*map(size_text, dims))} >= {FAR}"]
        tests += [] if stream.rows is None else [f"{stream.rows} * {size_text(dims[-1])} <= {ROOM}"]
        first = flat_index([index_text(index) for index in stream.place.indices], dims)
        before.append(f"const int {name}_streamed = {' && '.join(tests)};")
        inside += [f"if ({name}_streamed)", f"    {stream.by}({name}, {first}, {stream.width});"]
    return Fetching(before, inside, " || ".join(shares), asking)


def copied_lines(loop: For, layout: Layout) -> list[str]:
    """What each step of ``loop``, if it copies a row, asks for; at the end the last row, which is near."""
    copied = row_copied(loop, layout)
    if copied is None:
        return []
    dims = layout.buffers[copied.place.buffer].dims
    *outer, last = (index_text(index) for index in copied.place.indices)
    there = [f"least({row}, {size_text(d)} - 1)" if " " in row else row for row, d in zip(outer, dims, strict=False)]
    return [f"{copied.by}({copied.place.buffer}, {flat_index([*there, last], dims)}, {copied.width});"]
