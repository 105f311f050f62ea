"""Division in a loop by what it does not move: a division takes about eight instructions, a product one.

    before   for j: out[j] = x[j] / sum
    after    inverse = 1 / sum;  if it is a normal number: for j: out[j] = x[j] * inverse;  else as before

See ``lower/quotients.py`` for what that does to results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from ilang_eq.cuda.nodes import Block, Leaf, Sweep
from ilang_eq.cuda.storage import Home
from ilang_eq.cuda.walks import declared_in, leaves_of, loops_of, meets, with_leaves
from ilang_eq.lower.ir import Accumulate, Assign, Buffer, Load
from ilang_eq.lower.quotients import INVERSE, divisors, multiplied
from ilang_eq.lower.walk import mentions

INVERSE_HOME = Home(Buffer(INVERSE.buffer, (), "local"), "registers")
"""Where the reciprocal is."""


FEWEST = 4
"""Divisions of a thread that are worth a reciprocal, and a second version of the loop."""


@dataclass(frozen=True, slots=True)
class Inverted:
    """A ``sweep`` with products with ``INVERSE`` for its quotients by ``divisor``."""

    divisor: Load
    sweep: Sweep


def inverted(node: Sweep, homes: Mapping[str, Home], block: Block) -> Inverted | None:
    """``node`` without division; None unless all that it divides by is one register that it leaves alone.

    Nor where a thread divides less often than ``FEWEST`` times.
    """
    updates = [leaf for leaf in leaves_of([node]) if isinstance(leaf, Assign | Accumulate)]
    found = {d for update in updates for d in divisors(update.value)}
    if len(found) != 1 or meets([node]) or len(updates) < len(leaves_of([node])):
        return None
    (divisor,) = found
    if not isinstance(divisor, Load) or homes[divisor.buffer].where != "registers":
        return None
    changed = {update.target.buffer for update in updates} | declared_in([node])
    moves = any(mentions(divisor, loop.variable) for loop in loops_of([node]))
    if moves or divisor.buffer in changed or _times(node, block) < FEWEST:
        return None

    def product(leaf: Leaf) -> tuple[Leaf, ...]:
        return (multiplied(leaf, divisor) if isinstance(leaf, Assign | Accumulate) else leaf,)

    (made,) = with_leaves([node], product)
    assert isinstance(made, Sweep), "a loop stays one"
    return Inverted(divisor, made)


def _times(node: Sweep, block: Block) -> float:
    """How often a thread runs what is inside."""
    loop, threads = node.source, 1 if node.dim is None else block.along(node.dim)
    mine = inf if loop.limit is None else -(-loop.limit // (loop.step * threads))
    return mine * max((_times(inner, block) for inner in node.body if isinstance(inner, Sweep)), default=1)
