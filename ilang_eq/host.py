"""The processor that this process runs on, by name."""

from __future__ import annotations

import functools
import platform
from pathlib import Path

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
