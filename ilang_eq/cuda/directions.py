"""Which loops of a region go along which direction of a block's threads, and how many threads there are.

Statements choose in turn, the most deeply nested first. Of the loops that index a statement's target, the last goes
along x and the one before along y; a reduction goes along x where nothing else does. What one statement has chosen
for a part of an axis holds for all loops over that part, so that threads keep to their own elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ilang_eq.cuda.nodes import WARP, Block, Dim, Part, part_of
from ilang_eq.lower.dependence import REDUCTIONS, perfect
from ilang_eq.lower.ir import Accumulate, Assign, Declare, For, Load, Statement
from ilang_eq.lower.walk import code, loads, places, stride, walk

MOST_THREADS = 1024
THREADS = 256
"""Threads of a block, where there is enough for them to do."""
WIDEST = 4
"""Floats that one access moves at most."""
TILE = 64
"""The most elements of a result that one thread holds before the block gets more threads."""

Directions = dict[Part, Dim]


@dataclass(frozen=True, slots=True)
class _Leaf:
    """An update, the loops around it, and what is read beside it: a scalar may stand for its operands."""

    update: Assign | Accumulate
    loops: tuple[For, ...]
    read: tuple[Load, ...]

    @property
    def own(self) -> list[For]:
        """The element loops that index the target, in the order of its dimensions."""
        by_name = {loop.variable: loop for loop in self.loops if _shares_out(loop)}
        return [by_name[v] for index in self.update.target.indices for v in index.variables if v in by_name]

    @property
    def reduced(self) -> list[For]:
        """The element loops that reduce into the target, innermost first."""
        if not isinstance(self.update, Accumulate) or self.update.op not in REDUCTIONS:
            return []
        own = self.own
        return [loop for loop in reversed(self.loops) if _shares_out(loop) and loop not in own]


def _shares_out(loop: For) -> bool:
    """Whether there may be something for several threads in a loop over elements."""
    return part_of(loop) is not None and loop.limit != 1


def directions(body: Sequence[Statement], in_memory: frozenset[str], known: Directions) -> Directions:
    """The directions of the parts that the loops of a region run over, beside what is ``known`` of some.

    ``in_memory`` are no locals.
    """
    found = dict(known)
    leaves = [leaf for leaf in _leaves(body, in_memory, (), frozenset()) if leaf.loops]
    for leaf in sorted(leaves, key=lambda leaf: -len(leaf.loops)):
        _choose(leaf, found)
    return found


def _leaves(
    body: Sequence[Statement], in_memory: frozenset[str], loops: tuple[For, ...], inside: frozenset[str]
) -> Iterator[_Leaf]:
    """The updates of a region, but for copies and for scalars that a loop has to itself."""
    read = tuple(load for s in body if isinstance(s, Assign | Accumulate) for load in loads(s.value))
    for statement in body:
        match statement:
            case For():
                if staged_copy(statement, in_memory) is None:
                    yield from _leaves(statement.body, in_memory, (*loops, statement), inside)
            case Declare(name):
                inside |= {name} if loops else set()
            case Assign() | Accumulate():
                if statement.target.indices or statement.target.buffer not in inside:
                    yield _Leaf(statement, loops, read)
            case _:
                pass


def _choose(leaf: _Leaf, found: Directions) -> None:
    own = [part for loop in leaf.own if (part := part_of(loop)) is not None]
    taken = {found[part] for part in own if part in found}
    free: list[Dim] = [dim for dim in ("x", "y") if dim not in taken]
    reduced = leaf.reduced
    if len(own) == 1 and reduced and not _neighbours(leaf, leaf.own[0]) and "x" in free and own[0] not in found:
        near = [loop for loop in reduced if _neighbours(leaf, loop)]
        if near:
            found.setdefault(_part(near[0]), "x")
            free.remove("x")
    for part in reversed(own):
        if part not in found and free:
            found[part] = free.pop(0)
    if "x" in free and reduced:
        found.setdefault(_part(reduced[0]), "x")


def _part(loop: For) -> Part:
    part = part_of(loop)
    assert part is not None, "an element loop runs over a part"
    return part


def _neighbours(leaf: _Leaf, loop: For) -> bool:
    """Whether iterations next to each other read neighbours in memory."""
    return any(stride(load, loop.variable) == "unit" for load in leaf.read)


def staged_copy(loop: For, in_memory: frozenset[str]) -> tuple[tuple[For, ...], Assign] | None:
    """The perfect nest that ``loop`` heads, if it only fills a local with what is in memory."""
    loops, body = perfect(loop)
    match code(body):
        case (Assign(target, value) as copy,) if target.indices and target.buffer not in in_memory:
            sources = [load.buffer for load in loads(value)]
            return (loops, copy) if sources and set(sources) <= in_memory else None
        case _:
            return None


def copy_directions(loops: Sequence[For], copy: Assign, free: Sequence[Dim]) -> dict[str, Dim]:
    """The directions of a copy's loops by variable: neighbours in memory along x."""
    elements = [loop for loop in loops if loop.step == 1]
    near = [loop for loop in elements if any(stride(load, loop.variable) == "unit" for load in loads(copy.value))]
    ordered = [*near, *(loop for loop in reversed(elements) if loop not in near)]
    return {loop.variable: dim for loop, dim in zip(ordered, free, strict=False)}


