"""The launches of one call, ready to be queued: arguments lie packed as the driver reads them.

``cuLaunchKernel`` takes, for each launch, an array of addresses of arguments. All arguments are eight bytes: pointers,
then extents. Those of a call lie in one array, where inputs and outputs come first: a call writes these, and the rest
stays.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ilang_eq.cuda.device import Memory
from ilang_eq.cuda.steps import Layout, Step

_BYTES = 8


class Launch(NamedTuple):
    """What ``cuLaunchKernel`` takes: the handle of a kernel, sizes, the address of its arguments' addresses.

    ``shared`` is in bytes, beside what the kernel declares.
    """

    function: int
    blocks: int
    threads: int
    shared: int
    arguments: int


class Packed(NamedTuple):
    """Launches and their arguments, of one thread: two must not write the same slots.

    Args:
        slots: every argument; inputs and written outputs first.
        launches: in order.
        addresses: what ``launches`` point to; nobody else keeps it.
        memory: workspaces and scratch, if there are any.
    """

    slots: array[int]
    launches: tuple[Launch, ...]
    addresses: tuple[array[int], ...]
    memory: Memory | None


def packed(
    names: Sequence[str], steps: Sequence[Step], layout: Layout, functions: Mapping[str, Any], memory: Memory | None
) -> Packed:
    """``steps`` of kernels that were loaded as ``functions``; ``names`` are those of the inputs and written outputs."""
    start = 0 if memory is None else memory.pointer
    slots = array("Q", [0] * len(names))
    places = {name: n for n, name in enumerate(names)}
    for name, offset in layout.workspaces.items():
        places[name] = len(slots)
        slots.append(start + offset)
    taken: list[list[int]] = []
    for step, scratch in zip(steps, layout.scratch, strict=True):
        own = [*(start + offset for offset in scratch), *step.extents]
        taken.append([*(places[name] for name in step.entry.pointers), *range(len(slots), len(slots) + len(own))])
        slots.extend(own)
    # from here on, slots stay where they are
    first = slots.buffer_info()[0]
    addresses = tuple(array("Q", [first + _BYTES * n for n in numbers]) for numbers in taken)
    launches = tuple(
        Launch(
            functions[step.entry.name].ptr,
            step.blocks,
            step.entry.block.threads,
            step.entry.shared,
            at.buffer_info()[0],
        )
        for step, at in zip(steps, addresses, strict=True)
    )
    return Packed(slots, launches, addresses, memory)
