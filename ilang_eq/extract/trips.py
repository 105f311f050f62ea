"""How often each loop of a kernel runs, on average, at given extents.

before →  for i step 16 < n: for i' step 1 < min(16, n - i)          with n = 40
after  →  i: 3 trips;  i': 40/3 trips, because its lengths are 16, 16 and 8

Comments and declarations are gone; what is left is what costs time. So are loops that run seldom: a tile that is set
to a number in the first block of its reduction (``lower/fills.py``) takes as long as one that is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from math import prod
from typing import NamedTuple, assert_never

from ilang_eq.lower.halves import BLOCK, few
from ilang_eq.lower.ir import Accumulate, Assign, Comment, Declare, For, Load, Statement
from ilang_eq.lower.passes import calls_functions
from ilang_eq.lower.rolling import most_vectors
from ilang_eq.lower.walk import loads, mentions, stride
from ilang_eq.lower.widths import (
    FEWEST_STEPS,
    LARGEST_TILE,
    MOST_VECTORS,
    STEPS,
    covering,
    dividing,
    masked,
)

Lengths = tuple[tuple[int, float], ...]
"""The lengths that a part of an axis takes, each with its share of all occurrences."""


@dataclass(frozen=True)
class Loop:
    """A loop that runs ``trips`` times on average each time it is reached.

    ``width`` is the constant number of its iterations but for a tail, which all but a share ``full`` of its runs
    are; None if an extent decides. In whole vectors of the widest it takes ``covered`` iterations on average: there is
    code for short tails (``c/registers.py``). Its hash is computed once: what is known of loops is looked up by them.
    """

    variable: str
    step: int
    trips: float
    width: int | None
    full: float
    covered: float
    parallel: bool
    reduces: bool
    body: tuple[Node, ...]

    @cached_property
    def _hash(self) -> int:
        # statements count by what they write: their own hashes go through all that they read
        body = tuple([node if isinstance(node, Loop) else node.target.buffer for node in self.body])
        return hash((self.variable, self.step, self.trips, self.width, self.full, body))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def buffers(self) -> tuple[str, ...]:
        """What it touches."""
        inside = (node.buffers if isinstance(node, Loop) else _touched(node) for node in self.body)
        return tuple(dict.fromkeys(chain.from_iterable(inside)))

    @cached_property
    def constant(self) -> Unit | None:
        """The perfect nest of constant loops that this one heads, and its body; None if it is none or too large."""
        loops: list[Loop] = [self]
        while len(loops[-1].body) == 1 and isinstance(inner := loops[-1].body[0], Loop):
            loops.append(inner)
        body = leaves(loops[-1].body)
        widths = [loop.width for loop in loops if loop.width is not None and loop.step == 1]
        if body is None or len(widths) < len(loops):
            return None
        lanes = lanes_of(loops[-1], body)
        along = [isinstance(s, Accumulate) and _moves(s, loops[-1]) for s in body if s.target.indices]
        most = LARGEST_TILE if lanes > 1 and along and all(along) else MOST_VECTORS * lanes
        return (tuple(loops), body) if prod(widths) <= most else None

    @cached_property
    def unrolled(self) -> Unit | None:
        """The same, but for a loop that goes around a register tile, which stays a loop."""
        nest = self.constant
        return None if nest is not None and len(nest[0]) > 1 and _reduces(self, nest[1]) else nest

    @cached_property
    def together(self) -> float:
        """How many of its steps it takes together, on average."""
        nest = self.body[0].unrolled if len(self.body) == 1 and isinstance(self.body[0], Loop) else None
        return 1.0 / (visited(self, *nest) or 1.0) if nest else 1.0

    @cached_property
    def tile(self) -> Leaves:
        """What the unrolled nests do that this loop goes around, or is; nothing if there is something else in it."""
        if self.unrolled is not None:
            return self.unrolled[1]
        match self.body:
            case (Loop() as only,):
                return only.tile
            case _:
                nests = [node.unrolled if isinstance(node, Loop) else None for node in self.body]
                return tuple(chain.from_iterable(nest[1] for nest in nests if nest)) if None not in nests else ()

    @cached_property
    def variables(self) -> frozenset[str]:
        """Of this loop and of those inside."""
        inner = (node.variables for node in self.body if isinstance(node, Loop))
        return frozenset((self.variable,)).union(*inner)

    @cached_property
    def widths(self) -> tuple[int | None, ...]:
        """Of this loop and of those inside, as far as each is all there is in the one around it."""
        match self.body:
            case (Loop() as only,):
                return self.width, *only.widths
            case _:
                return (self.width,)

    @cached_property
    def is_phase(self) -> bool:
        """Whether it does one thing all along: its body is unrolled nests, none of which waits for another's fold."""
        folded: set[str] = set()
        for node in self.body:
            nest = node.unrolled if isinstance(node, Loop) else ((), (node,))
            if nest is None:
                return False
            loops, body = nest
            if loops and any(load.buffer in folded for update in body for load in loads(update.value)):
                return False
            if loops:
                folded |= {s.target.buffer for s in body if isinstance(s, Accumulate) and not _moves(s, loops[-1])}
        return True


