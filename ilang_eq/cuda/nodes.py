"""Bound loops: loop IR plus which threads run what. ``binding.py`` makes them, ``statements.py`` prints them.

Invariants:
  * every thread of a block makes the same trips through every ``Sweep``: barriers and shuffles may stand anywhere
  * a ``Sweep`` with a ``dim`` encloses none with the same ``dim``, and its iterations are independent
  * a ``Combine`` stands outside the loops that made its shares
  * a ``Contract`` stands in no ``Sweep`` with a ``dim``: all lanes of a warp run it together (``check_contract``)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal as Choice

from ilang_eq.lower.ir import Accumulate, Assign, Buffer, Comment, Declare, Extent, For, Load

Dim = Choice["x", "y"]
"""A direction of the threads of a block; neighbours along x are neighbours in a warp."""

DIMS: tuple[Dim, ...] = ("x", "y")

REGISTER_FLOATS = 128
"""The most floats of one buffer that a thread keeps."""
WARP = 32
"""Threads that run together."""
SWIZZLED = 32
"""Floats of a row in shared memory that is as long as all banks: its runs of four may change places by its number."""
GROUP_COLUMNS, MOST_FRESH = 16, 64
"""Groups of warps take multiples of so many columns; sums that are of one product alone have so many at most."""
RUN, TOGETHER = 4, 8
"""Floats that a thread moves at once at most, and how many threads do so together: as much as all banks of shared
memory take."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a loop covers, whatever its variable is called: loops over the same part are shared out alike."""

    extent: Extent
    limit: int | None
    outer: tuple[str, ...]
    step: int = 1


def part_of(loop: For) -> Part | None:
    """The part of an axis that threads may share out: element by element, or all tiles that nothing is inside of."""
    alone = loop.limit is None and not any(isinstance(s, For) for s in loop.body)
    return Part(loop.extent, loop.limit, loop.outer, loop.step) if loop.step == 1 or alone else None


@dataclass(frozen=True, slots=True)
class Sweep:
    """A loop. Thread t of ``dim`` runs runs of ``width`` positions from t·width, (t + threads)·width, … on.

    Every thread runs all of them if ``dim`` is None.
    """

    source: For
    dim: Dim | None
    body: tuple[Node, ...]
    width: int = 1

    @property
    def ahead(self) -> tuple[Copy, ...]:
        """The copies for the next iteration that run during each."""
        return tuple(node for node in self.body if isinstance(node, Copy) and node.ahead)


