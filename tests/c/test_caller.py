"""The quick way into kernels: calls under way at once share the threads."""

from __future__ import annotations

import ctypes
import platform
import shutil

import numpy as np
import pytest

from ilang_eq.c.caller import NOT_QUICK, call_of, quick_entry

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

Run = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)


def threads_seen(depth: int, threads: int) -> list[int]:
    """How many threads a call is given, and one made while it runs, and so on."""
    enter = quick_entry()
    seen: list[int] = []
    x, y = np.zeros(2, np.float32), np.zeros(2, np.float32)

    def run(*arguments: int) -> int:
        seen.append(arguments[-1])
        return enter((x,), (y,), ctypes.addressof(call), 0, threads) if len(seen) < depth else 0

    function = Run(run)
    call = call_of(function, (), ((2,),), ((2,),))
    if enter((x,), (y,), ctypes.addressof(call), 0, threads) == NOT_QUICK:
        assert platform.python_implementation() != "CPython", "the quick way in is lost"
        pytest.skip("this interpreter has no quick way in")
    return seen


def test_calls_under_way_share_the_threads() -> None:
    assert threads_seen(5, 8) == [8, 4, 2, 2, 1]
    assert threads_seen(3, 1) == [1, 1, 1]
    assert threads_seen(1, 8) == [8], "those that are over do not count"