Node = Loop | Assign | Accumulate
Leaves = tuple[Assign | Accumulate, ...]
Unit = tuple[tuple[Loop, ...], Leaves]

COLUMNS = 8
"""Rows become columns so many at a time."""


def leaves(nodes: Sequence[Node]) -> Leaves | None:
    """``nodes`` if there is no loop among them."""
    found = tuple(node for node in nodes if not isinstance(node, Loop))
    return found if len(found) == len(nodes) else None


def row_by_row(loop: Loop, around: tuple[Loop, ...] = ()) -> list[bool]:
    """Of each phase of ``loop``, in the order of ``issue_times``, whether it adds to rows that stay in memory.

    Those are parts of rows that nothing holds in registers, and what functions compute: other sums of rows of run-time
    length take several at a time (``c/jam.py``). Values of decode attention that are added to four rows of 64 floats
    one after another take 1.2 of all its time that four at a time take, in registers, on Zen 3.

    Args:
        around: the loops around it, some of which come back to the same rows.
    """
    if not loop.is_phase:
        inner = (node for node in loop.body if isinstance(node, Loop))
        return [*(adds for node in inner for adds in row_by_row(node, (*around, loop))), False]
    nests = [node.unrolled for node in loop.body if isinstance(node, Loop) and node.unrolled is not None]
    parts = [s for loops, body in nests for s in body if isinstance(s, Accumulate) and _moves(s, loops[-1])]
    rows = _own(loop) if loop.width is None and calls_functions(_own(loop)) else ()
    sums = [s for s in (*parts, *rows) if isinstance(s, Accumulate) and _moves(s, loop)]
    return [any(outer.trips > 1 and not _moves(s, outer) for s in sums for outer in around)]


def copied(loop: Loop) -> list[str]:
    """Of each phase of ``loop``, in the same order, the buffer whose rows it copies; empty where it does anything else.

    Rows that lie apart are asked for a few steps ahead (``c/ahead.py``).
    """
    if not loop.is_phase:
        return [*(name for node in loop.body if isinstance(node, Loop) for name in copied(node)), ""]
    return [_copied(loop)]


def _copied(loop: Loop) -> str:
    match loop.body:
        case (Loop(body=(Assign(target, Load() as place),), width=int()) as along,) if loop.step == 1:
            apart = stride(place, loop.variable) == "far" and loop.variable not in place.indices[-1].variables
            whole = stride(place, along.variable) == stride(target, along.variable) == "unit"
            return place.buffer if apart and whole else ""
        case (Loop() as inner,):
            return _copied(inner)
        case _:
            return ""


class Turning(NamedTuple):
    """Places whose rows become columns in blocks (``c/turned.py``), but for the part of the rows that is ``left``."""

    places: frozenset[Load] = frozenset()
    left: float = 0.0


NO_TURNING = Turning()