@dataclass(frozen=True, slots=True)
class Copy:
    """A tile of memory to a local: thread t of the block takes runs t, t + threads, … of ``width`` elements.

    Args:
        loops: over the elements of the tile, to constant limits; the last one runs over neighbours in memory.
        update: what is done for each of them.
        width: how many neighbours one thread takes together; it divides the last limit.
        ahead: whether it runs while the iteration before works (``ahead.py``).
    """

    loops: tuple[For, ...]
    update: Assign
    width: int
    ahead: bool = False

    @property
    def target(self) -> Load:
        """What is written."""
        return self.update.target

    @property
    def runs(self) -> int:
        """How many runs there are for the threads to share."""
        return prod(loop.limit or 1 for loop in self.loops) // self.width

    def rows_together(self, width: int) -> int:
        """How many rows the threads write together that move runs of ``width``; 1 if it does not matter which.

        Rows lie an odd multiple of 16 bytes apart: neighbours that are shorter than all banks would share some, but
        not those that are as many rows apart as a row has runs.
        """
        runs = (self.loops[-1].limit or 0) // width
        even = len(self.loops) > 1 and (self.loops[-2].limit or 0) % TOGETHER == 0
        return TOGETHER // runs if width == RUN and even and 1 < runs < TOGETHER and TOGETHER % runs == 0 else 1

    def position(self, run: int) -> dict[str, int]:
        """The position of every loop where run number ``run`` begins."""
        left, found = run * self.width, dict[str, int]()
        for loop in reversed(self.loops):
            left, found[loop.variable] = divmod(left, loop.limit or 1)
        if (rows := self.rows_together(self.width)) > 1:
            eights, row = divmod(found[self.loops[-2].variable], TOGETHER)
            found[self.loops[-2].variable] = eights * TOGETHER + row % rows * (TOGETHER // rows) + row // rows
        return found


@dataclass(frozen=True, slots=True)
class Combine:
    """target ⊕= the shares of all threads along ``dim``; every one of them gets the result."""

    target: Load
    op: str
    share: Load
    dim: Dim


@dataclass(frozen=True, slots=True)
class Contract:
    """target[row][column] += Σ left[row][depth] · right[column][depth] over a tile, by the tensor cores of each warp.

    Rows are shared out along y, columns along x two at a time: that is how the cores leave their sums in registers.

    Args:
        target: of local sums.
        left, right: factors from locals; indices may be in any order.
        rows, columns, depth: the loops over the tile, without their bodies.
        parts: how many tf32 numbers each factor is taken as the sum of.
        handed: whether ``left`` is shared out as sums are, its depth like columns: it need not leave the registers.
        grouped: whether four warps take it together, where a device has instructions for that: ``right`` is read from
            shared memory then, in rows of ``SWIZZLED`` depths.
        prepared: where threads put, for a group, what ``right`` has not got in such rows: if its rows are other ones,
            tiles of the first parts; then tiles of the second ones.
    """

    target: Load
    left: Load
    right: Load
    rows: For
    columns: For
    depth: For
    parts: int = 1
    handed: bool = False
    grouped: bool = False
    prepared: Load | None = None

    @property
    def loops(self) -> tuple[For, ...]:
        """All of them."""
        return (self.rows, self.columns, self.depth)

    @property
    def in_chunks(self) -> bool:
        """Whether a group takes sixteen rows of each warp and some columns at a time: factors of two parts."""
        return self.grouped and self.parts == 2

    @property
    def turned(self) -> bool:
        """Whether rows of ``right`` are not depths at one column, or not as many as groups read."""
        along = self.right.indices[-1].variables == (self.depth.variable,)
        return not along or self.depth.limit != SWIZZLED

    @property
    def fresh_columns(self) -> int:
        """The columns whose sums of one product a group keeps apart from those before, where factors have two parts."""
        columns = self.columns.limit or 0
        sizes = range(GROUP_COLUMNS, MOST_FRESH + 1, GROUP_COLUMNS)
        return max(n for n in sizes if columns % n == 0)

    @property
    def tiles(self) -> int:
        """How many tiles of ``SWIZZLED`` depths are prepared for a group."""
        return (self.depth.limit or 0) // SWIZZLED * (self.parts if self.turned else self.parts - 1)

    def pairs(self, block: Block) -> int:
        """Pairs of rows that a thread has."""
        return (self.rows.limit or 0) // (2 * block.y)

    def trips(self, block: Block) -> int:
        """Pairs of columns that a thread has."""
        return (self.columns.limit or 0) // (2 * block.x)

    def fragments(self, block: Block) -> int:
        """Elements of the factors that a thread has at a time: 4 for a pair of rows, 2 for one of columns, of 8 depths;
        of a group's, those of its rows and of all depths."""
        if self.grouped:
            # in chunks, those of a pair of rows, and the sums of its products
            whole = self.pairs(block) * (self.depth.limit or 0) // 2
            return SWIZZLED + self.fresh_columns // 2 if self.in_chunks else whole
        return self.parts * (4 * self.pairs(block) + 2 * self.trips(block))


@dataclass(frozen=True, slots=True)
class Barrier:
    """All threads of the block wait for each other, and see what the others have written."""


Leaf = Assign | Accumulate | Combine | Copy | Contract
Node = Sweep | Leaf | Declare | Comment | Barrier


@dataclass(frozen=True, slots=True)
class Block:
    """The threads of a block. ``across`` neighbours along x share a warp, if there are as many."""

    x: int
    y: int
    across: int = WARP

    @property
    def threads(self) -> int:
        """How many there are."""
        return self.x * self.y

    def along(self, dim: Dim) -> int:
        """How many there are in one direction."""
        return self.x if dim == "x" else self.y

    @property
    def lanes(self) -> int:
        """How many neighbours along x share a warp."""
        return min(self.x, self.across)

    @property
    def warps_across(self) -> int:
        """How many warps there are along x."""
        return self.x // self.lanes

    def position(self, dim: Dim, lane: int) -> int:
        """Where a lane of the first warp is along ``dim``."""
        return lane % self.lanes if dim == "x" else lane // self.lanes


@dataclass(frozen=True, slots=True)
class Launch:
    """One CUDA kernel: ``grid`` loops make up the tasks of its blocks, outermost first; none is one task.

    ``buffers`` are those that the binding adds; of ``shares``, each thread along the direction has its own.
    """

    name: str
    grid: tuple[For, ...]
    block: Block
    body: tuple[Node, ...]
    buffers: tuple[Buffer, ...]
    shares: Mapping[str, Dim]
