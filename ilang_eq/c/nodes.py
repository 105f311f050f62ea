"""Bound loops: loop IR plus what each loop is to the machine. ``binding.py`` makes them, ``statements.py`` prints them.

Invariants:
  * a ``VectorNest`` is perfect; its loops have constant limits and unit steps, and ``lanes`` divides the last one's
  * ``Full`` facts speak of variables of enclosing loops only, and hold wherever a node relies on them
  * a register tile is read and written at constant indices once its nests are unrolled
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Literal as Choice

from ilang_eq.lower.ir import Accumulate, Assign, Comment, Declare, Extent, For, Load, Statement
from ilang_eq.lower.passes import Request
from ilang_eq.lower.rolling import most_vectors, staying


@dataclass(frozen=True, slots=True, order=True)
class Full:
    """The fact that extent − Σ outer ≥ limit, so that a loop part has all its elements."""

    extent: Extent
    outer: tuple[str, ...]
    limit: int


@dataclass(frozen=True, slots=True)
class Asked:
    """What a pass over rows asks for in each step of its loop.

    Args:
        request: the shares.
        place: where the row begins.
        along: the variables that add up to the position along a row.
        rows: the loop over the rows at hand, if it is unrolled inside.
    """

    request: Request
    place: Load
    along: tuple[str, ...]
    rows: tuple[For, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """What a pass reads beside the sums of a register tile: at ``place``, for all of its ``rows`` and its ``lane``."""

    place: Load
    rows: For
    lane: For


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop as it stands. ``full``: it ends at ``limit``. ``main`` covers its whole steps, ``rest`` what is left.

    ``around`` are the loops around one that reduces into registers, from the outside in; others stand ``within`` one.
    ``beside`` each of its steps goes one of a pass that was put off (``lower/late.py``). A ``block`` goes on from where
    the one before it ended. The steps of a reduction ask for ``operands`` (``operands.py``).
    """

    source: For
    body: tuple[Node, ...]
    full: bool
    part: Choice["whole", "main", "half", "rest"] = "whole"
    around: tuple[For, ...] = ()
    asked: tuple[Asked, ...] = ()
    beside: bool = False
    within: For | None = None
    block: bool = False
    operands: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Simd:
    """An innermost loop whose iterations are independent but for ``reductions``."""

    source: For
    reductions: tuple[Accumulate, ...]
    full: bool
    asked: tuple[Asked, ...] = ()


@dataclass(frozen=True, slots=True)
class Sum:
    """A ``row`` of sums, which accumulates ``target``."""

    row: Simd
    target: Load


@dataclass(frozen=True, slots=True)
class Jam:
    """A loop that does nothing but add rows to ``sums``, none of which it reads: several rows at once (``jam.py``)."""

    source: For
    sums: tuple[Sum, ...]


@dataclass(frozen=True, slots=True)
class Turned:
    """A perfect nest that reads ``places`` along ``rows``, and writes along ``columns``, in blocks (``turned.py``).

    The loop over columns is full, in whole vectors; that over rows if ``full``, and in blocks if ``whole``. These have
    ``height`` rows and ``width`` columns.
    """

    rows: For
    columns: For
    body: tuple[Statement, ...]
    places: tuple[Load, ...]
    height: int
    width: int
    full: bool
    whole: bool


@dataclass(frozen=True, slots=True)
class VectorNest:
    """A perfect nest, unrolled unless it is large; the last loop steps by vectors of ``lanes`` floats, or by 1.

    Loops over ``partial`` variables may be short: places are clamped or masked. If the lanes are ``reduced``,
    missing ones accumulate the identity. Vectors stored to ``streamed`` buffers bypass the caches; they are aligned.
    Each vector goes through so many ``steps`` of the loop around, if any, before the next does.
    """

    loops: tuple[For, ...]
    lanes: int
    body: tuple[Statement, ...]
    partial: frozenset[str] = frozenset()
    reduced: bool = False
    streamed: frozenset[str] = frozenset()
    steps: For | None = None

    @property
    def rolled(self) -> tuple[For, ...]:
        """The loops that stay loops: those over its rows, if there are too many vectors in all."""
        limits = [loop.limit or 1 for loop in self.loops]
        if prod(limits) <= most_vectors(self.body, self.reduced) * self.lanes:
            return ()
        return self.loops[: staying(limits, self.lanes, self.body)]


@dataclass(frozen=True, slots=True)
class Strips:
    """The innermost loop ``whole`` in strips of whole vectors, ``main``, half a strip, and what is left, ``rest``."""

    main: Loop
    half: Loop
    rest: Loop
    whole: Simd


@dataclass(frozen=True, slots=True)
class Fold:
    """target ⊕= every lane of ``tile``, whose last index is ``lane``, for every iteration of ``loops``."""

    loops: tuple[For, ...]
    target: Load
    op: str
    tile: Load
    lane: For
    lanes: int
    partial: frozenset[str]


@dataclass(frozen=True, slots=True)
class Tile:
    """An array that is to live in registers, and ends up in ``target``."""

    name: str
    dims: tuple[int, ...]
    target: str


@dataclass(frozen=True, slots=True)
class Held:
    """Every vector of ``tile`` is in a register here; ``loops`` go over them, the last in vectors of ``lanes``."""

    loops: tuple[For, ...]
    tile: Load
    lanes: int


@dataclass(frozen=True, slots=True)
class Room:
    """Asks for ``floats`` of each row of ``target`` that ``loops`` choose, if they are in memory: it is added to."""

    loops: tuple[For, ...]
    target: Load
    floats: int


def block_name(loop: For) -> str:
    """The variable that says where a block of ``loop`` begins."""
    return f"{loop.variable}_from"


@dataclass(frozen=True, slots=True)
class Registers:
    """A scope with accumulators in registers, if need be for each of the ``blocks`` of a loop that it consists of.

    ``partial`` are the loops that may be short in it.
    """

    tiles: tuple[Tile, ...]
    partial: tuple[For, ...]
    body: tuple[Node, ...]
    blocks: For | None = None


@dataclass(frozen=True, slots=True)
class Versions:
    """``full`` where all ``facts`` hold, else ``tail``."""

    facts: tuple[Full, ...]
    full: tuple[Node, ...]
    tail: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Seldom:
    """``body`` where a loop runs that is ``first`` or ``without`` (``lower/ir.py``), else ``otherwise``."""

    first: tuple[str, ...]
    without: tuple[Extent, ...]
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Parallel:
    """Perfectly nested loops whose iterations are tasks for threads; a single innermost loop is its own body."""

    loops: tuple[For, ...]
    body: tuple[Node, ...]


Node = (
    Loop
    | Simd
    | Jam
    | Turned
    | VectorNest
    | Strips
    | Fold
    | Held
    | Room
    | Registers
    | Versions
    | Seldom
    | Parallel
    | Assign
    | Accumulate
    | Declare
    | Comment
)


def unblocked(node: Registers) -> Registers:
    """``node`` in one go: the sums that tiles in a core's own caches hold are short, so that blocks gain nothing."""
    if node.blocks is None:
        return node
    first = block_name(node.blocks)
    body: list[Node] = []
    for inner in node.body:
        match inner:
            case Loop(block=True):
                body.append(replace(inner, block=False))
            case Seldom(first=named) if first in named:
                others = tuple(name for name in named if name != first)
                body += [replace(inner, first=others)] if others else []
            case _:
                body.append(inner)
    return replace(node, body=tuple(body), blocks=None)
