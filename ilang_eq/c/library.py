"""A generated library, loaded, and the threads it may use."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ilang_eq.errors import BuildError


@dataclass(frozen=True, slots=True)
class Library:
    """The entry points of a library; see ``emit.py`` for what they take."""

    run: Any
    workspace: Any


def load(path: Path) -> Library:
    """The library at ``path``. Raises BuildError if it does not load."""
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise BuildError(f"a kernel was compiled but does not load: {error}") from None
    run, workspace = library.ilang_run, library.ilang_workspace
    run.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_int]
    run.restype = ctypes.c_int
    workspace.argtypes = [ctypes.c_void_p, ctypes.c_int]
    workspace.restype = ctypes.c_int64
    return Library(run, workspace)


class _OpenMP:
    """Whether OpenMP's threads exist, and were lost to a fork: a child that waits for them would wait for ever."""

    started = False
    lost = False

    @classmethod
    def after_fork(cls) -> None:
        cls.lost = cls.started


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_OpenMP.after_fork)


def threads_now(threads: int) -> int:
    """``threads``, or 1 in a process forked from one that had used OpenMP."""
    if threads == 1 or _OpenMP.lost:
        return 1
    if not _OpenMP.started:
        # only once: what Python remembers of a class is lost whenever an attribute is set
        _OpenMP.started = True
    return threads
