"""Copies in memory, and what is computed on the way, are laid out as they are written: tile by tile.

before →  +kj~kj|j:64|jkj'   in a kernel of its own: K rows of J floats, written in steps of J
after  →  the same text, the copy in ceil(J/64) panels of K×64 floats, each written from its start to its end

A copy is there for its layout, so its loops say what that is; what is computed in tiles is read in tiles as well. It
applies where every reader's loops take the tiles apart in the same way (Goto and van de Geijn's packed panels, ACM TOMS
34(3), 2008); otherwise the value is row-major.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from ilang_eq.lower.ir import Assign, Buffer, CeilDiv, Extent, For, Index, Load, Program, Size, Statement
from ilang_eq.lower.walk import loads, places
from ilang_eq.lower.within import Enclosed, enclosed, moved

_Loops = Mapping[str, For]
"""The loops around a place, by variable."""


@dataclass(frozen=True, slots=True)
class _Panels:
    """A layout: ``parts`` of the value's dimensions in the order of memory, as (dimension, step)."""

    parts: tuple[tuple[int, int], ...]

    def beyond(self, dim: int, step: int) -> int | None:
        """The step at which the next part outwards of the same dimension takes over."""
        return min((s for d, s in self.parts if d == dim and s > step), default=None)

    def dims(self, buffer: Buffer) -> tuple[Size, ...]:
        """The dimensions of ``buffer`` in this layout, the last tiles in full."""
        return tuple(_size(buffer.dims[dim], step, self.beyond(dim, step)) for dim, step in self.parts)

    def fits(self, place: Load, loops: _Loops) -> bool:
        """Whether each of ``loops`` goes over whole tiles, or stays inside one."""
        return all(_splits(place.indices[dim], step, loops) for dim, step in self.parts)

    def place(self, place: Load, loops: _Loops) -> Load:
        """``place``, which fits, in this layout."""
        indices: list[Index] = []
        for dim, step in self.parts:
            beyond = self.beyond(dim, step)
            variables = ((v, loops[v].step) for v in place.indices[dim].variables)
            own = tuple(v for v, s in variables if s >= step and (beyond is None or s < beyond))
            indices.append(Index(own, step if own else 1))
        return Load(place.buffer, tuple(indices))


def in_panels(program: Program) -> Program:
    """``program`` with its copies in panels, where all that touches them allows it."""
    layouts: dict[str, _Panels] = {}
    workspaces = {buffer.name for buffer in program.buffers if buffer.role == "workspace"}
    if not workspaces:
        return program
    updates = [found for kernel in program.kernels for found in enclosed(kernel.body)]
    for found in updates:
        panels = _panels(found) if found.statement.target.buffer in workspaces else None
        if panels is not None:
            layouts[found.statement.target.buffer] = panels
    if not layouts:
        return program
    for place, loops in _touched(updates):
        if place.buffer in layouts and not layouts[place.buffer].fits(place, loops):
            del layouts[place.buffer]
    if not layouts:
        return program
    return replace(
        program,
        buffers=tuple(_in_panels(b, layouts[b.name]) if b.name in layouts else b for b in program.buffers),
        kernels=tuple(replace(k, body=_laid_out(k.body, layouts, {})) for k in program.kernels),
    )


def _in_panels(buffer: Buffer, panels: _Panels) -> Buffer:
    """``buffer`` in panels, whose last two dimensions are others."""
    return replace(buffer, dims=panels.dims(buffer), symmetric=False)


def _panels(writer: Enclosed) -> _Panels | None:
    """The layout in which ``writer`` goes through its target from start to end, if that is tile by tile."""
    if not isinstance(writer.statement, Assign):
        return None
    indices = writer.statement.target.indices
    dims = {v: dim for dim, index in enumerate(indices) for v in index.variables}
    around = [(dims[loop.variable], loop.step) for loop in writer.around if loop.variable in dims]
    parts = tuple(min(run, key=lambda part: part[1]) for _, run in groupby(around, key=lambda part: part[0]))
    return _Panels(parts) if len({dim for dim, _ in parts}) == len(indices) < len(parts) else None


def _touched(updates: Sequence[Enclosed]) -> Iterator[tuple[Load, _Loops]]:
    """Every place that is written or read, with the loops around it."""
    for update in updates:
        loops = {loop.variable: loop for loop in update.around}
        yield update.statement.target, loops
        yield from ((place, loops) for place in loads(update.statement.value))


def _splits(index: Index, tile: int, loops: _Loops) -> bool:
    inside = [loop for v in index.variables if (loop := loops[v]).step % tile]
    reach = sum(tile if loop.limit is None else loop.limit - loop.step for loop in inside)
    return index.divisor == 1 and reach < tile


def _laid_out(body: tuple[Statement, ...], layouts: Mapping[str, _Panels], loops: _Loops) -> tuple[Statement, ...]:
    """``body`` itself if nothing in it changes."""

    def place(found: Load) -> Load:
        return layouts[found.buffer].place(found, loops) if found.buffer in layouts else found

    def laid_out(statement: Statement) -> Statement:
        if isinstance(statement, For):
            inside = _laid_out(statement.body, layouts, {**loops, statement.variable: statement})
            return statement if inside is statement.body else replace(statement, body=inside)
        return moved(statement, place) if any(found.buffer in layouts for found in places([statement])) else statement

    new = tuple(map(laid_out, body))
    return new if any(now is not before for now, before in zip(new, body, strict=True)) else body


def _size(extent: Size, step: int, beyond: int | None) -> Size:
    if beyond is not None:
        return beyond // step
    assert isinstance(extent, Extent), "what is materialised has whole dimensions"
    return extent if step == 1 else CeilDiv(extent, step)
