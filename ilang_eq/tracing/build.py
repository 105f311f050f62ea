"""Expressions from tensor code: views of values over axes, and a builder that writes 𝚒 expressions for them.

A torch dimension is a run of axes (``axes.py``); one of extent 1 is an empty run, so keeping, dropping and
broadcasting dimensions need no expression. A view permutes, splits or merges dimensions by rearranging runs: it is the
pattern with which the next expression reads. What an expression reads is indexed by name, so nothing is ever copied
for a view's sake.

Invariants of ``View``:
  * ``axes`` are the source's, in storage order; every one of them is in ``dims``
  * an axis in ``dims`` that the source lacks is broadcast
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ilang_eq.lang.expr import Literal
from ilang_eq.lang.graph import Input, Source, Value
from ilang_eq.tracing.axes import Axes
from ilang_eq.tracing.extents import Extent, product

Dims: TypeAlias = tuple[tuple[int, ...], ...]


class Inexpressible(Exception):
    """What 𝚒 cannot say; the message says why."""


@dataclass(frozen=True, slots=True)
class View:
    """A value as torch sees it: each dimension a run of axes."""

    source: Source
    axes: tuple[int, ...]
    dims: Dims


@dataclass(frozen=True, slots=True)
class Applied:
    """An expression over axes. ``reads[k]`` pairs each axis of operand k with the expression's axis it is read at."""

    op: str
    operands: tuple[Source, ...]
    reads: tuple[tuple[tuple[int, int], ...], ...]
    output: tuple[int, ...]


