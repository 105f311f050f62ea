"""Reductions cut into chunks that threads take, where a kernel has nothing else for them to do.

before →  for j: s ⊕= f(j)
after  →  parallel for j_chunk (step 32768): s_chunk[j_chunk] = 0;  for j < 32768: s_chunk[j_chunk] ⊕= f(j_chunk + j)
          for j_chunk: s ⊕= s_chunk[j_chunk]

The length of a chunk is a constant, and the chunks are put together in their order: the result does not depend on the
number of threads. An online reduction is cut alike: a chunk has a statistic of its own (a maximum m), and accumulators
repaired for that one; two partial results are brought to a common statistic by the factors that the loop itself uses,
e^(rate·(old − new)).

Not cut is a loop that does anything else, or whose partial results would not be small beside what it reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from ilang_eq.lang.ops import OPS
from ilang_eq.lower.ir import (
    Accumulate,
    Apply,
    Assign,
    Buffer,
    CeilDiv,
    Constant,
    Declare,
    For,
    Index,
    Load,
    Size,
    Statement,
)
from ilang_eq.lower.states import Carried, State, carried
from ilang_eq.lower.walk import code, loads, mentions, places, walk
from ilang_eq.lower.within import deepened, enclosed, moved, nested

CHUNK = 32768
"""Elements of a chunk: enough to be worth handing to a thread, and to a cache."""
ROWS = 64
"""Rows of a chunk of whole rows."""
ROW = 16384
"""Elements of one row that are in a chunk of several."""
FEWEST = 256
"""The fewest steps of a loop with partial results of their own size."""


@dataclass(frozen=True, slots=True)
class Chunked:
    """A loop in chunks of ``length``, and the locals that it takes: first of all the ``results`` of the chunks."""

    statements: tuple[Statement, ...]
    results: tuple[Buffer, ...]
    others: tuple[Buffer, ...]
    length: int

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """All locals."""
        return (*self.results, *self.others)


@dataclass(frozen=True, slots=True)
class _Part:
    """Partial results of one state: indexed by ``chunk``, and by its own indices less the variables ``around``."""

    state: State
    buffer: Buffer
    chunk: tuple[Index, ...]
    around: frozenset[str]

    def place(self, load: Load) -> Load:
        """``load`` of the state as the same element of a chunk's result."""
        if load.buffer != self.state.target.buffer:
            return load
        return Load(self.buffer.name, (*self.chunk, *self._left(load)))

    def local(self, name: str, load: Load) -> Load:
        """The place of ``load`` of the state in a buffer for one chunk."""
        return Load(name, self._left(load))

    def one(self, name: str) -> Buffer:
        """A buffer for one chunk."""
        return Buffer(name, self.buffer.dims[len(self.chunk) :], "local")

    def _left(self, load: Load) -> tuple[Index, ...]:
        kept = (tuple(v for v in index.variables if v not in self.around) for index in load.indices)
        return tuple(
            Index(k, i.divisor) for k, i in zip(kept, load.indices, strict=True) if k or not self._inside(i.variables)
        )

    def _inside(self, variables: Sequence[str]) -> bool:
        return bool(variables) and all(v in self.around for v in variables)


def chunked(loop: For, around: Sequence[For], buffers: Mapping[str, Buffer], suffix: str) -> Chunked | None:
    """``loop`` in chunks; None if it cannot or should not be cut.

    Args:
        loop: a serial loop of run-time length.
        around: the loops around it.
        buffers: those of the program, by name.
        suffix: for the names of new locals; no other buffer's name ends in it.
    """
    state = carried(loop) if loop.limit is None and not loop.outer else None
    if state is None or not state.states or not all(_small(s, loop) for s in state.states):
        return None
    cuts = _cuts(loop, state)
    variables = frozenset(x.variable for x in around)
    if not all(_bounded(x, variables) for x in state.states):
        return None
    parts = [_part(s, loop, cuts, variables, buffers, suffix) for s in state.states]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return None
    merge, locals_ = _merge(cuts, state, found, suffix)
    declared = [Declare(part.buffer.name) for part in found]
    body = _chunks(loop, cuts, found)
    return Chunked((*declared, *body, *merge), tuple(part.buffer for part in found), tuple(locals_), cuts[0][1])


