"""JAX: the formula under ``jit``."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.contest import Prepared
from benchmarks.peers import jax_ops
from benchmarks.workloads import Workload

jax: Any = importlib.import_module("jax")


def prepare(
    mode: str, workload: Workload, arrays: Sequence[np.ndarray], threads: int, schedule: str | None
) -> Prepared:
    """Compiled for the shapes of ``arrays``; its thread pool follows the processors this process may use."""
    jax.clear_caches()
    given = [jax.device_put(array) for array in arrays]
    compiled = jax.jit(partial(workload.formula, jax_ops)).lower(*given).compile()

    def run() -> Any:
        return compiled(*given).block_until_ready()

    return Prepared(run, None, np.asarray)