@lru_cache(maxsize=4096)
def turned(around: Loop, inner: Loop) -> Turning:
    """What becomes columns, where two loops do nothing but make them of rows."""
    statements = leaves(inner.body) or ()
    if around.body != (inner,) or around.step != 1 or inner.step != 1 or calls_functions(statements):
        return NO_TURNING
    results = {s.target for s in statements if s.target.indices}
    places = {place for s in statements for place in (s.target, *loads(s.value)) if mentions(place, inner.variable)}
    apart = {place for place in places if stride(place, inner.variable) != "unit"}
    rows, columns = (inner, around) if apart & results else (around, inner)
    whole = columns.width is not None and columns.width % COLUMNS == 0
    enough = rows.width is None or rows.width >= COLUMNS
    alike = apart == results if apart & results else bool(results)
    turning = all(stride(place, around.variable) == "unit" for place in apart)
    sums = any(isinstance(s, Accumulate) for s in statements)
    if not (whole and enough and alike and turning) or sums:
        return NO_TURNING
    return Turning(frozenset(apart), 0.0 if rows.width is None else rows.width % COLUMNS / rows.width)


def turns(loop: Loop) -> bool:
    """Whether ``loop`` and the one in it make columns of rows, several at a time."""
    return any(isinstance(node, Loop) and bool(turned(loop, node).places) for node in loop.body)


def _reduces(loop: Loop, body: Leaves) -> bool:
    """Whether all that ``body`` adds to stays as ``loop`` runs: such a loop goes around a register tile."""
    sums = [statement for statement in body if isinstance(statement, Accumulate)]
    return bool(sums) and not any(_moves(s, loop) for s in sums)


