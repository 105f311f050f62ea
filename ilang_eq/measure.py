"""Timing the best few schedules for real: warm, interleaved, medians; building is not counted."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ilang_eq.backends import TARGETS, Kernel
from ilang_eq.errors import ArrayError, BuildError
from ilang_eq.optimized import Schedule

CONTENDERS = 4
ROUNDS = 7


def measured(
    schedules: Sequence[Schedule],
    extents: Mapping[tuple[int, int], int],
    target: str,
    threads: int,
    budget_s: float | None,
    seed: int,
    constants: Sequence[int] = (),
    precision: str = "float32",
) -> list[Schedule]:
    """``schedules`` with the first few timed, the fastest first; the others follow in their old order.

    A kernel that does not build counts as infinitely slow. Stops early, with what it has, when ``budget_s`` is spent.
    What depends on ``constants`` alone is computed before, and not timed.

    Raises:
        DeviceError: a target whose device is missing or full.
    """
    deadline = time.perf_counter() + (budget_s or float("inf"))
    backend = TARGETS[target]()
    arrays = backend.place(random_inputs(extents, schedules[0].component.inputs, seed))
    times: dict[int, list[float]] = {n: [] for n in range(min(CONTENDERS, len(schedules)))}
    make = partial(Schedule.compile, target=target, threads=threads, precision=precision)
    calls = {n: call for n in times if (call := _warm(make, schedules[n], arrays, constants)) is not None}
    for _ in range(ROUNDS):
        for n, call in calls.items():
            times[n].append(backend.seconds(call))
        if time.perf_counter() > deadline:
            break
    timed = [
        replace(schedules[n], measured=statistics.median(spent) if spent else float("inf"))
        for n, spent in times.items()
    ]
    return sorted(timed, key=lambda s: s.seconds) + list(schedules[len(timed) :])


def random_inputs(extents: Mapping[tuple[int, int], int], inputs: int, seed: int) -> list[np.ndarray]:
    """Standard normal float32 arrays of the given extents. Raises ArrayError if they do not fit in memory."""
    rng = np.random.default_rng(seed)
    shapes: list[list[int]] = [[] for _ in range(inputs)]
    for (k, _), n in sorted(extents.items()):
        shapes[k].append(n)
    try:
        return [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]
    except (MemoryError, ValueError):
        raise ArrayError(f"inputs of shapes {shapes} do not fit in memory", expected="smaller shapes") from None


def _warm(
    make: Callable[[Schedule], Kernel], schedule: Schedule, arrays: Sequence[Any], constants: Sequence[int]
) -> Callable[[], Any] | None:
    """A call of the schedule's kernel, built and run once; None where it cannot be built."""
    try:
        call = recurring_call(make(schedule), arrays, constants)
        call()
    except BuildError:
        return None
    return call


def recurring_call(kernel: Kernel, arrays: Sequence[Any], constants: Sequence[int]) -> Callable[..., Any]:
    """What recurs of running ``kernel`` on ``arrays`` if inputs number ``constants`` stay the same; takes ``out=``."""
    if not constants:
        return partial(kernel, *arrays)
    prepared = kernel.prepare(**{f"in{k}": arrays[k] for k in constants})
    return partial(prepared, *(array for k, array in enumerate(arrays) if k not in constants))
