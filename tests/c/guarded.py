"""Kernels that write into the middle of an array, so that a write beyond the end of their output shows."""

from __future__ import annotations

import numpy as np

from ilang_eq.c.kernel import CKernel

BEYOND, UNTOUCHED = 64, 7.0


def run_guarded(kernel: CKernel, shape: tuple[int, ...], *inputs: np.ndarray) -> np.ndarray:
    """The output of ``kernel``, of ``shape``; what lies beyond it is as it was."""
    size = int(np.prod(shape))
    array = np.full(size + BEYOND, UNTOUCHED, np.float32)
    out = array[:size].reshape(shape)
    kernel(*inputs, out=out)
    assert (array[size:] == UNTOUCHED).all(), "written beyond the end"
    return out
