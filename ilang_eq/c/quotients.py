"""Division by what a loop does not move: a vector division takes as long as sixteen multiplications.

before →  for j: out[j] = x[j] / d
after  →  inverse = 1 / d;  if it is a normal number: for j: out[j] = x[j] * inverse;  else as before

See ``lower/quotients.py`` for what that does to results.
"""

from __future__ import annotations

from dataclasses import dataclass

from ilang_eq.lower.ir import Accumulate, Assign, For, Load, Statement
from ilang_eq.lower.quotients import divisors, multiplied
from ilang_eq.lower.walk import declared_in, mentions, updates


@dataclass(frozen=True, slots=True)
class Inverted:
    """A loop's ``body`` with products with ``lower.quotients.INVERSE`` for its quotients by ``divisor``."""

    divisor: Load
    body: tuple[Statement, ...]


def inverted(loop: For) -> Inverted | None:
    """An innermost ``loop`` without division; None unless all that it divides by is one place that it does not move."""
    written = {update.target.buffer for update in updates(loop.body)} | set(declared_in(loop.body))
    found = {d for update in updates(loop.body) for d in divisors(update.value)}
    match list(found):
        case [Load() as d] if not mentions(d, loop.variable) and d.buffer not in written:
            return Inverted(d, tuple(multiplied(s, d) if isinstance(s, Assign | Accumulate) else s for s in loop.body))
        case _:
            return None
