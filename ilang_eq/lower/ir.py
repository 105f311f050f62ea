"""The loop IR: what a kernel does, one step above C or CUDA text. Backends print it and decide nothing.

Index arithmetic is by *offsets*. Every loop variable holds an offset along one axis: a tile loop steps by its tile,
an element loop by one, and the position along an axis is the sum of that axis's loop variables. ``Loop.bound``
gives the exclusive end, so that tails need no guards inside.

Invariants (``check`` in ``lower/check.py`` enforces them):
  * a variable is defined by exactly one enclosing loop
  * a place has one index per dimension of its buffer, over enclosing variables only
  * every buffer is an input, an output, a workspace or a local; a local is declared in a block that encloses its uses
  * a loop that stops at a diagonal does so by variables of its own and of enclosing loops
  * only outputs, workspaces and locals are written; what is read has been written before, or is an input
  * a parallel loop's body writes only what no other iteration touches
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal as Choice


@dataclass(frozen=True, slots=True, order=True)
class Extent:
    """A dimension known when the kernel is called: dimension ``dim`` of input ``input`` names the class.

    With ``more`` dimensions after it, it is their product (``lower/collapsing.py``).
    """

    input: int
    dim: int
    more: int = 0

    def __str__(self) -> str:
        return f"in{self.input}.{self.dim}" + "".join(f"·{dim}" for _, dim in self.dims[1:])

    @property
    def dims(self) -> tuple[tuple[int, int], ...]:
        """All its (input, dimension)."""
        return tuple((self.input, dim) for dim in range(self.dim, self.dim + self.more + 1))

    def at(self, extents: Mapping[tuple[int, int], int]) -> int:
        """Its elements, given those of each (input, dimension)."""
        return prod(extents[dim] for dim in self.dims)

    def is_before(self, other: Extent) -> bool:
        """Whether ``other`` begins with the next dimension of the same input."""
        return other.input == self.input and other.dim == self.dim + self.more + 1

    def with_next(self, other: Extent) -> Extent:
        """The product of both, of which ``other`` is the next."""
        return Extent(self.input, self.dim, self.more + other.more + 1)


@dataclass(frozen=True, slots=True)
class CeilDiv:
    """ceil(extent / divisor)."""

    extent: Extent
    divisor: int


Size = int | Extent | CeilDiv


@dataclass(frozen=True, slots=True)
class Buffer:
    """Row-major float32 storage. ``name`` is a C identifier, unique in the program.

    ``parts`` shows ``dims`` as the schedule splits them, each with the extent of its axis (for ``plan()``): an axis
    folded down to two levels is one dimension of 4 in ``dims`` but the parts 2 and 2 here.

    What is ``symmetric`` stays the same, but for rounding, with its last two indices exchanged.
    """

    name: str
    dims: tuple[Size, ...]
    role: Choice["input", "output", "workspace", "local"]
    leaf: int | None = None
    parts: tuple[tuple[Size, Extent], ...] = ()
    symmetric: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """Sum of loop variables, minus those folded away, over ``divisor`` (1 but for oddly ordered splits)."""

    variables: tuple[str, ...]
    divisor: int = 1


@dataclass(frozen=True, slots=True)
class Load:
    """The element of ``buffer`` at ``indices``."""

    buffer: str
    indices: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    """A number; infinities allowed."""

    value: float


@dataclass(frozen=True, slots=True)
class Apply:
    """``op`` of ``lang.ops.OPS`` (its binary form; ``not`` is unary), or one of those below.

    * ``finite_or``: (x, y) → x if x is finite, else y
    * ``shift_factor``: (rate, old, new) → e^(rate·(old − new)), and 1 where old or new is not finite
    * ``exp``, ``ln``: the unary forms of pow and log
    * ``abs``: x without its sign
    """

    op: str
    arguments: tuple[Scalar, ...]


Scalar = Load | Constant | Apply
Precision = Choice["float32", "tf32", "tf32x3"]
"""How the factors of summed products may be rounded: not at all; to 10 bits after the point; or each taken as the sum
of two such numbers, which leaves nearly float32. What is summed is float32. A target says which of them it has."""


@dataclass(frozen=True, slots=True)
class Assign:
    """target = value."""

    target: Load
    value: Scalar


@dataclass(frozen=True, slots=True)
class Accumulate:
    """target = target ⊕ value, with ⊕ a reducible op."""

    target: Load
    op: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class Declare:
    """A local buffer lives from here to the end of the enclosing block. Not initialised."""

    buffer: str


@dataclass(frozen=True, slots=True)
class Comment:
    """A line for the reader: the 𝚒 text computed below."""

    text: str


@dataclass(frozen=True, slots=True)
class Diagonal:
    """Where a loop over one of two axes of the same extent leaves the rest to be mirrored (``lower/halves.py``).

    An iteration at ``position`` in its axis runs only if that is before the end of the block of ``BLOCK`` in which the
    other axis is, which ``others`` are loops around over, and ``reach`` how far an iteration of the last of them goes;
    or if ``summed`` have few terms together.
    """

    position: tuple[str, ...]
    others: tuple[str, ...]
    reach: int
    summed: tuple[Extent, ...]


@dataclass(frozen=True, slots=True)
class For:
    """A loop over one part of an axis.

    ``variable`` runs 0, step, 2·step, … while below min(limit, extent − Σ outer); ``limit`` None means only the
    second bound. ``outer`` are the variables of enclosing loops over the same axis.

    A loop that names loops around it as ``first``, the outermost first, runs only while they are all in their first
    iteration; one with extents ``without`` only where one of these is 0; one with a ``diagonal`` not beyond that.
    """

    variable: str
    extent: Extent
    step: int
    limit: int | None
    outer: tuple[str, ...]
    body: tuple[Statement, ...]
    parallel: bool = False
    reduces: bool = False
    first: tuple[str, ...] = ()
    without: tuple[Extent, ...] = ()
    diagonal: Diagonal | None = None

    @property
    def seldom(self) -> bool:
        """Whether it runs only under a condition."""
        return bool(self.first or self.without)


Statement = For | Assign | Accumulate | Declare | Comment


@dataclass(frozen=True, slots=True)
class Kernel:
    """One loop nest, dispatched on its own."""

    name: str
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Correction:
    """An online reduction: ``accumulator`` is repaired when ``statistic`` moves (both leaf numbers)."""

    accumulator: int
    statistic: int
    kind: Choice["max-shift", "divisor", "shift", "scale"]


@dataclass(frozen=True, slots=True)
class Program:
    """Kernels in the order they run.

    ``outputs`` names a buffer per component output; one that is an input passed through (its name is in
    ``inputs``), or repeats an earlier output, is copied by the caller. ``ranks`` are the inputs' ranks, None
    where an input is only passed through; ``ties`` lists, for each extent class with several members, the
    (input, dim) pairs that must agree, the class's name first. ``precision`` is what the user grants.
    """

    ranks: tuple[int | None, ...]
    ties: tuple[tuple[tuple[int, int], ...], ...]
    buffers: tuple[Buffer, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    corrections: tuple[Correction, ...]
    precision: Precision = "float32"

    def buffer(self, name: str) -> Buffer:
        """The buffer called ``name``."""
        return next(b for b in self.buffers if b.name == name)
