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
_FLOAT = 4
_ALIGNED = 256
"""Where buffers begin: as allocators align them, so that accesses of 16 bytes and whole lines are aligned too."""


@dataclass(frozen=True, slots=True)
class Step:
    """One launch. ``scratch`` is in floats, for all blocks together."""

    entry: Entry
    blocks: int
    scratch: tuple[int, ...]
    extents: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where buffers lie in one piece of device memory.

    Args:
        bytes: its size.
        workspaces: offsets of the buffers that launches hand on, in the order of their names.
        scratch: offsets of each step's own memory. Steps follow each other, so they share it.
    """

    bytes: int
    workspaces: dict[str, int]
    scratch: tuple[tuple[int, ...], ...]


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


def layout(handed_on: dict[str, int], launches: tuple[Step, ...]) -> Layout:
    """Places for the workspaces of so many floats, and behind them for the scratch memory of ``launches``."""
    offsets, shared = _in_a_row(0, tuple(handed_on.values()))
    scratch: list[tuple[int, ...]] = []
    end = shared
    for step in launches:
        places, behind = _in_a_row(shared, step.scratch)
        scratch.append(places)
        end = max(end, behind)
    return Layout(end, dict(zip(handed_on, offsets, strict=True)), tuple(scratch))


def _in_a_row(start: int, floats: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """Offsets of buffers one after the other from ``start`` on, and where the last one ends."""
    offsets: list[int] = []
    for count in floats:
        offsets.append(start)
        start += -(-_FLOAT * count // _ALIGNED) * _ALIGNED
    return tuple(offsets), start


def _trips(loop: For, shapes: Shapes) -> int:
    length = shapes[loop.extent.input][loop.extent.dim]
    return -(-(length if loop.limit is None else min(loop.limit, length)) // loop.step)
