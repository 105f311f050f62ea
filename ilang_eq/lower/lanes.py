"""Whether a loop body can be written with one vector in place of a float."""

from __future__ import annotations

from typing import assert_never

from ilang_eq.lower.ir import Apply, Assign, Constant, For, Load, Scalar
from ilang_eq.lower.scalar import Call, Infix, Truth, operands, spell
from ilang_eq.lower.walk import declared_in, loads, places, stride, updates
from ilang_eq.lower.widths import WIDTHS, dividing, masked


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
    return dividing(limit)


def masked_lanes_of(loop: For, limit: int) -> int:
    """The vector under whose mask ``limit`` steps go best, which no vector divides: 14 are most of 16 lanes.

    1 if the body of ``loop`` must stay scalar, or writes anything that does not move with it. Lanes that are far apart
    are collected one by one, so that there whole vectors are best, if they divide the steps.
    """
    written = [u.target for u in updates(loop.body) if isinstance(u, Assign) and u.target.indices]
    if lanes_of(loop, WIDTHS[0]) == 1 or any(stride(target, loop.variable) == "none" for target in written):
        return 1
    far = any(stride(place, loop.variable) == "far" for place in places(loop.body))
    return dividing(limit) if far and dividing(limit) > 1 else masked(limit)


def single_place(loop: For) -> Load | None:
    """The only result of an innermost loop, if it is written float by float."""
    private = set(declared_in(loop.body))
    targets = [update.target for update in updates(loop.body) if update.target.buffer not in private]
    near = all(stride(place, loop.variable) in ("none", "unit") for place in places(loop.body))
    if len(targets) != 1 or not near or lanes_of(loop, WIDTHS[0]) != WIDTHS[0]:
        return None
    assigned = all(isinstance(update, Assign) for update in updates(loop.body))
    return targets[0] if assigned and stride(targets[0], loop.variable) == "unit" else None


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
