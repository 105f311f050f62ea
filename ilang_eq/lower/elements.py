"""Loops over the elements of an instance that one iteration of a block covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ilang_eq.lower.ir import Extent, For, Statement
from ilang_eq.lower.nest import Block, Instance, NestLoop
from ilang_eq.lower.storage import Parts, split_step


@dataclass(frozen=True, slots=True)
class Elements:
    """A position along each output axis of an instance, and the fresh loops (outermost first) that make it up."""

    positions: dict[str, Parts]
    loops: tuple[For, ...]

    def nest(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        """``body`` inside the fresh loops."""
        inner = tuple(body)
        for loop in reversed(self.loops):
            inner = (For(loop.variable, loop.extent, loop.step, loop.limit, loop.outer, inner),)
        return inner


def elements(instance: Instance, block: Block, extents: Sequence[Extent]) -> Elements:
    """Every element of ``instance`` under the current iteration of the loops around ``block``."""
    taken = {loop.variable for loop in block.path()}
    positions: dict[str, Parts] = {}
    fresh: list[For] = []
    for axis, extent in zip(instance.expr.output, extents, strict=True):
        factors = instance.expr.factors[axis]
        parts: dict[int, tuple[str, NestLoop | None]] = {}
        for level, loop in enumerate(instance.loops[axis]):
            if loop is not None and block.inside(loop):
                parts[level] = (loop.variable, loop)
        for level in _levels_to_open(instance.loops[axis], block):
            whole = level == -1
            name = _fresh(axis, taken)
            step = 1 if whole else split_step(factors, level)
            limit = _limit(factors, len(parts) if whole else level)
            fresh.append(For(name, extent, step, limit, tuple(variable for variable, _ in parts.values()), ()))
            parts[len(factors) if whole else level] = (name, None)
        positions[axis] = [parts[level] for level in sorted(parts)]
    return Elements(positions, tuple(fresh))


def _levels_to_open(loops: Sequence[NestLoop | None], block: Block) -> list[int]:
    """The levels that need a fresh loop: one (-1) for all that is left, if what is around are the outermost in order.

    Else a buffer somewhere on the way has folded an inner level alone, and has a dimension for each other one.
    """
    around = {level: loop.depth for level, loop in enumerate(loops) if loop is not None and block.inside(loop)}
    missing = [level for level in range(len(loops)) if level not in around]
    if not missing:
        return []
    return [-1] if sorted(around, key=lambda level: around[level]) == list(range(len(around))) else missing


def _limit(factors: tuple[int, ...], level: int) -> int | None:
    """The length of what lies under the loops outside ``level``; None for the whole axis."""
    return split_step(factors, level - 1) if level else None


def _fresh(axis: str, taken: set[str]) -> str:
    name = next(n for k in range(1, len(taken) + 2) if (n := axis if k == 1 else f"{axis}_{k}") not in taken)
    taken.add(name)
    return name