def visited(around: Loop, unit: Sequence[Loop], body: Leaves) -> float:
    """How often a step of ``around`` comes to a sum of ``body`` in the nearest cache; 0 if all are in registers.

    These are sums of a tile, ``unit``, of too many vectors. Several steps are taken together (``c/steps.py``).
    """
    sums = [s for s in body if isinstance(s, Accumulate)]
    if not any(_moves(s, unit[-1]) for s in sums) or any(_moves(s, around) for s in sums):
        return 0.0
    if prod(loop.width or 1 for loop in unit) <= most_vectors(body) * lanes_of(unit[-1], body):
        return 0.0
    steps = around.width
    few = steps is not None and steps < FEWEST_STEPS
    if calls_functions(body) or few or len(around.body) > 1 or around.step > 1:
        return 1.0
    return 1.0 / STEPS if steps is None else (steps // STEPS + steps % STEPS) / steps


def _own(loop: Loop) -> Leaves:
    return tuple(node for node in loop.body if not isinstance(node, Loop))


def _touched(statement: Assign | Accumulate) -> list[str]:
    return [statement.target.buffer, *(load.buffer for load in loads(statement.value))]


def _moves(statement: Accumulate, loop: Loop) -> bool:
    return mentions(statement.target, loop.variable)


def lanes_of(loop: Loop, body: Leaves) -> int:
    """The lanes in which ``body``, all that is in ``loop``, takes its constant number of iterations.

    Sums are held in registers, whose vectors may be longer than what they hold, unless lanes are collected one by one.
    """
    width = loop.width or 1
    kept = [s for s in body if isinstance(s, Accumulate) or s.target.indices]
    sums = bool(kept) and all(isinstance(s, Accumulate) for s in kept)
    if sums and dividing(width) > 1:
        read = (place for s in body for place in (s.target, *loads(s.value)))
        sums = not any(stride(place, loop.variable) == "far" for place in read)
    return masked(width) if sums else dividing(width)


class _Blocks(NamedTuple):
    """What one iteration of a loop covers of its axis, and the part of all iterations up to it that stay.

    Others are beyond a diagonal.
    """

    step: int
    lengths: Lengths
    kept: float = 1.0


class _Runs(NamedTuple):
    """How a loop runs, as in ``Loop``, and the blocks that its iterations cover."""

    trips: float
    width: int | None
    full: float
    covered: float
    blocks: _Blocks


def evaluate(
    statements: Sequence[Statement],
    extents: Mapping[tuple[int, int], int],
    around: Mapping[str, _Blocks] | None = None,
    seen: dict[Loop, Loop] | None = None,
) -> tuple[Node, ...]:
    """``statements`` at ``extents``, which gives dimension d of input n under the key (n, d).

    Args:
        around: the loops around them, by variable.
        seen: every loop that was found before, which is found again as the same object; new ones are added.
    """
    outer, seen = around or {}, {} if seen is None else seen
    nodes: list[Node] = []
    for statement in statements:
        match statement:
            case For(seldom=True):
                pass
            case For():
                nodes.append(_loop(statement, extents, outer, seen))
            case Assign() | Accumulate():
                nodes.append(statement)
            case Comment() | Declare():
                pass
            case other:
                assert_never(other)
    return tuple(nodes)


def _loop(
    loop: For, extents: Mapping[tuple[int, int], int], outer: Mapping[str, _Blocks], seen: dict[Loop, Loop]
) -> Loop:
    runs = _runs(_around(loop, loop.extent.at(extents), outer), loop.limit, loop.step)
    stays, blocks = 1.0, runs.blocks
    if loop.diagonal is not None and not few(loop.diagonal.summed, loop.extent, extents):
        kept = _kept(loop.diagonal.reach, loop.step, loop.extent.at(extents))
        stays = kept / min((outer[v].kept for v in loop.outer), default=1.0)
        blocks = blocks._replace(kept=kept)
    body = evaluate(loop.body, extents, {**outer, loop.variable: blocks}, seen)
    trips, covered = runs.trips * stays, runs.covered * stays
    found = Loop(loop.variable, loop.step, trips, runs.width, runs.full, covered, loop.parallel, loop.reduces, body)
    return seen.setdefault(found, found)


@lru_cache(maxsize=1024)
def _kept(rows: int, columns: int, extent: int) -> float:
    """The part of all tiles of ``rows`` × ``columns`` that is not beyond the diagonal."""
    ends = (min(extent, -(-(row + rows) // BLOCK) * BLOCK) for row in range(0, extent, rows))
    every = -(-extent // rows) * -(-extent // columns)
    return sum(-(-end // columns) for end in ends) / every if every else 1.0


def _around(loop: For, extent: int, outer: Mapping[str, _Blocks]) -> Lengths:
    """What there is for ``loop`` to cover: a block of the finest loop around it that is coarser than it is."""
    coarser = [outer[v] for v in loop.outer if outer[v].step >= loop.limit] if loop.limit is not None else []
    return min(coarser, key=lambda blocks: blocks.step).lengths if coarser else ((extent, 1.0),)


@lru_cache(maxsize=4096)
def _runs(around: Lengths, limit: int | None, step: int) -> _Runs:
    """How a loop over at most ``limit`` of each of ``around`` runs."""
    if limit is None:
        lengths, width, full = around, None, 1.0
    else:
        lengths, width = _merged((min(length, limit), share) for length, share in around), -(-limit // step)
        full = dict(lengths).get(limit, 0.0)
    counts = [(-(-length // step), share) for length, share in lengths]
    trips = sum(share * count for count, share in counts)
    covered = trips if width is None else sum(share * covering(count, width) for count, share in counts)
    return _Runs(trips, width, full, covered, _Blocks(step, _blocks(lengths, step)))


def _blocks(lengths: Lengths, step: int) -> Lengths:
    """The blocks of ``step`` that ``lengths`` fall into, last ones shorter."""
    counts = [(length, share, -(-length // step)) for length, share in lengths]
    total = sum(share * count for _, share, count in counts)
    if not total:
        return ((0, 1.0),)
    whole = [(step, share * (count - 1) / total) for _, share, count in counts if count > 1]
    last = [(length - (count - 1) * step, share / total) for length, share, count in counts if count]
    return _merged([*whole, *last])


def _merged(pairs: Iterable[tuple[int, float]]) -> Lengths:
    shares: dict[int, float] = {}
    for length, share in pairs:
        shares[length] = shares.get(length, 0.0) + share
    return tuple(shares.items())
