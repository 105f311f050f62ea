"""Rows that are written past the caches, each while the next one is computed.

before →  for i: { for j: m = max(m, x[i][j]);  for j: s += e[j] = exp(x[i][j] - m);  for j: y[i][j] = e[j] / s }
after  →  for i: { for j: m = max(m, x[i][j]);  for j: { y[i - 1][j] = e'[j] / s';  s += e[j] = exp(x[i][j] - m) } }

A store into a cache first reads what it overwrites; one past the caches does not, but if a row's come all at once,
nothing is computed until memory has taken them. So the last pass over a row goes beside another pass over the next one,
a burst in each step, and what it reads of its row's own is kept until then: the softmax of 4096 rows of 4096 floats
takes 0.61 of the time on Zen 4. Stored past the caches at once it takes 0.85, and late but through the caches 1.25.

It is a version of its own, for outputs larger than the caches, and rows of which some stay in a core's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from ilang_eq.lower.addresses import constant_size
from ilang_eq.lower.dependence import independent, innermost
from ilang_eq.lower.ir import Buffer, For, Index, Kernel, Load, Program, Size, Statement
from ilang_eq.lower.lanes import single_place
from ilang_eq.lower.passes import LONG, ROOM
from ilang_eq.lower.streamed import STREAMED_FLOATS
from ilang_eq.lower.walk import code, declared_in, loads, mentions, updates
from ilang_eq.lower.within import moved

HANDED_ON = 2048
"""The shortest rows, in floats, if others of the same length are kept with them. Shorter ones are near in any case: the
softmax of rows of 1024 floats takes 1.1 to 1.2 of the time, of 2048 0.60, of 512 0.85."""
MOST = ROOM // 2
"""The longest rows, in floats: two of them and two of an argument are to stay in a core's own cache."""


@dataclass(frozen=True, slots=True)
class Late:
    """The last pass of a kernel's rows, put off.

    Args:
        program, kernel: with two places for each row that is handed on.
        loops: the perfect nest whose last loop goes from row to row, with the last pass and without it.
        writer: the last pass, as it is for the row at hand.
        scalars: what else it reads of the row at hand.
        rows: those that are handed on, of which there are two.
    """

    program: Program
    kernel: Kernel
    loops: tuple[For, ...]
    rest: tuple[For, ...]
    writer: For
    scalars: tuple[str, ...]
    rows: tuple[str, ...]

    @property
    def others(self) -> Kernel:
        """The other passes alone."""
        body = tuple(self.rest[0] if isinstance(s, For) else s for s in self.kernel.body)
        return replace(self.kernel, body=body)

    @property
    def passes(self) -> tuple[For, ...]:
        """The other passes over a row."""
        return tuple(s for s in self.rest[-1].body if isinstance(s, For))

    @property
    def row(self) -> str:
        """The variable that goes from row to row."""
        return self.loops[-1].variable

    @property
    def target(self) -> Load:
        """What the last pass writes."""
        (update,) = (u for u in updates(self.writer.body) if u.target.indices)
        return update.target

    @property
    def sizes(self) -> tuple[Size, ...]:
        """Those of the output."""
        return next(buffer.dims for buffer in self.program.buffers if buffer.name == self.target.buffer)

    @property
    def least(self) -> int:
        """The shortest rows that are worth it: LONG, unless others are kept with them."""
        return HANDED_ON if self.rows else LONG

    def worthwhile(self, sizes: Sequence[int]) -> bool:
        """Whether an output of ``sizes`` is worth it: it is large, and some of its rows fit a core's own cache."""
        return prod(sizes) >= STREAMED_FLOATS and self.least <= sizes[-1] <= MOST


def late(program: Program, kernel: Kernel) -> Late | None:
    """``kernel`` with the last pass of its rows put off; None if it has no rows, or their last pass has to wait."""
    loops = _rows(kernel)
    *passes, writer = code(loops[-1].body) if loops else (None,)
    if not isinstance(writer, For) or not innermost(writer) or writer.outer or writer.limit is not None:
        return None
    target = single_place(writer)
    if target is None or not _is_result(program, kernel, target):
        return None
    if not all(mentions(target, loop.variable) for loop in loops) or not any(isinstance(s, For) for s in passes):
        return None
    own = set(declared_in(passes))
    read = dict.fromkeys(load.buffer for update in updates(writer.body) for load in loads(update.value))
    handed = [buffer for buffer in program.buffers if buffer.name in read and buffer.name in own]
    rows = {buffer.name: buffer for buffer in handed if buffer.dims}
    if any(constant_size(buffer) is not None for buffer in rows.values()):
        # that would be on the stack, anew for each row
        return None
    twice = _twice(program, kernel, loops[-1], rows)
    loops = _rows(twice[1])
    *rest, writer = loops[-1].body
    assert isinstance(writer, For), "as it was"
    scalars = tuple(buffer.name for buffer in handed if not buffer.dims)
    return Late(*twice, loops, _without(loops, tuple(rest)), writer, scalars, tuple(rows))


def _rows(kernel: Kernel) -> tuple[For, ...]:
    """The nest of tasks that is all of ``kernel``, down to its rows; empty if it has none."""
    match code(kernel.body):
        case (For(parallel=True) as outer,):
            loops = [outer]
        case _:
            return ()
    while len(inside := code(loops[-1].body)) == 1:
        (only,) = inside
        if not isinstance(only, For) or only.outer or innermost(only) or not independent(only):
            break
        loops.append(only)
    return tuple(loops)


def _is_result(program: Program, kernel: Kernel, target: Load) -> bool:
    """Whether ``target`` is an output that is written in this place alone, and read nowhere."""
    every = [update for k in program.kernels for update in updates(k.body)]
    read = {load.buffer for update in every for load in loads(update.value)}
    writers = [update for update in updates(kernel.body) if update.target.buffer == target.buffer]
    role = next(buffer.role for buffer in program.buffers if buffer.name == target.buffer)
    return role == "output" and len(writers) == 1 and target.buffer not in read


def _twice(program: Program, kernel: Kernel, row: For, rows: Mapping[str, Buffer]) -> tuple[Program, Kernel]:
    """``program`` and ``kernel`` with two places for each of ``rows``, which take turns."""

    def place(load: Load) -> Load:
        return Load(load.buffer, (Index((turn_name(row.variable),)), *load.indices)) if load.buffer in rows else load

    buffers = tuple(replace(b, dims=(2, *b.dims), parts=()) if b.name in rows else b for b in program.buffers)
    body = tuple(moved(statement, place) for statement in kernel.body)
    return replace(program, buffers=buffers), replace(kernel, body=body)


def _without(loops: Sequence[For], rest: tuple[Statement, ...]) -> tuple[For, ...]:
    """``loops`` with the body ``rest`` inside the last."""
    found: list[For] = []
    for loop in reversed(loops):
        body = rest if not found else tuple(found[-1] if isinstance(s, For) else s for s in loop.body)
        found.append(replace(loop, body=body))
    return tuple(reversed(found))


def turn_name(row: str) -> str:
    """The variable that says which of two places has what belongs to the row ``row``."""
    return f"{row}_turn"
