"""tinygrad: the formula under ``TinyJit``; set BEAM in the environment for its search."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.contest import Prepared
from benchmarks.peers import tinygrad_ops
from benchmarks.workloads import Workload

_CAPTURES = 2
"""Calls before a jitted function is replayed."""


def prepare(
    mode: str, workload: Workload, arrays: Sequence[np.ndarray], threads: int, schedule: str | None
) -> Prepared:
    """On tinygrad's CPU device; the number of threads is read when the library is first imported."""
    os.environ["CPU_COUNT"] = str(threads)
    os.environ["DEV"] = "CPU"
    tinygrad: Any = importlib.import_module("tinygrad")
    given = [tinygrad.Tensor(array).realize() for array in arrays]
    jitted = tinygrad.TinyJit(lambda *tensors: workload.formula(tinygrad_ops, *tensors).realize())
    device = tinygrad.Device[tinygrad.Device.DEFAULT]

    def run() -> Any:
        result = jitted(*given)
        device.synchronize()
        return result

    for _ in range(_CAPTURES):
        run()
    return Prepared(run, None, lambda result: result.numpy())
