"""What to compute where an axis has no elements: moving a division out of a sum, or correcting it online, is right for
sums of something. Of nothing, they leave 0/0."""

from __future__ import annotations

from dataclasses import replace

from ilang_eq.lang.canonical import canonical
from ilang_eq.lang.component import Component
from ilang_eq.lang.unwiring import unwire
from ilang_eq.lang.wiring import wire
from ilang_eq.lower.ir import Program
from ilang_eq.lower.lowering import lower


def where_empty(program: Program, component: Component, meaning: Component | None = None) -> Program | None:
    """What computes ``component`` as it was written; None if ``program``, which it was lowered to, is right there too.

    Args:
        program: with its schedule.
        component: what that was lowered from.
        meaning: what ``component`` was rewritten from; None if it was not.
    """
    written = canonical(wire(meaning or component))
    if not program.corrections and written == canonical(wire(component)):
        return None
    return replace(lower(wire(unwire(written))), precision=program.precision)