def _cuts(loop: For, state: Carried) -> tuple[tuple[For, int], ...]:
    """The loops to cut, with the length of a chunk: ``loop``, and the rows inside it if it only runs over them."""
    inside = [s for s in walk(loop.body) if isinstance(s, For)]
    match code(loop.body):
        case (For(limit=None, outer=()) as row,) if (
            inside == [row] and not state.factors and loop.step == row.step == 1
        ):
            if not any(mentions(s.target, row.variable) for s in state.states):
                return (loop, ROWS), (row, ROW)
        case _:
            pass
    if any(inner.limit is None for inner in inside):
        length = FEWEST
    else:
        elements = max((prod(x.limit or 1 for x in e.around) for e in enclosed(loop.body)), default=1)
        length = max(CHUNK * loop.step // elements, FEWEST)
    return ((loop, -(-length // loop.step) * loop.step),)


def _bounded(state: State, around: frozenset[str]) -> bool:
    """Whether the loops over the elements of ``state`` can stand right inside the loops ``around``."""
    known = around | {x.variable for x in state.loops}
    named = [index.variables for index in state.statistic.indices] if state.statistic is not None else []
    return all(known >= set(variables) for variables in (*(x.outer for x in state.loops), *named))


def _small(state: State, loop: For) -> bool:
    """Whether the loop reads something along all that the state runs over, and along itself."""
    needed = {x.extent for x in state.loops if x.limit is None}
    if not needed:
        return True
    for update in enclosed(loop.body):
        for load in loads(update.statement.value):
            along = {x.extent for x in update.around if mentions(load, x.variable)}
            inner = {x.variable for x in update.around if loop.variable in x.outer}
            if needed <= along and any(mentions(load, v) for v in (loop.variable, *inner)):
                return True
    return False


def _part(
    state: State,
    loop: For,
    cuts: Sequence[tuple[For, int]],
    around: frozenset[str],
    buffers: Mapping[str, Buffer],
    suffix: str,
) -> _Part | None:
    """Where the chunks keep their results for ``state``; None where its indices are beyond telling apart."""
    target = state.target
    touched = [place for place in places(loop.body) if place.buffer == target.buffer]
    dims: list[Size] = [CeilDiv(cut.extent, length) for cut, length in cuts]
    for d, (index, size) in enumerate(zip(target.indices, buffers[target.buffer].dims, strict=True)):
        outside = {frozenset(place.indices[d].variables) & around for place in touched}
        if len(outside) > 1:
            return None
        kept = [x for x in state.loops if x.variable in index.variables]
        if not next(iter(outside)):
            dims.append(size)
        elif kept:
            limits = [x.limit - x.step for x in kept if x.limit is not None]
            if len(limits) < len(kept) or index.divisor != 1:
                return None
            dims.append(sum(limits) + 1)
    chunk = tuple(Index((_name(cut),), length) for cut, length in cuts)
    return _Part(state, Buffer(f"{target.buffer}{suffix}", tuple(dims), "local"), chunk, around)


def _name(cut: For) -> str:
    return f"{cut.variable}_chunk"


def _over_chunks(cuts: Sequence[tuple[For, int]], body: Sequence[Statement], parallel: bool) -> tuple[Statement, ...]:
    inner = tuple(body)
    for cut, length in reversed(cuts):
        inner = (replace(cut, variable=_name(cut), step=length, body=inner, parallel=parallel, reduces=not parallel),)
    return inner


def _chunks(loop: For, cuts: Sequence[tuple[For, int]], parts: Sequence[_Part]) -> tuple[Statement, ...]:
    """Every chunk on its own."""
    inner: Statement = loop
    for cut, length in cuts:
        inner = _cut(inner, cut.variable, _name(cut), length)
    start: list[Statement] = []
    for part in parts:
        inner = moved(inner, part.place)
        identity = Constant(OPS[part.state.op].identity or 0.0)
        start += nested(part.state.loops, Assign(part.place(part.state.target), identity))
    return _over_chunks(cuts, [*start, inner], parallel=True)


def _cut(statement: Statement, variable: str, chunk: str, length: int) -> Statement:
    """The loop over ``variable``, which ``statement`` is or contains, within one chunk."""
    if not isinstance(statement, For):
        return statement
    if statement.variable == variable:
        return deepened(replace(statement, limit=length, outer=(chunk,), parallel=False), variable, chunk)
    return replace(statement, body=tuple(_cut(inner, variable, chunk, length) for inner in statement.body))


def _merge(
    cuts: Sequence[tuple[For, int]],
    state: Carried,
    parts: Sequence[_Part],
    suffix: str,
) -> tuple[tuple[Statement, ...], tuple[Buffer, ...]]:
    """The chunks' results, put together in their order."""
    part_of = {part.state.target.buffer: part for part in parts}
    statistics = {factor.statistic.buffer: factor for factor in state.factors}
    body: list[Statement] = []
    locals_: list[Buffer] = []
    for name, factor in statistics.items():
        part = part_of[name]
        target, theirs = part.state.target, part.place(part.state.target)
        locals_ += [part.one(which) for which in _factors(name, suffix)]
        kept, new = (part.local(which, target) for which in _factors(name, suffix))
        body += [Declare(which) for which in _factors(name, suffix)]
        body += nested(
            part.state.loops,
            Assign(kept, target),
            Accumulate(target, part.state.op, theirs),
            Assign(new, Apply("shift_factor", (factor.rate, theirs, target))),
            Assign(kept, Apply("shift_factor", (factor.rate, kept, target))),
        )
    for part in parts:
        own, target = part.state, part.state.target
        if own.statistic is not None:
            names = _factors(own.statistic.buffer, suffix)
            kept, new = (part_of[own.statistic.buffer].local(which, own.statistic) for which in names)
            sides = (Apply("mul", (target, kept)), Apply("mul", (part.place(target), new)))
            body += nested(own.loops, Assign(target, Apply(own.op, sides)))
        elif target.buffer not in statistics:
            body += nested(own.loops, Accumulate(target, own.op, part.place(target)))
    return _over_chunks(cuts, body, parallel=False), tuple(locals_)


def _factors(statistic: str, suffix: str) -> tuple[str, str]:
    """The names of the factors for what has been put together so far, and for the chunk that is added to it."""
    return f"{statistic}_so_far{suffix}", f"{statistic}_added{suffix}"
