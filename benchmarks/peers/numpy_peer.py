"""NumPy: the formula, and what an expert would write."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from benchmarks.contest import Prepared
from benchmarks.hand_picked import NUMPY_BEST, NUMPY_INTO
from benchmarks.peers import numpy_ops
from benchmarks.workloads import Workload


def prepare(
    mode: str, workload: Workload, arrays: Sequence[np.ndarray], threads: int, schedule: str | None
) -> Prepared | None:
    """The formula writes into warm memory where NumPy can; None if there is no ``best`` beyond it."""
    if mode == "best":
        best = NUMPY_BEST.get(workload.component)
        return None if best is None else Prepared(lambda: best(np, *arrays), None, np.asarray)
    into = NUMPY_INTO.get(workload.component)
    cold = partial(workload.formula, numpy_ops, *arrays)
    if into is None:
        return Prepared(cold, None, np.asarray)
    out = cold()
    return Prepared(cold, lambda: into(np, out, *arrays), np.asarray)
