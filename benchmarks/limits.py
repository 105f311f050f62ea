"""What a workload takes at least on a machine: no schedule can be faster."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.workloads import Shape, Workload
from ilang_eq.extract.machine import Level, Machine

_FLOAT = 4


def limit(workload: Workload, results: Sequence[Shape], machine: Machine, threads: int) -> tuple[float, str]:
    """Seconds, and what holds them: "arithmetic", or the level that the arguments and results come from.

    Arithmetic is the workload's elementary operations at the measured rate of each; they share the vector ports, so
    their times add up. Memory moves every argument and result once, at the bandwidth of the first level that holds them
    all, with several rows side by side where that is quicker: between warm calls they stay there.

    Args:
        results: the shapes of what it returns.
    """
    arithmetic = sum(count / getattr(machine.vector, kind) for kind, count in workload.work.items()) / threads
    moved = _FLOAT * sum(map(math.prod, (*workload.shapes, *results)))
    level = holding(moved, machine, threads)
    memory = moved / (level.bandwidth if threads == 1 else level.bandwidth_all) / level.abreast
    return max((arithmetic * 1e-9, "arithmetic"), (memory * 1e-9, level.name))


def holding(amount: float, machine: Machine, threads: int) -> Level:
    """The first level with room for ``amount`` bytes, spread over the threads' own caches."""
    return next(level for level in machine.levels if amount <= level.bytes * (1 if level.shared else threads))
