"""The data caches of this processor, as Linux describes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
HASHED_WAY = 64
"""Shared caches spread addresses over their sets by a hash: lines compete with none at any fixed distance."""
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True, slots=True)
class Cache:
    """One level: capacity and way in bytes, and whether several cores share it."""

    level: int
    bytes: int
    way_bytes: int
    shared: bool


def data_caches() -> tuple[Cache, ...]:
    """From the first level on; empty where the system does not tell.

    A level is shared if more processors have it than have the first, or if it is the third or a later one: the only
    core of a virtual machine shares that with neighbours it cannot see.
    """
    found = []
    for entry in sorted(_CACHES.glob("index*")):
        try:
            if _text(entry, "type") != "Instruction":
                found.append(_cache(entry))
        except (OSError, ValueError):
            continue
    found.sort(key=lambda pair: pair[0].level)
    own = found[0][1] if found else ""
    shared = [cache.shared or members != own for cache, members in found]
    return tuple(
        replace(cache, shared=s, way_bytes=HASHED_WAY if s else cache.way_bytes)
        for (cache, _), s in zip(found, shared, strict=True)
    )


def _cache(entry: Path) -> tuple[Cache, str]:
    """One level, and the list of processors that have it."""
    size, ways, level = (
        _size(_text(entry, "size")),
        int(_text(entry, "ways_of_associativity")),
        int(_text(entry, "level")),
    )
    return Cache(level, size, size // max(ways, 1), level > 2), _text(entry, "shared_cpu_list")


def _text(entry: Path, name: str) -> str:
    return (entry / name).read_text(encoding="ascii").strip()


def _size(text: str) -> int:
    return int(text[:-1]) * _UNITS[text[-1]] if text[-1] in _UNITS else int(text)
