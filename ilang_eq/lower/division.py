"""A program's work divided for threads: reductions in chunks where nothing else is parallel, long sums in blocks.

A kernel whose tasks are rows gets a second version for few and long rows, where the threads share each row: the loop
over rows is serial there, what is reduced in a row is cut into chunks, and what is independent in it is parallel. Which
version runs depends on the extents alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ilang_eq.lower.blocking import blocked
from ilang_eq.lower.chunks import chunked
from ilang_eq.lower.dependence import independent, innermost
from ilang_eq.lower.ir import Buffer, Extent, For, Kernel, Program, Statement
from ilang_eq.lower.walk import code

FEW = 8
"""Rows are few if there are less than this."""


@dataclass(frozen=True, slots=True)
class Apart:
    """The version of a kernel for few rows: fewer than ``FEW`` iterations of ``rows`` together, and a long row.

    A row is long if one of ``lengths`` holds: the extent has at least that many elements.
    """

    kernel: Kernel
    rows: tuple[For, ...]
    lengths: tuple[tuple[Extent, int], ...]


@dataclass(frozen=True, slots=True)
class Divided:
    """``program`` with its kernels' general version; ``apart`` has the other one for each, or None."""

    program: Program
    apart: tuple[Apart | None, ...]


def divided(program: Program) -> Divided:
    """``program``, divided; it computes the same up to the order of reductions."""
    division = _Division({buffer.name: buffer for buffer in program.buffers}, "_chunk")
    kernels = [Kernel(k.name, division.whole(k.body)) for k in program.kernels]
    apart = [_apart(k, division) for k in program.kernels]
    second = [a.kernel for a in apart if a is not None]
    whole = blocked(replace(program, kernels=(*kernels, *second), buffers=tuple(division.buffers.values())))
    rest = iter(whole.kernels[len(kernels) :])
    versions = tuple(None if a is None else replace(a, kernel=next(rest)) for a in apart)
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


def _apart(kernel: Kernel, division: _Division) -> Apart | None:
    """The version of ``kernel`` for few rows; None if it has none, or if no row of it can be shared."""
    match code(kernel.body):
        case (For(parallel=True) as outer,) if not innermost(outer):
            rows = _rows(outer)
        case _:
            return None
    if sum(loop.step > 1 for loop in rows) > 1:
        # tiles of a product: there are few only if it is small
        return None
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
    inner = tuple(body)
    for loop in reversed(rows):
        inner = (replace(loop, body=inner, parallel=False),)
    comments = [s for s in kernel.body if not isinstance(s, For)]
    return Apart(Kernel(f"{kernel.name}_few_rows", (*comments, *inner)), rows, tuple(lengths))


def _rows(outer: For) -> tuple[For, ...]:
    """``outer`` and the independent loops perfectly inside it that are not the innermost."""
    loops = [outer]
    while True:
        match code(loops[-1].body):
            case (For(limit=None, outer=()) as only,) if not innermost(only) and independent(only):
                loops.append(only)
            case _:
                return tuple(loops)
