"""Whether stored text can be trusted: it is parsed, wired, lowered, and compared with what it should compute.

Algebra may have changed every expression, so texts are not compared but run: on small random arrays in float64, where
equal functions differ by rounding and others do not agree by chance. What was found out is remembered.
"""

from __future__ import annotations

import math
from functools import lru_cache
from random import Random

import numpy as np

from ilang_eq.errors import ILangError
from ilang_eq.lang.component import Component
from ilang_eq.lang.graph import Graph
from ilang_eq.lang.interpreter import interpret
from ilang_eq.lang.reading import read_component
from ilang_eq.lang.shapes import Dimension, infer
from ilang_eq.lang.wiring import wire

_EXTENTS = (3, 2, 4)
"""Extents of the first, second, third dimension class, and so on in turn: neighbours differ."""

_TOLERANCE = 1e-9


@lru_cache(maxsize=4096)
def verified(graph: Graph, text: str) -> Component | None:
    """The component that ``text`` spells if it computes what ``graph`` does and can be lowered, else None."""
    return _reference(graph).verified(text)


@lru_cache(maxsize=64)
def _reference(graph: Graph) -> _Reference:
    return _Reference(graph)


class _Reference:
    """What stored schedules must compute: the values of ``graph`` on a few random numbers."""

    def __init__(self, graph: Graph) -> None:
        self._shapes = infer(graph)
        self._inputs = self._random_inputs()
        self._values = interpret(graph, self._inputs)

    def verified(self, text: str) -> Component | None:
        """As ``verified``."""
        from ilang_eq.lower import lower

        try:
            component = read_component(text)
            graph = wire(component)
            found = infer(graph)
            if found.ranks != self._shapes.ranks or found.ties != self._shapes.ties or not self._agrees(graph):
                return None
            lower(graph, alternatives=False)
        except (ILangError, RecursionError):
            return None
        return component

    def _agrees(self, graph: Graph) -> bool:
        results = interpret(graph, self._inputs)
        return len(results) == len(self._values) and all(map(_close, results, self._values))

    def _random_inputs(self) -> list[np.ndarray]:
        """Numbers about 1: neither logarithms nor powers nor quotients leave the reals."""
        rng = Random(0)  # NumPy's generators take longer to import than all else that is done here
        names: dict[Dimension, int] = {}
        arrays = []
        for index, rank in enumerate(self._shapes.ranks):
            classes = [self._shapes.input_extent(index, d) for d in range(rank or 0)]
            extents = [names.setdefault(c, _EXTENTS[len(names) % len(_EXTENTS)]) for c in classes]
            numbers = [rng.uniform(0.5, 1.5) for _ in range(math.prod(extents))]
            arrays.append(np.array(numbers).reshape(extents))
        return arrays


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal but for rounding, wherever the right value is a number."""
    if a.shape != b.shape:
        return False
    known = np.isfinite(b)
    scale = float(np.max(np.abs(b[known]), initial=1.0))
    return bool(np.all(np.abs(a[known] - b[known]) <= _TOLERANCE * scale))
