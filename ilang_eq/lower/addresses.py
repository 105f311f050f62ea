"""Sizes, indices and places of the loop IR as text that C and CUDA C share, and the extents that such text names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import assert_never

from ilang_eq.lower.ir import Buffer, CeilDiv, Extent, Index, Size, Statement
from ilang_eq.lower.walk import extents_of

STACK_FLOATS = 16384
"""The most floats one kernel keeps on a thread's stack (64 KiB)."""
SPACED_ROWS = 16
"""The fewest rows that should not all begin at the same place in the nearest cache, which has 8 or 12 lines for it:
with 64 bytes between 24 rows of 2048 floats soft-cap takes 0.985 of the time on Zen 5."""
SPACE, CROWDED = 16, 512
"""The floats between rows of a multiple of so many."""


def is_spaced(buffer: Buffer) -> bool:
    """Whether rows of ``buffer`` have some room between them, if they need it: there are many, of a thread's own."""
    match buffer:
        case Buffer(dims=(int(rows), *_, Extent()), role="local"):
            return rows >= SPACED_ROWS
        case _:
            return False


def constant_size(buffer: Buffer) -> int | None:
    """The elements of ``buffer``; None if they depend on an extent."""
    sizes = [size for size in buffer.dims if isinstance(size, int)]
    return prod(sizes) if len(sizes) == len(buffer.dims) else None


def extent_name(extent: Extent) -> str:
    """The C parameter that holds ``extent``."""
    return "_".join([f"in{extent.input}", *(str(dim) for _, dim in extent.dims)])


def size_text(size: Size) -> str:
    """``size`` as a C expression that needs no parentheses in a product."""
    match size:
        case int():
            return str(size)
        case Extent():
            return extent_name(size)
        case CeilDiv(extent, divisor):
            return f"ceil_div({extent_name(extent)}, {divisor})"
        case other:
            assert_never(other)


def index_text(index: Index) -> str:
    """``index`` as a C expression."""
    total = " + ".join(index.variables) or "0"
    if index.divisor == 1:
        return total
    return f"({total}) / {index.divisor}" if len(index.variables) > 1 else f"{total} / {index.divisor}"


def flat_index(indices: Sequence[str], dims: Sequence[Size]) -> str:
    """The row-major offset of ``indices`` in ``dims``."""
    return offset_text(indices, [size_text(size) for size in dims])


def offset_text(indices: Sequence[str], sizes: Sequence[str]) -> str:
    """The same, given the text of each size."""
    offset = ""
    for index, size in zip(indices, sizes, strict=True):
        offset = f"{_grouped(offset)} * {size} + {index}" if offset else index
    return offset or "0"


def _grouped(text: str) -> str:
    return f"({text})" if " " in text else text


def extents_in(buffers: Iterable[Buffer], statements: Sequence[Statement]) -> tuple[Extent, ...]:
    """Every extent that bounds a loop of ``statements`` or a dimension of ``buffers``; sorted."""
    dims = [size for buffer in buffers for size in buffer.dims]
    found = {size if isinstance(size, Extent) else size.extent for size in dims if not isinstance(size, int)}
    return tuple(sorted(found | set(extents_of(statements))))
