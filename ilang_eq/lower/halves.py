"""Half of a symmetric result: tiles beyond the diagonal are left out, and copied from their mirror images afterwards.

before →  for i step 6: for j step 16: { for k: for i' < 6: for j' < 16: … x[k][i+i'] * x[k][j+j'] …; y[i+i'][j+j'] = … }
after  →  for i step 6: for j step 16, up to the block of 16 in which i + 6 ends: …;  then y[i][j] = y[j][i] beyond it

Libraries have it as a routine of its own (BLAS's ``syrk``); here it follows from the result being the same with two
axes exchanged (``symmetry.py``). It applies where tiles take a sum each, and everything in a tile that is left out is
for that tile alone. Where few terms are summed, copying takes longer: extents decide when the kernel runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from ilang_eq.lower.ir import Buffer, Diagonal, Extent, For, Index, Kernel, Statement
from ilang_eq.lower.walk import declared_in, updates, walk

BLOCK = 16
"""Mirror images are blocks of so many rows and columns: a cache line of floats, in which positions are rounded up."""
FEW = 64
"""With fewer terms in each sum, all are computed."""


@dataclass(frozen=True, slots=True)
class Half:
    """What a kernel leaves to be copied.

    Args:
        buffer: the symmetric result.
        above: whether what it computes is on and above the diagonal, not on and below.
        summed: the extents of the sums: with few terms, everything is computed.
    """

    buffer: Buffer
    above: bool
    summed: tuple[Extent, ...]


def few(summed: Sequence[Extent], extents: Mapping[tuple[int, int], int]) -> bool:
    """Whether sums over ``summed`` have so few terms that all are computed."""
    return prod(extents[extent.input, extent.dim] for extent in summed) < FEW


def halved(kernel: Kernel, buffers: Mapping[str, Buffer]) -> tuple[Kernel, Half | None]:
    """``kernel`` without the tiles beyond the diagonal of a symmetric result; as it is, and None, if it has none."""
    for name in dict.fromkeys(update.target.buffer for update in updates(kernel.body)):
        buffer = buffers[name]
        if not buffer.symmetric or buffer.dims[-1] != buffer.dims[-2] or not isinstance(buffer.dims[-1], Extent):
            continue
        versions = {above: _stopped(kernel.body, (), name, -2 if above else -1) for above in (False, True)}
        # the inner axis has the finer tiles to leave out
        above = _finest(versions[True]) > _finest(versions[False])
        stops = list(_diagonals(versions[above]))
        if stops:
            summed = tuple(dict.fromkeys(extent for stop in stops for extent in stop.summed))
            return replace(kernel, body=versions[above]), Half(buffer, above, summed)
    return kernel, None


def _diagonals(body: Sequence[Statement]) -> Iterator[Diagonal]:
    return (s.diagonal for s in walk(body) if isinstance(s, For) and s.diagonal is not None)


def _finest(body: Sequence[Statement]) -> int:
    return max((len(stop.position) + len(stop.others) for stop in _diagonals(body)), default=0)


def _stopped(body: Sequence[Statement], around: tuple[For, ...], name: str, dim: int) -> tuple[Statement, ...]:
    """``body`` with loops over dimension ``dim`` of ``name`` that stop at the diagonal."""
    return tuple(
        replace(s, body=_stopped(s.body, (*around, s), name, dim), diagonal=_diagonal(s, around, name, dim))
        if isinstance(s, For)
        else s
        for s in body
    )


def _diagonal(loop: For, around: Sequence[For], name: str, dim: int) -> Diagonal | None:
    """Where ``loop`` over dimension ``dim`` of ``name`` stops; None if it has to go on."""
    inside = set(declared_in(loop.body))
    left = [update.target for update in updates(loop.body) if update.target.buffer not in inside]
    sums = [s.extent for s in walk(loop.body) if isinstance(s, For) and s.reduces]
    if loop.step == 1 or loop.seldom or not sums or any(target.buffer != name for target in left):
        return None
    # what it leaves behind is elements of the result at its own position alone
    found = {(_along(target.indices[dim], (*around, loop)), _along(target.indices[-3 - dim], around)) for target in left}
    if len(found) != 1:
        return None
    ((own, others),) = found
    if not others or loop not in own:
        return None
    names = (tuple(each.variable for each in loops) for loops in (own, others))
    return Diagonal(*names, others[-1].step, tuple(dict.fromkeys(sums)))


def _along(index: Index, loops: Sequence[For]) -> tuple[For, ...]:
    """Those of ``loops`` that ``index`` moves with; none if it is no plain position."""
    return tuple(loop for loop in loops if loop.variable in index.variables) if index.divisor == 1 else ()
