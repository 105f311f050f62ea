"""The processor that this process runs on: its name, and how many threads it may have."""

from __future__ import annotations

import functools
import os
import platform
from pathlib import Path

from ilang_eq.errors import OptionError

_CPUINFO = Path("/proc/cpuinfo")


@functools.lru_cache(maxsize=1)
def processor_name() -> str:
    """What the processor calls itself, else its architecture."""
    try:
        lines = _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Model")))
    return next(named, platform.processor() or platform.machine())


MOST_THREADS = 4096
"""The most threads a kernel is made for: more than any machine runs at once."""


def checked_threads(threads: int | None) -> int:
    """A number of threads: as given, or as many as this process may run on. Raises OptionError."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not isinstance(threads, int) or isinstance(threads, bool) or not 1 <= threads <= MOST_THREADS:
        expected = f"a whole number from 1 to {MOST_THREADS}, or None for all there are"
        raise OptionError(f"threads is {threads!r}", expected=expected)
    return threads
