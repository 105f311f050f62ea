"""Half of a symmetric result: tiles beyond the diagonal are left out, and copied from their mirror images afterwards.

before →  for i step 6: for j step 16: { for k: for i' < 6: for j' < 16: … x[k][i+i'] * x[k][j+j']; y[i+i'][j+j'] = … }
after  →  for i step 6: for j step 16, up to the block of 16 in which i + 6 ends: …;  then y[i][j] = y[j][i] beyond it

Libraries have it as a routine of its own (BLAS's ``syrk``); here it follows from the result being the same with two
axes exchanged (``symmetry.py``). It applies where tiles take a sum each, and everything in a tile that is left out is
for that tile alone. Where few terms are summed, copying takes longer: extents decide when the kernel runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple

from ilang_eq.lower.ir import Buffer, Diagonal, Extent, For, Index, Kernel, Load, Statement
from ilang_eq.lower.walk import declared_in, loads, updates, walk
from ilang_eq.lower.within import Enclosed, enclosed

BLOCK = 16
"""Mirror images are blocks of so many rows and columns: a cache line of floats, in which positions are rounded up."""
FEW = 64
"""With fewer terms in each sum, all are computed."""
LARGE = 2048
"""From so many rows on it takes twice as many terms: copying waits for memory. 4096×64 takes 0.85 of the time at one
thread on Zen 3, but 1.16 at two."""


@dataclass(frozen=True, slots=True)
class Half:
    """What a kernel leaves to be copied.

    Args:
        buffer: the symmetric result.
        above: whether what it computes is on and above the diagonal, not on and below.
        summed: the extents of the sums: with few terms, everything is computed.
        rows: the extent of rows and columns.
    """

    buffer: Buffer
    above: bool
    summed: tuple[Extent, ...]
    rows: Extent


def few(summed: Sequence[Extent], rows: Extent, extents: Mapping[tuple[int, int], int]) -> bool:
    """Whether sums over ``summed`` have so few terms that all of so many ``rows`` are computed."""
    terms = prod(extent.at(extents) for extent in summed)
    return terms < (FEW if rows.at(extents) < LARGE else 2 * FEW)


def halved(kernel: Kernel, buffers: Mapping[str, Buffer]) -> tuple[Kernel, Half | None]:
    """``kernel`` without the tiles beyond the diagonal of a symmetric result; as it is, and None, if it has none."""
    for name in dict.fromkeys(update.target.buffer for update in updates(kernel.body)):
        buffer = buffers[name]
        if not buffer.symmetric or buffer.dims[-1] != buffer.dims[-2]:
            continue
        rows = buffer.dims[-1]
        if not isinstance(rows, Extent) or _is_read(kernel.body, name):
            continue
        versions = {above: _Stopping.at(kernel.body, name, above).applied(kernel.body, ()) for above in (False, True)}
        # the inner axis has the finer tiles to leave out
        above = _finest(versions[True]) > _finest(versions[False])
        stops = list(_diagonals(versions[above]))
        if stops:
            summed = tuple(dict.fromkeys(extent for stop in stops for extent in stop.summed))
            return replace(kernel, body=_agreeing(versions[above], summed)), Half(buffer, above, summed, rows)
    return kernel, None


def _is_read(body: Sequence[Statement], name: str) -> bool:
    """Whether ``name`` is read but for what becomes of an element in its place: the other half is copied in the end."""
    read = ((update, place) for update in updates(body) for place in loads(update.value) if place.buffer == name)
    return any(update.target != place for update, place in read)


def _agreeing(body: Sequence[Statement], summed: tuple[Extent, ...]) -> tuple[Statement, ...]:
    """``body`` with all that stops doing so for the same extents, for which the other half is copied."""
    return tuple(
        replace(
            s,
            body=_agreeing(s.body, summed),
            diagonal=None if s.diagonal is None else replace(s.diagonal, summed=summed),
        )
        if isinstance(s, For)
        else s
        for s in body
    )


def _diagonals(body: Sequence[Statement]) -> Iterator[Diagonal]:
    return (s.diagonal for s in walk(body) if isinstance(s, For) and s.diagonal is not None)


def _finest(body: Sequence[Statement]) -> int:
    return max((len(stop.position) + len(stop.others) for stop in _diagonals(body)), default=0)


class _Position(NamedTuple):
    """Loops over the one and the other axis of a symmetric result, outermost first, around an element of it."""

    own: tuple[For, ...]
    others: tuple[For, ...]


class _Part(NamedTuple):
    """A local whose elements are added to the result's, such as the sums of a chunk, of a row or of all elements.

    Args:
        dim: the dimension that is the result's ``dim``.
        others: the loops around all of it that are over the result's other axis.
        other: the dimension that goes on along that axis from there, or runs along all of it; None if there is none.
    """

    dim: int
    others: tuple[For, ...]
    other: int | None


@dataclass(frozen=True, slots=True)
class _Stopping:
    """Loops over dimension ``dim`` of the symmetric ``result``, which may stop at its diagonal."""

    result: str
    dim: int
    parts: Mapping[str, _Part]

    @staticmethod
    def at(body: Sequence[Statement], result: str, above: bool) -> _Stopping:
        """With the parts that ``body`` makes of it."""
        dim = -2 if above else -1
        reads = [(use, place) for use in enclosed(body) for place in loads(use.statement.value)]
        parts: dict[str, _Part] = {}
        for name in declared_in(body):
            found = {_part(use, place, result, dim) for use, place in reads if place.buffer == name}
            part = next(iter(found)) if len(found) == 1 else None
            if part is not None:
                parts[name] = part
        return _Stopping(result, dim, parts)

    def applied(self, statements: Sequence[Statement], around: tuple[For, ...]) -> tuple[Statement, ...]:
        """``statements`` with what may stop."""
        return tuple(
            replace(s, body=self.applied(s.body, (*around, s)), diagonal=self._diagonal(s, around))
            if isinstance(s, For)
            else s
            for s in statements
        )

    def _diagonal(self, loop: For, around: Sequence[For]) -> Diagonal | None:
        """Where ``loop`` stops; None if it has to go on."""
        inside = set(declared_in(loop.body))
        left = [update.target for update in updates(loop.body) if update.target.buffer not in inside]
        sums = [s.extent for s in walk(loop.body) if isinstance(s, For) and s.reduces]
        # what it leaves behind is elements of the result at its own position alone
        found = {self._position(target, loop, around) for target in left}
        if loop.step == 1 or loop.seldom or not sums or len(found) != 1:
            return None
        ((own, others),) = found
        if loop not in own or not others:
            return None
        return Diagonal(_variables(own), _variables(others), others[-1].step, tuple(dict.fromkeys(sums)))

    def _position(self, target: Load, loop: For, around: Sequence[For]) -> _Position:
        if target.buffer in self.parts:
            part = self.parts[target.buffer]
            own, others = part.dim, part.others
            other = None if part.other is None else target.indices[part.other]
        elif target.buffer == self.result:
            own, others, other = self.dim, (), target.indices[-3 - self.dim]
        else:
            return _Position((), ())
        if other is not None:
            others = (*others, *_along(other, around))
            inside = [s for s in walk(loop.body) if isinstance(s, For) and s.variable in other.variables]
            others = others if _within(inside, others) else ()
        return _Position(_along(target.indices[own], (*around, loop)), others)


def _part(use: Enclosed, place: Load, result: str, dim: int) -> _Part | None:
    """What ``place``, which ``use`` reads, is of ``result``; None if it is anything but added to it."""
    target = use.statement.target
    if target.buffer != result or use.statement.value != place:
        return None
    other = target.indices[-3 - dim]
    same, whole = ([d for d, index in enumerate(place.indices) if index == at] for at in (target.indices[dim], other))
    if len(same) == len(whole) == 1:
        # what is left out of it is added as it was filled, and copied over in the end
        return _Part(same[0], (), whole[0])
    around = [loop for loop in use.around if not any(loop.variable in index.variables for index in place.indices)]
    others = _along(other, around)
    own = bool(others) and place.buffer in declared_in(others[-1].body)
    inside = [loop for loop in use.around if loop.variable in other.variables and loop not in others]
    rest = [d for d, index in enumerate(place.indices) if index.variables == tuple(s.variable for s in inside)]
    further = rest[0] if inside and len(rest) == 1 else None
    return _Part(same[0], others, further) if own and len(same) == 1 and _within(inside, others) else None


def _within(inside: Sequence[For], others: Sequence[For]) -> bool:
    """Whether loops ``inside`` go no further along their axis than the last of ``others`` steps."""
    return bool(others) and all(loop.limit is not None and loop.limit <= others[-1].step for loop in inside)


def _variables(loops: Sequence[For]) -> tuple[str, ...]:
    return tuple(loop.variable for loop in loops)


def _along(index: Index, loops: Sequence[For]) -> tuple[For, ...]:
    """Those of ``loops`` that ``index`` moves with; none if it is no plain position."""
    return tuple(loop for loop in loops if loop.variable in index.variables) if index.divisor == 1 else ()
