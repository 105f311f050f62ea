"""Axes of a region under construction. Reshapes split them, and what is tied together is split alike.

An axis is a number. Axes that run over the same index set are tied; a class of tied axes may be split into an outer
and an inner one, and then every axis of the class stands for its finest parts in that order. So a tensor whose
dimension is merged from heads and features is a tensor with both, and no expression needs index arithmetic.

Invariants:
  * tied axes have the same extent, and the same parts, pairwise tied
  * the extents of the parts multiply to the extent of the axis
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang_eq.tracing.extents import Extent


class Misaligned(Exception):
    """Two ways to cut one dimension into axes that have no common refinement."""


class Axes:
    """A union-find of axes whose classes are split as needed."""

    def __init__(self) -> None:
        self._parents: list[int] = []
        self._extents: list[Extent] = []
        self._class_parts: dict[int, tuple[int, int]] = {}
        self._parts: dict[int, tuple[int, int]] = {}

    def fresh(self, extent: Extent) -> int:
        """A new axis, tied to none."""
        self._parents.append(len(self._parents))
        self._extents.append(extent)
        return len(self._parents) - 1

    def like(self, axis: int) -> int:
        """A new axis, tied to ``axis``."""
        made = self.fresh(self._extents[axis])
        self._parents[made] = self.root(axis)
        return made

    def extent(self, axis: int) -> Extent:
        """How many steps ``axis`` has."""
        return self._extents[axis]

    def root(self, axis: int) -> int:
        """The axis that stands for the class of ``axis``."""
        while self._parents[axis] != axis:
            self._parents[axis] = self._parents[self._parents[axis]]
            axis = self._parents[axis]
        return axis

    def parts(self, axes: Sequence[int]) -> tuple[int, ...]:
        """The finest parts of ``axes``, from the outside in."""
        found: list[int] = []
        stack = list(reversed(axes))
        while stack:
            axis = stack.pop()
            split = self._class_parts.get(self.root(axis))
            if split is None:
                found.append(axis)
                continue
            if axis not in self._parts:
                self._parts[axis] = (self.like(split[0]), self.like(split[1]))
            stack.extend(reversed(self._parts[axis]))
        return tuple(found)

    def split(self, axis: int, outer: Extent) -> None:
        """Cut the class of an axis without parts into ``outer`` steps of the rest. Raises Misaligned."""
        inner = self.extent(axis).over(outer)
        if inner is None:
            raise Misaligned(f"an axis of {self.extent(axis)} cannot be cut into {outer} parts")
        self._class_parts[self.root(axis)] = (self.fresh(outer), self.fresh(inner))

    def align(self, left: Sequence[int], right: Sequence[int]) -> None:
        """Tie two runs of axes that cover one dimension, splitting where their cuts differ. Raises Misaligned."""
        a, b = list(left), list(right)
        while a and b:
            a[:1], b[:1] = self.parts(a[:1]), self.parts(b[:1])
            sizes = self.extent(a[0]), self.extent(b[0])
            if sizes[0] == sizes[1]:
                self._parents[self.root(a.pop(0))] = self.root(b.pop(0))
            elif sizes[0].over(sizes[1]) is not None:
                self.split(a[0], sizes[1])
            elif sizes[1].over(sizes[0]) is not None:
                self.split(b[0], sizes[0])
            else:
                raise Misaligned(f"axes of {sizes[0]} and {sizes[1]} steps have no common parts")
        if a or b:
            raise Misaligned("dimensions of different extents")

    def regroup(self, axes: Sequence[int], extents: Sequence[Extent]) -> tuple[tuple[int, ...], ...]:
        """Cut a run of axes into dimensions of ``extents``, as a reshape does. Raises Misaligned."""
        left = list(axes)
        dims: list[tuple[int, ...]] = []
        for extent in extents:
            dim: list[int] = []
            missing = extent
            while not missing.is_one:
                if not left:
                    raise Misaligned("dimensions of different extents")
                left[:1] = self.parts(left[:1])
                size = self.extent(left[0])
                rest = missing.over(size)
                if rest is not None:
                    dim.append(left.pop(0))
                    missing = rest
                elif size.over(missing) is not None:
                    self.split(left[0], missing)
                else:
                    raise Misaligned(f"an axis of {size} does not fit a dimension of {extent}")
            dims.append(tuple(dim))
        if left:
            raise Misaligned("dimensions of different extents")
        return tuple(dims)
