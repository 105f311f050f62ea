"""Memory for results: large ones use it again once nothing refers to the last one any more.

The system hands out fresh memory page by page, at the first touch of each: for a result of 64 MB that takes as long as
computing the softmax in it. Caching allocators spare PyTorch's and JAX's users that on a GPU; here it is the same.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]

FLOAT32 = np.dtype(np.float32)

ALIGNMENT = 64
"""Of memory that is ours, in bytes: a cache line, and the widest vector."""

PAGE = 4096
"""Where large results begin, in bytes. NumPy's large arrays begin 16 bytes into a page: a load that comes as far into
its page as a store just before waits for it, and none does if results begin before. GELU of 4096² takes 1.5 times as
long on Zen 3 if its result begins 64 bytes into a page."""

LARGE = 1 << 20
"""Bytes from which a result is large. The C library itself keeps smaller ones."""

IN_LINES = 1 << 18
"""Bytes from which a result begins with a cache line, which takes 1.5 µs to find. Products of 512 KiB and more that
begin 16 bytes further on take 1.01 to 1.10 times as long on Emerald Rapids, smaller ones 0.99 to 1.00."""

KEPT = 256 << 20
"""The most bytes that are kept for later results."""

_free: dict[int, Floats] = {}
"""Blocks that no result uses, by identity, in the order in which they came back: any number of threads take and give
them. There are never many, as all are large."""

_owners: dict[int, weakref.ref[ctypes.Array[ctypes.c_float]]] = {}
"""One for each result that is alive, which gives its block back when it is not."""


def large(shape: tuple[int, ...]) -> bool:
    """Whether a result of ``shape`` is worth the trouble."""
    return math.prod(shape) * 4 >= LARGE


def maker(shape: tuple[int, ...]) -> Callable[[], Floats]:
    """A function that makes arrays of ``shape``, not initialised."""
    if large(shape):
        return partial(result, shape)
    if math.prod(shape) * 4 >= IN_LINES:
        return partial(aligned, shape)
    return partial(np.empty, shape, FLOAT32)


def aligned(shape: tuple[int, ...]) -> Floats:
    """Fresh memory that begins with a cache line: vectors that cross lines take up to half as long again to load."""
    memory = np.empty(math.prod(shape) + ALIGNMENT // 4, FLOAT32)
    return np.ndarray(shape, FLOAT32, memory, -memory.ctypes.data % ALIGNMENT)


def result(shape: tuple[int, ...]) -> Floats:
    """An array of ``shape``, not initialised, in memory that an earlier result of that size may have had."""
    floats = math.prod(shape)
    block = _taken(floats)
    # whatever refers to the array, or to a view of it, refers to this
    owner = (ctypes.c_float * floats).from_address(block.ctypes.data + -block.ctypes.data % PAGE)
    reference = weakref.ref(owner, partial(_given_back, block))
    _owners[id(reference)] = reference
    return np.frombuffer(memoryview(owner), dtype=np.float32).reshape(shape)


def _taken(floats: int) -> Floats:
    wanted = floats + PAGE // 4
    for key, block in reversed(list(_free.items())):
        if block.size == wanted and _free.pop(key, None) is block:
            return block
    return np.empty(wanted, dtype=np.float32)


def _given_back(block: Floats, owner: weakref.ref[ctypes.Array[ctypes.c_float]]) -> None:
    _owners.pop(id(owner), None)
    if block.nbytes > KEPT:
        return
    _free[id(block)] = block
    kept = sum(each.nbytes for each in list(_free.values()))
    for key, oldest in list(_free.items()):
        if kept <= KEPT:
            break
        kept -= oldest.nbytes
        _free.pop(key, None)
