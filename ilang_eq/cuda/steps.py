"""What one call launches, in numbers: blocks, extents, and memory beside the arrays, for given shapes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ilang_eq.cuda.emit import Entry, Module
from ilang_eq.lower.interface import Shapes, size_at
from ilang_eq.lower.ir import For

MOST_BLOCKS = 2**31 - 1
"""What a grid may have along x."""
BLOCKS_WITH_SCRATCH = 2048
"""Blocks where each needs device memory of its own: more than run at once on any device there is."""


@dataclass(frozen=True, slots=True)
class Step:
    """One launch. ``scratch`` is in floats, for all blocks together."""

    entry: Entry
    blocks: int
    scratch: tuple[int, ...]
    extents: tuple[int, ...]


def steps(module: Module, shapes: Shapes) -> tuple[Step, ...]:
    """The launches of a call with inputs of these shapes; one that has nothing to do is left out."""
    found: list[Step] = []
    for entry in module.entries:
        tasks = prod(_trips(loop, shapes) for loop in entry.grid)
        blocks = min(tasks, BLOCKS_WITH_SCRATCH if entry.scratch else MOST_BLOCKS)
        if blocks == 0:
            continue
        scratch = tuple(blocks * prod(size_at(size, shapes) for size in piece.dims) for piece in entry.scratch)
        extents = tuple(shapes[extent.input][extent.dim] for extent in entry.extents)
        found.append(Step(entry, blocks, scratch, extents))
    return tuple(found)


def workspaces(module: Module, shapes: Shapes) -> dict[str, int]:
    """The floats of every buffer that launches hand on to each other."""
    return {b.name: prod(size_at(size, shapes) for size in b.dims) for b in module.workspaces}


def _trips(loop: For, shapes: Shapes) -> int:
    length = shapes[loop.extent.input][loop.extent.dim]
    return -(-(length if loop.limit is None else min(loop.limit, length)) // loop.step)
