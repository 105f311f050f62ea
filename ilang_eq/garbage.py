"""Cyclic garbage while much is computed: Python looks for it each time some hundred objects more are alive.

A search makes hundreds of thousands of objects that are no garbage, and few cycles, of a few megabytes in all.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

OBJECTS = 100_000
"""How many more objects are alive when garbage is looked for again: some ten megabytes."""


@dataclass(slots=True)
class _Usual:
    """What the process goes by otherwise, while ``users`` threads want it otherwise."""

    lock: Lock = field(default_factory=Lock)
    users: int = 0
    threshold: tuple[int, int, int] = (0, 0, 0)


_USUAL = _Usual()


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Looks for garbage seldom; not at all where the process does not."""
    with _USUAL.lock:
        _USUAL.users += 1
        if _USUAL.users == 1:
            _USUAL.threshold = gc.get_threshold()
            objects, *older = _USUAL.threshold
            gc.set_threshold(objects and max(objects, OBJECTS), *older)
    try:
        yield
    finally:
        with _USUAL.lock:
            _USUAL.users -= 1
            if not _USUAL.users:
                gc.set_threshold(*_USUAL.threshold)
