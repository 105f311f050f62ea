"""Rows in the place of what becomes of them: a value of its own memory moves to where its last reader writes.

before →  for i: { float e[J]; for j: e[j] = exp(x[i][j]);  for j: s += e[j];  for j: y[i][j] = e[j] / s }
after  →  for i: { for j: y[i][j] = exp(x[i][j]);  for j: s += y[i][j];  for j: y[i][j] = y[i][j] / s }

Rows are as long as the caller's arrays: with one less, the nearest caches have room for the others, and the lines that
are written in the end come while the row is computed, not after. Tiles, whose dimensions are constant, are near anyway
and stay where they are.

This is for processors with caches: on a GPU, rows are in shared memory, and what becomes of them is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain

from ilang_eq.lower.ir import Accumulate, Assign, Buffer, Declare, Extent, For, Index, Kernel, Load, Program, Statement
from ilang_eq.lower.walk import declared_in, mentions, places, touches, walk
from ilang_eq.lower.within import Enclosed, enclosed, moved


def in_place(program: Program) -> Program:
    """``program`` with rows in the place of what becomes of them, where that has one."""
    buffers = {buffer.name: buffer for buffer in program.buffers}
    if not any(buffer.role == "local" and _is_row(buffer) for buffer in program.buffers):
        return program
    kernels = tuple(Kernel(kernel.name, _settled(kernel.body, buffers)) for kernel in program.kernels)
    if all(new.body is old.body for new, old in zip(kernels, program.kernels, strict=True)):
        return program
    left = {name for kernel in kernels for name in declared_in(kernel.body)}
    kept = tuple(buffer for buffer in program.buffers if buffer.role != "local" or buffer.name in left)
    return replace(program, buffers=kept, kernels=kernels)


@dataclass(frozen=True, slots=True)
class _Home:
    """Where a row moves.

    Args:
        start: where in its target the row of an iteration of the loops around begins.
        dims: the target's dimensions that are those of the row, in the row's order.
    """

    start: Load
    dims: tuple[int, ...]

    def place(self, old: Load) -> Load:
        """``old``, a place in the row, in the target."""
        indices = list(self.start.indices)
        for dim, index in zip(self.dims, old.indices, strict=True):
            indices[dim] = Index((*indices[dim].variables, *index.variables))
        return Load(self.start.buffer, tuple(indices))


def _settled(body: tuple[Statement, ...], buffers: Mapping[str, Buffer]) -> tuple[Statement, ...]:
    """The body of a kernel, the last row first: what is computed from others may be at home before them."""
    for name in reversed(declared_in(body)):
        if _is_row(buffers[name]):
            home = _home(name, body, buffers)
            body = body if home is None else _at_home(body, name, home)
    return body


def _is_row(buffer: Buffer) -> bool:
    return any(isinstance(size, Extent) for size in buffer.dims)


def _home(name: str, body: Sequence[Statement], buffers: Mapping[str, Buffer]) -> _Home | None:
    """Where the row ``name`` may move; None if it has to stay.

    The loops that use it last have to write one element of a tensor for each of its own, in the same step and after
    they have read it, and nothing else may have touched that tensor up to then.
    """
    block = _block(name, body)
    last = next(n for n in reversed(range(len(block))) if touches(block[n], name))
    final = list(enclosed(block[last : last + 1]))
    writers = [use for use in final if buffers[use.statement.target.buffer].role in ("output", "workspace")]
    if len(writers) != 1 or not isinstance(writers[0].statement, Assign):
        return None
    uses, readers = _touching(enclosed(block[:last]), name), _touching(final, name)
    if any(isinstance(use.statement, Accumulate) and use.statement.target.buffer == name for use in uses):
        return None
    (writer,) = writers
    target = writer.statement.target
    after = len(_touching(enclosed(block[last + 1 :]), target.buffer))
    alone = len(_touching(enclosed(body), target.buffer)) == 1 + after
    together = all(reader.around == writer.around for reader in readers)
    if not alone or not together or final.index(readers[-1]) > final.index(writer):
        return None
    home = _same_element(writer, {place for place in places([r.statement for r in readers]) if place.buffer == name})
    fits = home is not None and all(_fits(use, name, home, buffers[target.buffer]) for use in (*uses, *readers))
    return home if fits else None


def _block(name: str, body: Sequence[Statement]) -> Sequence[Statement]:
    """The block that declares ``name``."""
    inside = (s.body for s in walk(body) if isinstance(s, For))
    return next(block for block in chain((body,), inside) if Declare(name) in block)


def _touching(uses: Iterable[Enclosed], name: str) -> list[Enclosed]:
    return [use for use in uses if touches(use.statement, name)]


def _same_element(writer: Enclosed, reads: Set[Load]) -> _Home | None:
    """The home at which the element of the row that is read is the one that ``writer`` writes, once."""
    inside = {loop.variable for loop in writer.around}
    target = writer.statement.target
    if len(reads) != 1:
        return None
    (read,) = reads
    own = [frozenset(index.variables) & inside for index in target.indices]
    whole = all(index.divisor == 1 for index in (*target.indices, *read.indices))
    if not whole or not all(mentions(target, variable) for variable in inside):
        return None
    row = [frozenset(index.variables) for index in read.indices]
    if not all(row) or sorted(map(sorted, row)) != sorted(sorted(part) for part in own if part):
        return None
    dims = tuple(own.index(part) for part in row)
    if dims != tuple(range(len(own) - len(dims), len(own))):
        # neighbours in the row would not be neighbours there
        return None
    start = (Index(tuple(v for v in index.variables if v not in inside)) for index in target.indices)
    return _Home(Load(target.buffer, tuple(start)), dims)


def _fits(use: Enclosed, name: str, home: _Home, target: Buffer) -> bool:
    """Whether the loops of ``use`` that go through the row end where the target's dimensions do."""
    loops = {loop.variable: loop for loop in use.around}
    for place in places([use.statement]):
        if place.buffer != name:
            continue
        for dim, index in zip(home.dims, place.indices, strict=True):
            own = [loop for variable, loop in loops.items() if variable in index.variables]
            position = {*home.start.indices[dim].variables, *index.variables}
            ends = own and {*own[-1].outer, own[-1].variable} == position and own[-1].extent == target.dims[dim]
            if index.divisor != 1 or len(own) < len(index.variables) or not ends:
                return False
    return True


def _at_home(body: Sequence[Statement], name: str, home: _Home) -> tuple[Statement, ...]:
    """``body`` without the row ``name``, which is at ``home``."""

    def place(old: Load) -> Load:
        return home.place(old) if old.buffer == name else old

    left = (s for s in body if s != Declare(name))
    return tuple(replace(s, body=_at_home(s.body, name, home)) if isinstance(s, For) else moved(s, place) for s in left)
