"""Where in one workspace arrays lie that are not all alive at the same time.

Greedy by size (Pisarchyk and Lee, arXiv 2001.03288): the largest array first, each into the smallest gap that it fits
among those alive with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LINE = 16
"""Floats of a cache line: every array begins at a multiple."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """An array of ``floats`` elements, alive from step ``first`` to step ``last``, both included."""

    name: str
    floats: int
    first: int
    last: int

    def meets(self, other: Lifetime) -> bool:
        """Whether both are alive at some step."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class Layout:
    """The offset of each array, in floats, and the floats of them all."""

    offsets: Mapping[str, int]
    floats: int


def planned(arrays: Sequence[Lifetime]) -> Layout:
    """A place for each of ``arrays`` such that no two that meet overlap."""
    placed: list[tuple[int, Lifetime]] = []
    for array in sorted(arrays, key=lambda array: (-array.floats, array.first, array.name)):
        taken = sorted((at, at + padded(other.floats)) for at, other in placed if other.meets(array))
        placed.append((_gap(taken, padded(array.floats)), array))
    offsets = {array.name: at for at, array in placed}
    return Layout(offsets, max((at + padded(array.floats) for at, array in placed), default=0))


def padded(floats: int) -> int:
    """``floats`` rounded up to whole cache lines."""
    return -(-floats // LINE) * LINE


def _gap(taken: Sequence[tuple[int, int]], floats: int) -> int:
    """The beginning of the smallest gap between ``taken`` that holds ``floats``, else the end of the last."""
    gaps: list[tuple[int, int]] = []
    end = 0
    for first, last in taken:
        if first - end >= floats:
            gaps.append((first - end, end))
        end = max(end, last)
    return min(gaps)[1] if gaps else end
