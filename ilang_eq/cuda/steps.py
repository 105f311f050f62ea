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
        scratch: offsets of each step's own memory.
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
    """Places for the workspaces of so many floats, and for the scratch memory of ``launches``.

    What is not needed at the same time may lie in the same place: the largest are placed first, each as far to the
    front as those allow that it meets.
    """
    scratch = [(n, k) for n, step in enumerate(launches) for k in range(len(step.scratch))]
    wanted = [_Wanted(count, *_life(name, launches)) for name, count in handed_on.items()]
    wanted += [_Wanted(launches[n].scratch[k], n, n) for n, k in scratch]
    offsets: dict[int, int] = {}
    for one in sorted(range(len(wanted)), key=lambda number: -wanted[number].floats):
        offsets[one] = 0
        for other in sorted((o for o in offsets if o != one and wanted[o].meets(wanted[one])), key=offsets.__getitem__):
            if offsets[one] + wanted[one].bytes > offsets[other]:
                offsets[one] = max(offsets[one], offsets[other] + wanted[other].bytes)
    places = iter(offsets[number] for number in range(len(wanted)))
    workspaces = {name: next(places) for name in handed_on}
    own = tuple(tuple(next(places) for _ in step.scratch) for step in launches)
    return Layout(max((offsets[n] + wanted[n].bytes for n in offsets), default=0), workspaces, own)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A buffer of so many floats, needed from one launch to another."""

    floats: int
    first: int
    last: int

    @property
    def bytes(self) -> int:
        """Its size, so that the next begins where buffers may."""
        return -(-_FLOAT * self.floats // _ALIGNED) * _ALIGNED

    def meets(self, other: _Wanted) -> bool:
        """Whether there is a launch that needs both."""
        return self.first <= other.last and other.first <= self.last


def _life(name: str, launches: tuple[Step, ...]) -> tuple[int, int]:
    """The first and the last launch that touches the buffer ``name``; the first one for a buffer that none does."""
    touching = [n for n, step in enumerate(launches) if name in step.entry.pointers]
    return (touching[0], touching[-1]) if touching else (0, 0)


def _trips(loop: For, shapes: Shapes) -> int:
    length = shapes[loop.extent.input][loop.extent.dim]
    return -(-(length if loop.limit is None else min(loop.limit, length)) // loop.step)
