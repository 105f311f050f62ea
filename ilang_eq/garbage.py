"""Cyclic garbage while much is computed: Python looks for it each time some hundred objects more are alive.

A search makes hundreds of thousands of objects that are no garbage, and cycles of a few megabytes a second.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS = 500_000
"""How many more objects are alive when garbage is looked for again: some fifty megabytes."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Looks for garbage seldom; not at all where the process does not. The first of several threads to end restores."""
    objects, *older = gc.get_threshold()
    if not 0 < objects < OBJECTS:
        yield
        return
    gc.set_threshold(OBJECTS, *older)
    try:
        yield
    finally:
        gc.set_threshold(objects, *older)
