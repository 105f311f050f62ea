"""Axes that lie side by side in all that has them, and whose loops do nothing else, run as one.

before →  for i: for j: out[i][j] = a[i][j] * 2
after  →  for i_j: out[i_j] = a[i_j] * 2

Rows of three floats, or of a few more than whole vectors, would leave most lanes empty. Nothing changes for a caller:
the one extent is the product of the two, and the elements lie where they did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from ilang_eq.lower.ir import Buffer, CeilDiv, Extent, For, Index, Kernel, Load, Program, Statement
from ilang_eq.lower.walk import code, extents_of, places, walk
from ilang_eq.lower.within import moved


def collapsed(program: Program) -> Program:
    """``program`` with as few axes as its loops allow."""
    for outer, inner in _neighbours(program.buffers):
        found = _Pair(outer, inner, {buffer.name: buffer for buffer in program.buffers}).collapsed(program)
        if found is not None:
            return collapsed(found)
    return program


def _neighbours(buffers: Sequence[Buffer]) -> list[tuple[Extent, Extent]]:
    """The extents of dimensions that follow each other in a buffer, and in the input that names them."""
    pairs = (pair for buffer in buffers for pair in pairwise(buffer.dims))
    found = [(a, b) for a, b in pairs if isinstance(a, Extent) and isinstance(b, Extent) and a.is_before(b)]
    return list(dict.fromkeys(found))


class _Pair:
    """Two extents that may be taken together.

    Args:
        outer, inner: the extents.
        buffers: those of the program, by name.
    """

    def __init__(self, outer: Extent, inner: Extent, buffers: Mapping[str, Buffer]) -> None:
        self.outer, self.inner, self.buffers = outer, inner, buffers
        self.both = {outer, inner}
        self.places = {name: self._place(buffer) for name, buffer in buffers.items()}

    def collapsed(self, program: Program) -> Program | None:
        """``program`` with one axis of the two; None if something has one of them alone, or in another way."""
        if None in self.places.values():
            return None
        kernels: list[Kernel] = []
        for kernel in program.kernels:
            body = self._block(kernel.body)
            if body is None:
                return None
            kernels.append(replace(kernel, body=body))
        buffers = (replace(b, dims=self._dims(b), parts=()) if self.places[b.name] else b for b in program.buffers)
        return replace(program, buffers=tuple(buffers), kernels=tuple(kernels))

    def _place(self, buffer: Buffer) -> tuple[int, ...] | None:
        """The dimensions of ``buffer`` at which the two begin; None if it has them otherwise."""
        sizes = [size.extent if isinstance(size, CeilDiv) else size for size in buffer.dims]
        found = tuple(d for d, pair in enumerate(pairwise(buffer.dims)) if pair == (self.outer, self.inner))
        alone = sum(size in self.both for size in sizes) != 2 * len(found)
        return None if alone or (found and buffer.symmetric) else found

    def _dims(self, buffer: Buffer) -> tuple[int | Extent | CeilDiv, ...]:
        starts = self.places[buffer.name] or ()
        both = self.outer.with_next(self.inner)
        return tuple(both if d in starts else size for d, size in enumerate(buffer.dims) if d - 1 not in starts)

    def _block(self, statements: Sequence[Statement]) -> tuple[Statement, ...] | None:
        """``statements`` with one loop for two; None if that cannot be."""
        found: list[Statement] = []
        for statement in statements:
            match statement:
                case For(extent=extent) if extent == self.outer:
                    one = self._loop(statement)
                case For(extent=extent) if extent == self.inner or self.both & set(statement.without):
                    return None
                case For():
                    body = self._block(statement.body)
                    one = None if body is None else replace(statement, body=body)
                case _:
                    # what has the two is in loops over both
                    one = None if any(self.places[p.buffer] for p in places([statement])) else statement
            if one is None:
                return None
            found.append(one)
        return tuple(found)

    def _loop(self, loop: For) -> For | None:
        match code(loop.body):
            case (For() as inner,) if inner.extent == self.inner and _is_whole(loop) and _is_whole(inner):
                pass
            case _:
                return None
        if loop.reduces != inner.reduces or self.both & set(extents_of(inner.body)):
            return None
        variables, together = (loop.variable, inner.variable), f"{loop.variable}_{inner.variable}"
        for place in places(inner.body):
            moving = [d for d, index in enumerate(place.indices) if set(index.variables) & set(variables)]
            expected = [d + n for d in self.places[place.buffer] or () for n in range(2)]
            if moving != expected or any(place.indices[d] != Index((variables[n % 2],)) for n, d in enumerate(moving)):
                return None
        if any(isinstance(s, For) and set(variables) & {*s.outer, *s.first} for s in walk(inner.body)):
            return None
        outside = tuple(s for s in loop.body if not isinstance(s, For))
        body = tuple(moved(s, lambda place: self._together(place, together)) for s in inner.body)
        return replace(loop, variable=together, extent=self.outer.with_next(self.inner), body=(*outside, *body))

    def _together(self, place: Load, variable: str) -> Load:
        starts = self.places[place.buffer] or ()
        kept: Iterator[tuple[int, Index]] = ((d, i) for d, i in enumerate(place.indices) if d - 1 not in starts)
        return Load(place.buffer, tuple(Index((variable,)) if d in starts else index for d, index in kept))


def _is_whole(loop: For) -> bool:
    """Whether ``loop`` goes through all of its axis one by one, and always."""
    return loop.step == 1 and loop.limit is None and not (loop.outer or loop.seldom or loop.diagonal)
