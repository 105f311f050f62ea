"""Our kernels: the schedule that the cost model chooses, or one that was found before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.contest import Prepared
from benchmarks.workloads import Workload
from ilang_eq import optimize
from ilang_eq.c.kernel import CKernel
from ilang_eq.lang.reading import read_component
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.rewrites import default, rule_set


def prepare(
    mode: str, workload: Workload, arrays: Sequence[np.ndarray], threads: int, schedule: str | None
) -> Prepared:
    """Search (without measuring anything) unless ``schedule`` is given, compile, and prepare the weights."""
    predicted = None
    if schedule is None:
        rules = sum(map(rule_set, workload.rules), start=default)
        component, constants = read_component(workload.text), workload.constants
        best = optimize(component, workload.shapes, threads=threads, rules=rules, constants=constants, database=False)
        schedule, predicted = str(best), best.cost
    kernel = CKernel(lower(wire(read_component(schedule))), threads)
    pairs = list(zip(kernel.program.inputs, arrays, workload.inputs, strict=True))
    call = kernel.prepare(**{name: array for name, array, argument in pairs if argument.constant})
    given = [array for _, array, argument in pairs if not argument.constant]
    out = call(*given)
    return Prepared(
        cold=lambda: call(*given),
        warm=lambda: call(*given, out=out),
        as_numpy=np.asarray,
        schedule=schedule,
        predicted=predicted,
    )
