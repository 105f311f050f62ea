"""An 𝚒 expression: one scalar op over named axes, with its schedule beside it.

``+ijk~ij | k:16 | ik!jk'0`` reads: sum over k; k in tiles of 16; loops i, k, j, k' from the outside in; start the
sum inside the first k loop; compute operand 0's producer innermost.

Invariants (``check`` in ``lang/check.py`` enforces them):
  * one or two operands, as ``op`` allows; an axis is one lower-case letter
  * the output repeats no axis and names none that no operand has
  * only a unary expression with a reducible op drops axes; a binary one keeps the union of its operands' axes
  * a split names an axis of the expression, once, with factors of at least 1
  * an explicit order lists every loop exactly once, an operand at most once, ``!`` at most once
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True)
class Access:
    """An operand read at axes, such as ``ij``; no axes is the scalar ``.``. A repeated axis is a diagonal."""

    axes: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A number standing as an operand: finite, and printed so that it reads back the same."""

    value: float


Operand = Access | Literal


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop of an axis. Level 0 is the outermost (tile) loop, level n the n-th prime."""

    axis: str
    level: int = 0

    def __str__(self) -> str:
        return self.axis + "'" * self.level


@dataclass(frozen=True, slots=True)
class Stage:
    """A digit in the order: compute this operand's producer here."""

    operand: int

    def __str__(self) -> str:
        return str(self.operand)


@dataclass(frozen=True, slots=True)
class Init:
    """``!`` in the order: initialise the reduction's output here."""

    def __str__(self) -> str:
        return "!"


OrderItem = Loop | Stage | Init


@dataclass(frozen=True)
class Expr:
    """One expression. ``op`` is the name of an entry of ``ops.OPS``; an empty ``order`` is the default order."""

    op: str
    operands: tuple[Operand, ...]
    output: str
    splits: tuple[tuple[str, tuple[int, ...]], ...] = ()
    order: tuple[OrderItem, ...] = ()

    @cached_property
    def axes(self) -> str:
        """Every axis: the output's in order, then the reduced ones by first appearance."""
        read = "".join(o.axes for o in self.operands if isinstance(o, Access))
        return "".join(dict.fromkeys(self.output + read))

    @cached_property
    def reduced(self) -> str:
        """The axes that the output omits, by first appearance."""
        return self.axes[len(self.output) :]

    @cached_property
    def factors(self) -> dict[str, tuple[int, ...]]:
        """The split factors of each axis; an axis without a split has none."""
        given = dict(self.splits)
        return {axis: given.get(axis, ()) for axis in self.axes}

    @cached_property
    def sequence(self) -> tuple[OrderItem, ...]:
        """The order, with the default filled in: axes in ``axes`` order, each axis's loops together."""
        if any(isinstance(item, Loop) for item in self.order):
            return self.order
        loops = tuple(Loop(a, level) for a in self.axes for level in range(len(self.factors[a]) + 1))
        return self.order + loops

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """The loops from the outside in."""
        return tuple(item for item in self.sequence if isinstance(item, Loop))

    @cached_property
    def _text(self) -> str:
        from ilang_eq.lang.printer import print_expr

        return print_expr(self)

    def __str__(self) -> str:
        return self._text
