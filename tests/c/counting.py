"""Kernels that count what they ask for."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from ilang_eq.c.build import build


def counters(rewritten: Callable[[str], str], size: int, monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Has kernels built of their sources as ``rewritten``; the list gets the ``size`` counters ``asked`` of each."""
    found: list[np.ndarray] = []

    def built(source: str, sanitize: bool = False) -> object:
        path = build(rewritten(source), sanitize)
        found.append(np.ctypeslib.as_array((ctypes.c_int * size).in_dll(ctypes.CDLL(str(path)), "asked")))
        found[-1][:] = 0  # the library may have been loaded before
        return path

    monkeypatch.setattr("ilang_eq.c.kernel.build", built)
    return found
