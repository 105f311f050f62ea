"""The nest under construction: blocks, loops, and the instances that ride on them.

One *instance* is one place where a node is computed. Loops it shares with its readers are *fused*; the rest are its
own. Everything here is mutable and lives only while one kernel is lowered; ``program.py`` freezes it into loop IR.

Invariants:
  * a block's items run in order; the loop filled last is its block's ``open`` item, and new items go before it
  * ``instance.loops[axis][level]`` is the loop that runs that part of the axis, fused or own
  * ``instance.block`` is the innermost fused block: its own loops, initialisation and statement lie inside
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ilang_eq.lang.expr import Access, Expr, Literal
from ilang_eq.lang.graph import Source
from ilang_eq.lower.ir import Extent, Statement


@dataclass(slots=True, eq=False)
class Block:
    """The body of a loop, or of the kernel (``loop`` is None)."""

    loop: NestLoop | None
    items: list[NestLoop | Instance | Statement] = field(default_factory=list)
    open: NestLoop | None = None

    def path(self) -> Iterator[NestLoop]:
        """The loops around this block, from the inside out."""
        loop = self.loop
        while loop is not None:
            yield loop
            loop = loop.parent.loop

    def inside(self, loop: NestLoop | None) -> bool:
        """Whether ``loop`` is around this block."""
        around = self.loop
        while around is not None and around is not loop:
            around = around.parent.loop
        return around is not None

    def within(self, other: Block) -> bool:
        """Whether this block is ``other`` or nested in it."""
        return self is other or other.loop is None or self.inside(other.loop)

    def add(self, item: NestLoop | Instance | Statement) -> None:
        """Append ``item``, but before the loop that is still being filled."""
        self.items.insert(self.end(), item)

    def end(self) -> int:
        """Where the next item goes."""
        return len(self.items) if self.open is None else self.items.index(self.open)

    def holder(self, block: Block) -> NestLoop | None:
        """The item of this block that contains ``block``; None if that is this block itself."""
        for loop in block.path():
            if loop.parent is self:
                return loop
        return None


@dataclass(slots=True, eq=False)
class NestLoop:
    """A loop over one part of an axis, inside ``depth`` others.

    ``riders`` are the (instance, axis) pairs that use it, the owner first.
    """

    variable: str
    extent: Extent
    step: int
    limit: int | None
    level: int
    parent: Block
    riders: list[tuple[Instance, str]]
    filling: bool = False
    body: Block = field(init=False)
    depth: int = field(init=False)

    def __post_init__(self) -> None:
        self.body = Block(self)
        self.depth = 0 if self.parent.loop is None else self.parent.loop.depth + 1

    @property
    def owner(self) -> Instance:
        """The instance the loop was made for."""
        return self.riders[0][0]


@dataclass(slots=True, eq=False)
class ReadOf:
    """One operand of an instance: where its elements come from, and at which site, if they are staged."""

    operand: Access | Literal
    source: Source
    producer: Instance | None = None
    site: Block | None = None


@dataclass(slots=True, eq=False)
class Instance:
    """A node computed at one place of a kernel.

    ``home`` is the block of its statement, once that is known. ``start`` is the outermost loop of a reduced axis then:
    the reduction starts afresh just before it.
    """

    node: int
    expr: Expr
    block: Block
    loops: dict[str, list[NestLoop | None]]
    reads: list[ReadOf] = field(default_factory=list)
    home: Block | None = None
    start: NestLoop | None = None

    def settle(self, home: Block) -> None:
        """Put the statement into ``home``, after all loops have been opened."""
        self.home = home
        reduced = [loop for axis in self.expr.reduced for loop in self.loops[axis] if loop is not None]
        self.start = min(reduced, key=lambda loop: loop.depth, default=None)

    def rides(self) -> list[NestLoop]:
        """The loops of this instance, fused and own, in no particular order."""
        return [loop for parts in self.loops.values() for loop in parts if loop is not None]

    @property
    def running(self) -> bool:
        """Whether readers in ``block`` see a reduction that is still under way."""
        return self.block.inside(self.start)

    @property
    def storage(self) -> Block:
        """The block whose iterations each have a value of their own."""
        start = self.start
        return start.parent if start is not None and self.running else self.block
