"""How much a parallel loop computes, as C text: whether to wake threads is decided when extents are known.

The unit is about 0.02 ns of one core with vectors of 512 bits: half a multiplication. The costs are throughputs
measured on a Xeon of the Cascade Lake generation; a factor of two elsewhere does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from ilang_eq.lower.addresses import extent_name
from ilang_eq.lower.ir import Accumulate, Apply, Assign, Constant, For, Load, Scalar
from ilang_eq.lower.scalar import Call, Infix, Truth, operands, spell
from ilang_eq.lower.walk import loads, mentions
from ilang_eq.lower.within import Enclosed, enclosed

_ACCESS = 2
"""Of a load or store that moves with the innermost loop."""
_COPY = 16
"""Of an element that is copied, from where it lies apart or far: 0.4 ns when a panel of a matrix is packed on Zen 4."""
_DIVISION = 12
_CALLS = {"exp_of": 16, "shift_factor": 20, "exp2_of": 24, "ln_of": 23, "log_in": 27, "root": 20, "pow_of": 140}
_CALLS |= {"log_of": 200}


def work_text(loops: Iterable[For]) -> str:
    """What all iterations of ``loops`` cost together, in units of about 0.02 ns, as a C expression of type double."""
    terms: dict[tuple[str, ...], int] = {}
    for update in (e for e in enclosed(list(loops)) if not any(x.seldom for x in e.around)):
        trips = tuple(sorted(_trips(update.around)))
        terms[trips] = terms.get(trips, 0) + _cost(update)
    counted = {trips: cost for trips, cost in terms.items() if cost} or terms
    return " + ".join(" * ".join((f"{cost}.0", *trips)) for trips, cost in sorted(counted.items()))


def _trips(loops: Sequence[For]) -> list[str]:
    """The factors of the number of iterations: the parts of an axis make up its extent together."""
    inside = {loop.variable for loop in loops}
    outermost = [loop for loop in loops if not inside & set(loop.outer)]
    return [extent_name(loop.extent) if loop.limit is None else str(loop.limit) for loop in outermost]


def _cost(update: Enclosed) -> int:
    """Of one execution of ``update``; what is accumulated into is taken to be at hand."""
    statement = update.statement
    match statement:
        case Assign(_, Load()):
            return _COPY
        case Assign(target, value):
            places, own = (target, *loads(value)), 0
        case Accumulate(_, _, value):
            places, own = tuple(loads(value)), 1
        case other:
            assert_never(other)
    moving = [place for place in places if mentions(place, update.around[-1].variable)]
    return own + _ACCESS * len(moving) + _cost_of_value(value)


def _cost_of_value(value: Scalar) -> int:
    match value:
        case Load() | Constant():
            return 0
        case Apply():
            spelling = spell(value)
            inside = sum(map(_cost_of_value, operands(spelling)))
        case other:
            assert_never(other)
    match spelling:
        case Infix("/"):
            return inside + _DIVISION
        case Call(function):
            return inside + _CALLS.get(function, 1)
        case Infix() | Truth():
            return inside + 1
        case other:
            assert_never(other)
