"""Steps of a reduction that are taken together, where its sums lie in the nearest cache.

before →  for k: for i' < 24: for j' < 48: tile[i'][j'] += a[i + i'][k] * b[k][j']
after  →  for k by 4: for i' < 24: for j' < 48: for k' < 4: tile[i'][j'] += a[i + i'][k + k'] * b[k + k'][j']

Each sum is loaded, added to, and stored, and a core stores but one vector in a cycle or two; with four steps at a time
it multiplies as fast as from registers. (Unroll-and-jam; Callahan, Cocke, Kennedy, JPDC 5(4), 1988.) Sums are added to
in the same order as before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ilang_eq.c.nodes import Loop, VectorNest
from ilang_eq.c.vectors import indented
from ilang_eq.lower.ir import Accumulate, For
from ilang_eq.lower.passes import calls_functions
from ilang_eq.lower.walk import mentions, replace_in_body, updates
from ilang_eq.lower.widths import STEPS


def taken_together(loop: Loop) -> Loop | None:
    """``loop`` with so many of its steps at a time, as far as they are whole; None where nothing is gained."""
    match loop:
        case Loop(For(step=1) as around, (VectorNest() as nest,), part="whole"):
            pass
        case _:
            return None
    outward = [update.target for update in updates(nest.body) if update.target.indices]
    sums = all(isinstance(update, Accumulate) for update in updates(nest.body) if update.target.indices)
    moving = any(mentions(target, around.variable) for target in outward)
    if not nest.rolled or not sums or moving or calls_functions(nest.body) or (around.limit or STEPS) < STEPS:
        return None
    step = f"{around.variable}_step"
    body = replace_in_body(nest.body, around.variable, (around.variable, step))
    steps = For(step, around.extent, 1, STEPS, (*around.outer, around.variable), body)
    together = replace(nest, body=body, steps=steps)
    return replace(loop, source=replace(around, step=STEPS), body=(together,), part="main")


def asked_together(loop: For, asked: Sequence[str]) -> list[str]:
    """What ``loop``, of which each step ``asked``, asks for in so many steps."""
    if not asked:
        return []
    v, asking = loop.variable, f"{loop.variable}_asking"
    word = re.compile(rf"\b{v}\b")
    head = f"for (int64_t {asking} = {v}; {asking} < {v} + {STEPS}; {asking}++) {{"
    return ["UNROLL", head, *indented(word.sub(asking, line) for line in asked), "}"]