def widths(body: Sequence[Statement], found: Directions, block: Block, in_memory: frozenset[str]) -> dict[Part, int]:
    """How many neighbours of each part one thread takes together: as many as 16 bytes hold, where that comes out even.

    Along x only where they are neighbours in memory and in copies of it: in the rows of a tile, threads next to each
    other would be several rows apart. Copies themselves do not count, their threads go by other loops. Parts as long as
    an extent only where anything in memory is that near.
    """
    apart: set[Part] = set()
    near: set[Part] = set()
    lying = in_memory | copies_in(body, in_memory)
    for leaf in _leaves(body, in_memory, (), frozenset()):
        for loop in _along_x(leaf, found):
            strides = {
                stride(place, loop.variable) for place in (leaf.update.target, *leaf.read) if place.buffer in lying
            }
            apart |= {_part(loop)} if strides - {"unit", "none"} else set()
    for loop in walk(body):
        part = part_of(loop) if isinstance(loop, For) else None
        if isinstance(loop, For) and part is not None:
            strides = {stride(place, loop.variable) for place in places(loop.body) if place.buffer in lying}
            near |= {part} if "unit" in strides else set()
    result: dict[Part, int] = {}
    for part, dim in found.items():
        if dim == "x" and part in apart:
            result[part] = 1
        elif part.limit is None:
            result[part] = WIDEST if part.step == 1 and part in near else 1
        else:
            result[part] = widest(part.limit, block.along(dim))
    return result


def _along_x(leaf: _Leaf, found: Directions) -> list[For]:
    """The loops of a leaf that go along x: of those that index its target, else of those that reduce into it."""
    own, reduced = ([loop for loop in loops if found.get(_part(loop)) == "x"] for loops in (leaf.own, leaf.reduced))
    return own or reduced


def copies_in(body: Sequence[Statement], in_memory: frozenset[str]) -> frozenset[str]:
    """The locals that are copies of what is in memory."""
    found = [staged_copy(loop, in_memory) for loop in walk(body) if isinstance(loop, For)]
    return frozenset(copied[1].target.buffer for copied in found if copied is not None)


def widest(length: int, threads: int) -> int:
    """The most neighbours that each of ``threads`` takes together of ``length`` elements: 4, 2 or 1."""
    return next((width for width in (WIDEST, 2) if length % (width * threads) == 0), 1)


def block_of(found: Directions) -> Block:
    """As many threads along each direction as the parts there can use; whole warps, powers of two."""
    across, down = (_widest(found, dim) for dim in ("x", "y"))
    if down == 1:
        return Block(min(max(across or THREADS, WARP), THREADS), 1)
    if across is None:
        y = min(down or 8, 8)
        return Block(THREADS // y, y)
    down = down or 8
    x = min(across, 16 if down >= 16 else max(WARP, THREADS // down))
    y = min(down, max(1, THREADS // x))
    while across * down > TILE * x * y and x * y < MOST_THREADS:
        x, y = (x * 2, y) if across * y > down * x else (x, y * 2)
    return Block(max(x, WARP // y), y)


def _widest(found: Directions, dim: Dim) -> int | None:
    """The longest part along a direction, up to a power of two; None if an extent decides."""
    limits = [part.limit for part, where in found.items() if where == dim]
    known = [limit for limit in limits if limit is not None]
    return None if len(known) < len(limits) else 1 << (max(known, default=1) - 1).bit_length()
