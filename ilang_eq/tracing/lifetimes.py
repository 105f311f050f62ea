"""When values of a traced program are dropped, and whose memory can be used again. Loads torch.

What a kernel writes is memory of its own, but PyTorch may return a view of what it reads. So a region's result lives as
long as anything that PyTorch made of it, and its memory is used again only if nothing of that is returned.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ilang_eq.c.memory import Floats, aligned
from ilang_eq.tracing.kernels import bucket
from ilang_eq.tracing.nodes import Value, references
from ilang_eq.tracing.steps import RegionCall, Values


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do.

    Attributes:
        name: what it makes.
        reads: what it reads.
        run: does it; a ``RegionCall`` for a region.
        dropped: values that nothing needs after it.
        kept: whether its result is memory that may be used again, by a later step or at a later call.
        shown: whether PyTorch reads its result.
        freed: results of that kind whose memory nothing needs after it.
    """

    name: str
    reads: tuple[str, ...]
    run: Callable[[Values], Any]
    dropped: tuple[str, ...] = ()
    kept: bool = False
    shown: bool = True
    freed: tuple[str, ...] = ()


class Memory(threading.local):
    """Memory between uses, for each thread its own: fresh memory costs page faults."""

    def __init__(self) -> None:
        self._free: dict[int, list[Floats]] = {}

    def take(self, floats: int) -> Floats:
        """Memory for at least so many numbers: a power of two, so that a few sizes serve all."""
        size = bucket(floats)
        free = self._free.get(size)
        return free.pop() if free else aligned((size,))

    def give(self, memory: Floats) -> None:
        """Memory that ``take`` returned, when it is not needed any more."""
        self._free.setdefault(memory.size, []).append(memory)

    def clear(self) -> None:
        """Forget all of it."""
        self._free.clear()


def released(steps: Sequence[Step], outputs: tuple[Value, ...]) -> list[Step]:
    """``steps`` that drop every value after its last reader, and say which memory can be used again."""
    last = dict.fromkeys(references(outputs), len(steps))
    for n, step in reversed(list(enumerate(steps))):
        for name in (*step.reads, step.name):
            last.setdefault(name, n)
    ends = dict(last)
    for step in reversed(steps):
        if not isinstance(step.run, RegionCall):
            for name in step.reads:
                ends[name] = max(ends[name], ends[step.name])
    kept = {step.name for step in steps if isinstance(step.run, RegionCall) and ends[step.name] < len(steps)}
    seen = {name for step in steps if not isinstance(step.run, RegionCall) for name in step.reads}
    drops: dict[int, list[str]] = {}
    frees: dict[int, list[str]] = {}
    for step in steps:
        drops.setdefault(last[step.name], []).append(step.name)
        if step.name in kept:
            frees.setdefault(ends[step.name], []).append(step.name)
    return [
        replace(
            step,
            dropped=tuple(drops.get(n, ())),
            kept=step.name in kept,
            shown=step.name in seen,
            freed=tuple(frees.get(n, ())),
        )
        for n, step in enumerate(steps)
    ]
