"""The larger of a value and its negative is its absolute value: one instruction, where skipping NaN takes several.

before →  { s = x - y;  t = y - x;  m = max(s, t) }
after  →  { s = x - y;  m = |s| }

Both are NaN or neither is, so that nothing has to be skipped; and a difference the other way round is the negative,
but for the sign of zero. What is the negative goes if nothing else reads it. Distances Σ|x - y| of 1024×64 and 1024×64
take 0.53 of the time on Emerald Rapids.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ilang_eq.lower.ir import Accumulate, Apply, Assign, Constant, Declare, For, Load, Scalar, Statement
from ilang_eq.lower.walk import involves, reads, touches


def absolute_values(block: Sequence[Statement]) -> tuple[Statement, ...]:
    """``block`` with the absolute value where two of its values are compared and one is the other's negative."""
    known: dict[Load, Scalar] = {}
    negatives: set[str] = set()
    found: list[Statement] = []
    for statement in block:
        match statement:
            case Assign(target, Apply("max", (Load() as x, Load() as y))) if _opposite(x, y, known):
                kept, negative = (x, y) if _negates(y, x, known) else (y, x)
                found.append(Assign(target, Apply("abs", (kept,))))
                negatives.add(negative.buffer)
                known = _unchanged(known, target)
            case Assign(target, value):
                found.append(statement)
                known = _unchanged(known, target)
                if not reads(value, target.buffer):
                    known[target] = value
            case Accumulate(target):
                found.append(statement)
                known = _unchanged(known, target)
            case For():
                found.append(statement)
                known = {}
            case _:
                found.append(statement)
    return _without_unread(found, negatives)


def _opposite(x: Load, y: Load, known: Mapping[Load, Scalar]) -> bool:
    return _negates(y, x, known) or _negates(x, y, known)


def _negates(y: Load, x: Load, known: Mapping[Load, Scalar]) -> bool:
    """Whether ``y`` is computed as the negative of ``x``."""
    match known.get(y):
        case Apply("sub", (Constant(0.0), value)) if value == x:
            return True
        case Apply("sub", (left, right)):
            return known.get(x) == Apply("sub", (right, left))
        case _:
            return False


def _unchanged(known: Mapping[Load, Scalar], target: Load) -> dict[Load, Scalar]:
    """What of ``known`` neither lies in the buffer of ``target`` nor was computed from it."""
    return {place: value for place, value in known.items() if not involves(place, value, target.buffer)}


def _without_unread(block: Sequence[Statement], buffers: Collection[str]) -> tuple[Statement, ...]:
    """``block`` without those of ``buffers`` that are declared in it and only assigned to."""
    unread = {
        name
        for name in buffers
        if Declare(name) in block and all(_assigns(s, name) or not touches(s, name) for s in block)
    }
    return tuple(s for s in block if not any(s == Declare(name) or _assigns(s, name) for name in unread))


def _assigns(statement: Statement, buffer: str) -> bool:
    """Whether all that ``statement`` does with ``buffer`` is assigning to it."""
    return isinstance(statement, Assign) and statement.target.buffer == buffer and not reads(statement.value, buffer)