class Builder:
    """Collects the expressions of one region."""

    def __init__(self) -> None:
        self.axes = Axes()
        self.inputs: list[tuple[int, ...]] = []
        self.expressions: list[Applied] = []

    def input(self, extents: Sequence[Extent]) -> View:
        """One more input, stored in the order of its dimensions."""
        dims = tuple(() if extent.is_one else (self.axes.fresh(extent),) for extent in extents)
        axes = tuple(axis for dim in dims for axis in dim)
        self.inputs.append(axes)
        return View(Input(len(self.inputs) - 1), axes, dims)

    def number(self, value: float, extents: Sequence[Extent] = ()) -> View:
        """A number, as a tensor of these extents. Raises Inexpressible for one that is not finite."""
        if not math.isfinite(value):
            raise Inexpressible(f"𝚒 has no literal {value}")
        dims = tuple(() if extent.is_one else (self.axes.fresh(extent),) for extent in extents)
        return View(Literal(float(value)), (), dims)

    def extents(self, view: View) -> tuple[Extent, ...]:
        """The torch shape of a view."""
        return tuple(product(map(self.axes.extent, dim)) for dim in view.dims)

    def apply(self, op: str, *operands: View | float) -> View:
        """One expression over operands broadcast against each other, as torch does. Raises Misaligned."""
        views = [o if isinstance(o, View) else self.number(o) for o in operands]
        rank = max(len(view.dims) for view in views)
        padded = [((),) * (rank - len(view.dims)) + view.dims for view in views]
        for d in range(rank):
            run = [own[d] for own in padded if own[d]]
            for other in run[1:]:
                self.axes.align(run[0], other)
        real = {leaf for view in views for leaf in self.axes.parts(view.axes)}
        reads: list[dict[int, int]] = [{} for _ in views]
        dims: list[tuple[int, ...]] = []
        output: list[int] = []
        for d in range(rank):
            readers = [n for n, own in enumerate(padded) if own[d]]
            columns = list(zip(*(self.axes.parts(padded[n][d]) for n in readers), strict=True))
            dim = [self.axes.like(column[0]) for column in columns]
            for made, column in zip(dim, columns, strict=True):
                for n, leaf in zip(readers, column, strict=True):
                    reads[n][leaf] = made
                output += [made] if real.intersection(column) else []
            dims.append(tuple(dim))
        return self._expression(op, views, reads, tuple(output), tuple(dims))

    def reduce(self, op: str, view: View, dims: Sequence[int], keep: bool = False) -> View:
        """Reduce torch dimensions ``dims``. Raises Inexpressible if one is broadcast."""
        rank = len(view.dims)
        dropped = {d % rank for d in dims} if rank else set[int]()
        leaves = set(self.axes.parts(view.axes))
        gone = self.axes.parts([axis for d in sorted(dropped) for axis in view.dims[d]])
        if not leaves.issuperset(gone):
            raise Inexpressible("a reduction over a dimension that is broadcast")
        left = [() if d in dropped else view.dims[d] for d in range(rank) if keep or d not in dropped]
        if not gone:
            return View(view.source, view.axes, tuple(left))
        reads = {leaf: self.axes.like(leaf) for dim in view.dims for leaf in self.axes.parts(dim)}
        made = tuple(tuple(reads[leaf] for leaf in self.axes.parts(dim)) for dim in left)
        real = {reads[leaf] for leaf in leaves}
        output = tuple(axis for dim in made for axis in dim if axis in real)
        return self._expression(op, [view], [reads], output, made)

    def diagonal(self, view: View, first: int, second: int) -> View:
        """The elements at which two dimensions agree, in a last dimension. Raises Misaligned, Inexpressible."""
        rank = len(view.dims)
        pair = view.dims[first % rank], view.dims[second % rank]
        self.axes.align(*pair)
        leaves = tuple(map(self.axes.parts, pair))
        if not set(self.axes.parts(view.axes)).issuperset(leaves[0] + leaves[1]):
            raise Inexpressible("a diagonal of what is broadcast")
        left = [dim for d, dim in enumerate(view.dims) if d not in (first % rank, second % rank)]
        reads = {leaf: self.axes.like(leaf) for dim in (*left, pair[0]) for leaf in self.axes.parts(dim)}
        made = tuple(tuple(reads[leaf] for leaf in self.axes.parts(dim)) for dim in (*left, pair[0]))
        reads |= {other: reads[leaf] for leaf, other in zip(*leaves, strict=True)}
        real = {reads[leaf] for leaf in self.axes.parts(view.axes)}
        return self._expression("add", [view], [reads], tuple(a for dim in made for a in dim if a in real), made)

    def _expression(
        self, op: str, views: Sequence[View], reads: Sequence[dict[int, int]], output: tuple[int, ...], dims: Dims
    ) -> View:
        if not any(isinstance(view.source, Input | Value) for view in views):
            raise Inexpressible("an expression of numbers alone")
        pairs = tuple(
            tuple((leaf, own[leaf]) for leaf in self.axes.parts(view.axes))
            for view, own in zip(views, reads, strict=True)
        )
        self.expressions.append(Applied(op, tuple(view.source for view in views), pairs, output))
        return View(Value(len(self.expressions) - 1), output, dims)

    def reshape(self, view: View, extents: Sequence[Extent]) -> View:
        """The same elements in the same order, in dimensions of ``extents``. Raises Misaligned."""
        flat = [axis for dim in view.dims for axis in dim]
        return View(view.source, view.axes, self.axes.regroup(flat, extents))

    def permute(self, view: View, order: Sequence[int]) -> View:
        """Dimensions in another order."""
        return View(view.source, view.axes, tuple(view.dims[d] for d in order))

    def unsqueeze(self, view: View, position: int) -> View:
        """One more dimension, of extent 1."""
        position %= len(view.dims) + 1
        return View(view.source, view.axes, (*view.dims[:position], (), *view.dims[position:]))

    def expand(self, view: View, extents: Sequence[Extent]) -> View:
        """Dimensions of extent 1, and new ones in front, broadcast to ``extents``."""
        dims = ((),) * (len(extents) - len(view.dims)) + view.dims
        grown = [
            dim if dim or extent.is_one else (self.axes.fresh(extent),)
            for dim, extent in zip(dims, extents, strict=True)
        ]
        return View(view.source, view.axes, tuple(grown))
