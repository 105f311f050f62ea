"""Which workspace buffers of a program can share memory: those that are never alive at the same time.

A buffer lives from the first kernel that touches it to the last. Buffers are given slots as a linear scan gives
registers (Poletto and Sarkar, TOPLAS 21(5), 1999); extents are not known, so a slot whose buffers are of the same shape
is preferred, and any free one to a new one: a slot is as large as its largest buffer.
"""

from __future__ import annotations

from ilang_eq.lower.ir import Buffer, Program
from ilang_eq.lower.walk import buffers_of


def lifetimes(program: Program) -> dict[str, tuple[int, int]]:
    """The first and the last kernel, by number, that touch each buffer that some kernel touches."""
    found: dict[str, tuple[int, int]] = {}
    for position, kernel in enumerate(program.kernels):
        for name in buffers_of(kernel.body):
            found[name] = (found.get(name, (position, 0))[0], position)
    return found


def slots(program: Program) -> tuple[tuple[Buffer, ...], ...]:
    """The workspace buffers, those that share memory together; each group by the time of its buffers."""
    lives = lifetimes(program)
    waiting = [buffer for buffer in program.buffers if buffer.role == "workspace" and buffer.name in lives]
    groups: list[list[Buffer]] = []
    for buffer in sorted(waiting, key=lambda buffer: lives[buffer.name]):
        free = [group for group in groups if lives[group[-1].name][1] < lives[buffer.name][0]]
        if free:
            max(free, key=lambda group: _likeness(group[-1], buffer)).append(buffer)
        else:
            groups.append([buffer])
    return tuple(map(tuple, groups))


def _likeness(one: Buffer, other: Buffer) -> int:
    """2 for buffers of as many elements whatever the extents, 1 for as many dimensions, else 0."""
    if sorted(map(str, one.dims)) == sorted(map(str, other.dims)):
        return 2
    return int(len(one.dims) == len(other.dims))
