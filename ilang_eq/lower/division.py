"""A program's work divided for threads: reductions in chunks where nothing else is parallel, long sums in blocks.

A kernel whose tasks are rows gets a second version for few rows, where the threads share each row: the loop over rows
is serial there, and what is independent in it is parallel. What is reduced in a row is cut into chunks if the row is
long. But a product that is summed block by block, a panel at a time, has tiles to share in each block: if these are
many, a third version shares them, and nothing is cut. Which version runs depends on the extents alone, but for the
third, which adds in the order of the first: one thread runs that instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ilang_eq.lower.blocking import blocked
from ilang_eq.lower.chunks import chunked
from ilang_eq.lower.dependence import independent, innermost
from ilang_eq.lower.ir import Accumulate, Buffer, Comment, Declare, Extent, For, Kernel, Program, Statement
from ilang_eq.lower.walk import code, walk

FEW = 8
"""Rows are few if there are less than this."""
EVEN = 16
"""Rows are even if the busiest thread has no more than one part in so many above its share. Threads that share a panel
read half of it out of each other's caches: on Emerald Rapids 1024³ takes 1.075 of the time that it takes with a panel
for each, in panels of 128 and of 256 columns, and two threads have four of the latter."""
TILED_UPDATES = 250_000
"""Updates of elements in the tiles of a block that are worth sharing: 5 µs or more of one core."""


@dataclass(frozen=True, slots=True)
class Apart:
    """A version of a kernel for some extents.

    Attributes:
        few: loops of which there must be fewer than ``FEW`` iterations together.
        tiles: loops one of which must have as many and enough to do, if there are any.
        long: extents one of which must have so many elements at least, if there are any.
    """

    kernel: Kernel
    few: tuple[For, ...]
    tiles: tuple[For, ...] = ()
    long: tuple[tuple[Extent, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Divided:
    """``program`` with its kernels' general version; ``apart`` has the others of each, the first that fits to run."""

    program: Program
    apart: tuple[tuple[Apart, ...], ...]


def divided(program: Program) -> Divided:
    """``program``, divided; it computes the same up to the order of reductions."""
    division = _Division({buffer.name: buffer for buffer in program.buffers}, "_chunk")
    kernels = [Kernel(k.name, division.whole(k.body)) for k in program.kernels]
    apart = [_apart(k, division) for k in program.kernels]
    others = [version.kernel for versions in apart for version in versions]
    whole = blocked(replace(program, kernels=(*kernels, *others), buffers=tuple(division.buffers.values())))
    rest = iter(whole.kernels[len(kernels) :])
    versions = tuple(tuple(replace(version, kernel=next(rest)) for version in versions) for versions in apart)
    return Divided(replace(whole, kernels=whole.kernels[: len(kernels)]), versions)


@dataclass(slots=True)
class _Division:
    """Cuts loops; ``buffers`` are those of the program and those that this took, ``suffix`` ends the latter's names."""

    buffers: dict[str, Buffer]
    suffix: str
    cuts: int = 0

    def whole(self, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        """The body of a kernel, its serial reductions in chunks."""
        divided: list[Statement] = []
        for statement in statements:
            found = None if not isinstance(statement, For) or statement.parallel else self.cut(statement, ())
            divided += [statement] if found is None else found[0]
        return tuple(divided)

    def cut(self, loop: For, around: Sequence[For]) -> tuple[tuple[Statement, ...], int] | None:
        """``loop`` in chunks of the length returned, or None."""
        self.cuts += 1
        found = chunked(loop, around, self.buffers, f"{self.suffix}{self.cuts}")
        if found is None:
            return None
        self.buffers |= {buffer.name: buffer for buffer in found.buffers}
        return found.statements, found.length


def _apart(kernel: Kernel, division: _Division) -> tuple[Apart, ...]:
    """The versions of ``kernel`` for few rows; none if no row of it can be shared."""
    match code(kernel.body):
        case (For(parallel=True) as outer,) if not innermost(outer):
            rows = rows_of(outer)
        case _:
            return ()
    if sum(loop.step > 1 for loop in rows) > 1:
        # tiles of a product: there are few only if it is small
        return ()
    versions = (_sharing_tiles(kernel, rows), _sharing_chunks(kernel, rows, division))
    return tuple(version for version in versions if version is not None)


def _sharing_tiles(kernel: Kernel, rows: Sequence[For]) -> Apart | None:
    """The version in which threads share the tiles that a row has of another axis; None if it reduces anything else."""
    tiles: list[For] = []

    def shared(statements: Sequence[Statement]) -> tuple[Statement, ...] | None:
        found: list[Statement] = []
        for statement in statements:
            match statement:
                case For() if independent(statement):
                    if _tiled(statement):
                        tiles.append(statement)
                    elif _reduces(statement):
                        return None
                    found.append(replace(statement, parallel=True))
                case For(limit=None, outer=()):
                    inner = shared(statement.body)
                    if inner is None:
                        return None
                    found.append(replace(statement, body=inner))
                case Declare() | Comment():
                    found.append(statement)
                case _:
                    return None
        return tuple(found)

    body = shared(rows[-1].body)
    if body is None or not tiles:
        return None
    return Apart(_serial(kernel, rows, body, "shared_tiles"), tuple(rows), tiles=tuple(tiles))


def _tiled(loop: For) -> bool:
    """Whether it goes through a whole axis in steps of a tile."""
    return loop.limit is None and not loop.outer and loop.step > 1 and not innermost(loop)


def _reduces(loop: For) -> bool:
    return any(isinstance(s, Accumulate) for s in walk(loop.body))


def _sharing_chunks(kernel: Kernel, rows: Sequence[For], division: _Division) -> Apart | None:
    """The version in which threads share the chunks of what a row reduces; None if nothing can be cut."""
    body: list[Statement] = []
    lengths: dict[tuple[Extent, int], None] = {}
    for statement in rows[-1].body:
        if not isinstance(statement, For) or statement.limit is not None:
            body.append(statement)
            continue
        found = None if independent(statement) else division.cut(statement, rows)
        if found is not None:
            lengths[statement.extent, 2 * found[1]] = None
            body += found[0]
        else:
            body.append(replace(statement, parallel=independent(statement)))
    if not lengths:
        return None
    return Apart(_serial(kernel, rows, body, "few_rows"), tuple(rows), long=tuple(lengths))


def _serial(kernel: Kernel, rows: Sequence[For], body: Sequence[Statement], suffix: str) -> Kernel:
    """``kernel`` with its ``rows`` one after another and ``body`` in them."""
    inner = tuple(body)
    for loop in reversed(rows):
        inner = (replace(loop, body=inner, parallel=False),)
    comments = [s for s in kernel.body if not isinstance(s, For)]
    return Kernel(f"{kernel.name}_{suffix}", (*comments, *inner))


def rows_of(outer: For) -> tuple[For, ...]:
    """``outer`` and the independent loops perfectly inside it that are not the innermost."""
    loops = [outer]
    while True:
        match code(loops[-1].body):
            case (For(limit=None, outer=()) as only,) if not innermost(only) and independent(only):
                loops.append(only)
            case _:
                return tuple(loops)
