"""Our kernels: the schedule that the cost model chooses, or one that was found before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.contest import Prepared
from benchmarks.workloads import Workload
from ilang_eq import optimize
from ilang_eq.backends import compile_component
from ilang_eq.lang.reading import read_component


def prepare(
    mode: str, workload: Workload, arrays: Sequence[np.ndarray], threads: int, schedule: str | None
) -> Prepared:
    """Search (without measuring anything) unless ``schedule`` is given, and compile."""
    predicted = None
    if schedule is None:
        best = optimize(read_component(workload.text), workload.shapes, threads=threads, database=False)
        schedule, predicted = str(best), best.cost
    kernel = compile_component(read_component(schedule), threads=threads)
    out = kernel(*arrays)
    return Prepared(
        cold=lambda: kernel(*arrays),
        warm=lambda: kernel(*arrays, out=out),
        as_numpy=np.asarray,
        schedule=schedule,
        predicted=predicted,
    )
