"""Long sums in blocks, so that rounding errors do not grow with the length.

before →  for j: s += x[j]
after  →  for j_block (step 4096): s_block = 0;  for j < 4096: s_block += x[j_block + j];  s += s_block

Blocked are the loops of run-time length that accumulate into a number, or into one row of constant length (some columns
of a matrix). A tile of two dimensions is left as it is: that is a matrix product, whose schedule splits the reduction
where the caches want it split.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ilang_eq.lang.ops import OPS
from ilang_eq.lower.dependence import REDUCTIONS, shared
from ilang_eq.lower.ir import (
    Accumulate,
    Assign,
    Buffer,
    Constant,
    Declare,
    For,
    Index,
    Kernel,
    Load,
    Program,
    Statement,
)
from ilang_eq.lower.walk import mentions, places, walk
from ilang_eq.lower.within import Enclosed, deepened, enclosed, moved, nested

BLOCK = 4096
"""Elements summed into one number: 64 for each of the lanes that a backend keeps."""
ROW_BLOCK = 512
"""Rows summed into one row, each of whose elements is a chain of its own."""
FEWEST = 64
"""The fewest steps of a loop that make a block."""
_ROUNDED = frozenset({"add", "mul"})


@dataclass(frozen=True, slots=True)
class _Sum:
    """A reduction; ``row`` are the loops its target moves with. ``chains``: one for each place of the row."""

    statement: Accumulate
    row: tuple[For, ...]
    chains: bool


def blocked(program: Program) -> Program:
    """``program`` with its long sums in blocks."""
    blocking = _Blocking({buffer.name for buffer in program.buffers})
    kernels = tuple(Kernel(k.name, blocking.statements(k.body)) for k in program.kernels)
    return replace(program, kernels=kernels, buffers=(*program.buffers, *blocking.buffers))


@dataclass(slots=True)
class _Blocking:
    """Rewrites statements; ``buffers`` collects the locals that this takes."""

    taken: set[str]
    buffers: list[Buffer] = field(default_factory=list)

    def statements(self, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        """``statements`` with their long sums in blocks."""
        return tuple(self._loop(s) if isinstance(s, For) else s for s in statements)

    def _loop(self, loop: For) -> For:
        sums = _sums(loop)
        length = _length(loop, sums)
        if length is None:
            return replace(loop, body=self.statements(loop.body))
        block = f"{loop.variable}_block"
        inner: Statement = deepened(replace(loop, limit=length, outer=(*loop.outer, block)), loop.variable, block)
        before: list[Statement] = []
        after: list[Statement] = []
        for total in sums:
            target, op = total.statement.target, total.statement.op
            part = Load(self._local(total), tuple(Index((loop.variable,)) for loop in total.row))
            inner = moved(inner, _redirection(target, part))
            before += [Declare(part.buffer), *nested(total.row, Assign(part, Constant(OPS[op].identity or 0.0)))]
            after += nested(total.row, Accumulate(target, op, part))
        return replace(loop, variable=block, step=length, body=(*before, inner, *after))

    def _local(self, total: _Sum) -> str:
        name = f"{total.statement.target.buffer}_block"
        unique = next(n for k in range(len(self.taken) + 1) if (n := f"{name}{k or ''}") not in self.taken)
        self.taken.add(unique)
        self.buffers.append(Buffer(unique, tuple(loop.limit or 0 for loop in total.row), "local"))
        return unique


def _redirection(old: Load, new: Load) -> Callable[[Load], Load]:
    return lambda place: new if place == old else place


def _length(loop: For, sums: Sequence[_Sum]) -> int | None:
    """The length of a block of ``loop``; None if it is not to be cut."""
    length = max(ROW_BLOCK if any(s.chains for s in sums) else BLOCK, FEWEST * loop.step)
    long = loop.limit is None or (loop.limit > length and loop.limit % length == 0)
    return length if sums and long and length % loop.step == 0 else None


def _sums(loop: For) -> tuple[_Sum, ...]:
    """What ``loop`` sums up; nothing if it does more than accumulate, or if blocks would not do."""
    inside = [s for s in walk(loop.body) if isinstance(s, For)]
    if loop.parallel or any(inner.limit is None for inner in inside):
        return ()
    names = set(shared(loop))
    found = [e for e in enclosed(loop.body) if e.statement.target.buffer in names]
    if len([place for place in places(loop.body) if place.buffer in names]) != len(names) or len(found) != len(names):
        return ()
    if any(mentions(e.statement.target, loop.variable) for e in found):
        return ()
    sums = [_sum(e) for e in found]
    if any({x.variable for x in inside} & set(row.outer) for s in sums if s is not None for row in s.row):
        return ()
    return tuple(s for s in sums if s is not None and s.statement.op in _ROUNDED) if None not in sums else ()


def _sum(update: Enclosed) -> _Sum | None:
    """``update`` as the accumulation into a number or a plain row; None for anything else."""
    statement, row = update.statement, update.moving().around
    if not isinstance(statement, Accumulate) or statement.op not in REDUCTIONS or len(row) > 1:
        return None
    moving = [i for i in statement.target.indices if any(loop.variable in i.variables for loop in row)]
    if any(loop.step != 1 for loop in row) or any(index.divisor != 1 for index in moving):
        return None
    return _Sum(statement, row, bool(row) and update.around[-1] == row[-1])
