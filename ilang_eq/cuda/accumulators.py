"""Results that a block reduces into become local to it until they are complete.

    before   out[i + i1] = 0;  for k: out[i + i1] += …
    after    declare out_sum;  out_sum[i1] = 0;  for k: out_sum[i1] += …;  out[i + i1] = out_sum[i1]

The binding then finds registers for them, as for any local that each thread uses its own part of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from ilang_eq.cuda.places import moved
from ilang_eq.cuda.regions import Region
from ilang_eq.lower.ir import Accumulate, Assign, Buffer, Declare, Extent, For, Index, Load, Program, Statement
from ilang_eq.lower.walk import buffers_of, loads, places

Parts = tuple[tuple[tuple[str, ...], tuple[Extent, int, tuple[str, ...]] | None], ...]
"""Of each index, the variables from outside a block, and the part that a loop inside runs over."""


@dataclass(frozen=True, slots=True)
class _Use:
    """A place in a block, and the loops inside the block around it."""

    place: Load
    loops: tuple[For, ...]
    statement: Assign | Accumulate

    @property
    def _left(self) -> list[For]:
        named = {v for index in self.place.indices for v in index.variables}
        return [loop for loop in self.loops if loop.variable not in named]

    @property
    def reduced(self) -> bool:
        """Whether the loops reduce into the place."""
        target = isinstance(self.statement, Accumulate) and self.place is self.statement.target
        return target and bool(self._left)

    @property
    def starts(self) -> bool:
        """Whether it sets every element that the loops reach, whatever was there."""
        if not isinstance(self.statement, Assign) or self.place is not self.statement.target or self._left:
            return False
        return all(load.buffer != self.place.buffer for load in loads(self.statement.value))


def with_accumulators(region: Region, program: Program) -> tuple[Region, tuple[Buffer, ...]]:
    """``region`` with locals for its outputs where it reduces into them, and these locals."""
    made: list[Buffer] = []
    names = {buffer.name for buffer in program.buffers}
    body = region.body
    for buffer in program.buffers:
        if buffer.role not in ("output", "workspace"):
            continue
        name = next(n for k in count(1) if (n := f"{buffer.name}_sum{k if k > 1 else ''}") not in names)
        found = _accumulated(body, buffer, name)
        if found is not None:
            body, local = found
            names.add(name)
            made.append(local)
    return replace(region, body=body), tuple(made)


def _accumulated(body: tuple[Statement, ...], buffer: Buffer, name: str) -> tuple[tuple[Statement, ...], Buffer] | None:
    """``body`` with ``buffer`` behind a local called ``name``, in the outermost block where that is possible."""
    holders = [n for n, s in enumerate(body) if buffer.name in buffers_of([s])]
    if not holders:
        return None
    here = _behind(body, holders, buffer, name)
    if here is not None or len(holders) > 1:
        return here
    only = body[holders[0]]
    inner = _accumulated(only.body, buffer, name) if isinstance(only, For) else None
    if inner is None or not isinstance(only, For):
        return None
    return (*body[: holders[0]], replace(only, body=inner[0]), *body[holders[0] + 1 :]), inner[1]


def _behind(
    body: tuple[Statement, ...], holders: list[int], buffer: Buffer, name: str
) -> tuple[tuple[Statement, ...], Buffer] | None:
    uses = [use for n in holders for use in _uses(body[n], buffer.name, ())]
    first = uses[0]
    parts = _parts(first)
    if parts is None or any(_parts(use) != parts for use in uses) or not any(use.reduced for use in uses):
        return None
    tile = [loop for index in first.place.indices for loop in first.loops if loop.variable in index.variables]
    local = Buffer(name, tuple(loop.limit or 0 for loop in tile), "local", buffer.leaf)
    here = Load(name, tuple(Index((loop.variable,)) for loop in tile))
    kept = [d for d, (_, part) in enumerate(parts) if part is not None]

    def change(place: Load) -> Load:
        if place.buffer != buffer.name:
            return place
        rest = {v for outside, _ in parts for v in outside}
        indices = (tuple(v for v in place.indices[d].variables if v not in rest) for d in kept)
        return Load(name, tuple(Index(variables) for variables in indices))

    start = () if first.starts else _nest(tile, Assign(here, first.place))
    inside = moved(body[holders[0] : holders[-1] + 1], change)
    done = _nest(tile, Assign(first.place, here))
    return (*body[: holders[0]], Declare(name), *start, *inside, *done, *body[holders[-1] + 1 :]), local


def _uses(statement: Statement, name: str, loops: tuple[For, ...]) -> Iterator[_Use]:
    if isinstance(statement, For):
        for inner in statement.body:
            yield from _uses(inner, name, (*loops, statement))
    elif isinstance(statement, Assign | Accumulate):
        for place in places([statement]):
            if place.buffer == name:
                yield _Use(place, loops, statement)


def _parts(use: _Use) -> Parts | None:
    """What the indices of a place are made of; None unless each moves by elements of at most one constant part."""
    inner = {loop.variable: loop for loop in use.loops}
    found: list[tuple[tuple[str, ...], tuple[Extent, int, tuple[str, ...]] | None]] = []
    seen: set[str] = set()
    for index in use.place.indices:
        mine = [v for v in index.variables if v in inner]
        rest = tuple(v for v in index.variables if v not in inner)
        if not mine:
            found.append((rest, None))
            continue
        loop = inner[mine[0]]
        constant = loop.step == 1 and loop.limit is not None and not set(loop.outer) & set(inner)
        if len(mine) > 1 or index.divisor != 1 or not constant or loop.variable in seen or loop.limit is None:
            return None
        seen.add(loop.variable)
        found.append((rest, (loop.extent, loop.limit, loop.outer)))
    return tuple(found)


def _nest(loops: Sequence[For], innermost: Assign) -> tuple[Statement, ...]:
    body: tuple[Statement, ...] = (innermost,)
    for loop in reversed(loops):
        body = (replace(loop, body=body, reduces=False, parallel=False),)
    return body
