"""Whether a loop body can be written with one vector in place of a float."""

from __future__ import annotations

from typing import assert_never

from ilang_eq.lower.ir import Apply, Assign, Constant, For, Load, Scalar
from ilang_eq.lower.scalar import Call, Infix, Truth, operands, spell
from ilang_eq.lower.walk import declared_in, loads, places, stride, updates

WIDTHS = (16, 8, 4)
"""The vector types of generated code: each has that many lanes, or as many as the machine has if that is less."""


def lanes_of(loop: For, limit: int) -> int:
    """The widest vector that divides ``limit`` steps of the innermost ``loop``; 1 if its body must stay scalar.

    What is accumulated may lie anywhere: it is held in registers meanwhile.
    """
    private = set(declared_in(loop.body))
    for update in updates(loop.body):
        if any(load.buffer in private for load in loads(update.value)) or not _liftable(update.value):
            return 1
        if update.target.buffer in private:
            if not isinstance(update, Assign) or update.target.indices:
                return 1
            private.remove(update.target.buffer)
        elif isinstance(update, Assign) and stride(update.target, loop.variable) != "unit":
            return 1
    if any(stride(place, loop.variable) == "uneven" for place in places(loop.body)):
        return 1
    return next((width for width in WIDTHS if limit % width == 0), 1)


def _liftable(value: Scalar) -> bool:
    """Whether every function in ``value`` can be applied to vectors."""
    match value:
        case Load() | Constant():
            return True
        case Apply():
            spelling = spell(value)
            match spelling:
                case Infix() | Call() | Truth():
                    return all(_liftable(operand) for operand in operands(spelling))
                case other:
                    assert_never(other)
        case other:
            assert_never(other)
