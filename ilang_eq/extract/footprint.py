"""Bytes that a nest moves into each level of the memory hierarchy.

The *footprint* of a loop is what one run of it touches, in whole cache lines. If one iteration's footprint fits a
level, the loop fetches its own footprint into that level once: what iterations share stays there between them. If it
does not fit, every iteration fetches anew (the counting argument of Goto and van de Geijn, ACM TOMS 34(3), 2008).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import assert_never

from ilang_eq.extract.trips import Loop, Node
from ilang_eq.lower.ir import Accumulate, Apply, Assign, Buffer, CeilDiv, Constant, Extent, Load, Scalar, Size

LINE = 64
"""Bytes in a cache line."""
USABLE = 0.75
"""Share of a level that holds a working set; the rest is lost to conflicts and passers-by."""
WRITTEN = 1.25
"""Cost of a byte written, against one read: it is fetched and written back, partly at once."""
START = 128
"""Bytes whose time it takes to find the start of a run of consecutive lines."""
_SIZE = 4

Extents = Mapping[tuple[int, int], int]
"""Dimension d of input n, under the key (n, d)."""


@dataclass(frozen=True, slots=True)
class Region:
    """A loop, with what one run of it touches.

    Args:
        trips: how often its body runs.
        cost: bytes touched in a run, weighted by what a byte costs.
        iteration: bytes touched in one iteration, unweighted.
        loops: the loops in its body.
        rest: as ``cost``, for one run of the body's own statements.
    """

    trips: float
    cost: float
    iteration: float
    loops: tuple[Region, ...]
    rest: float

    def fetched(self, capacity: float) -> float:
        """Weighted bytes that one run moves into a level of ``capacity`` bytes."""
        if self.iteration <= USABLE * capacity:
            return self.cost
        return self.trips * (self.rest + sum(loop.fetched(capacity) for loop in self.loops))


@dataclass(frozen=True, slots=True)
class _Touch:
    """The part of a buffer that a place covers: ``counts`` positions along each dimension of ``dims``."""

    place: Load
    dims: tuple[int, ...]
    counts: tuple[float, ...]
    written: bool

    def over(self, loop: Loop) -> _Touch:
        """The same through all iterations of ``loop``."""
        indices = self.place.indices
        if not any(loop.variable in index.variables for index in indices):
            return self
        pairs = zip(indices, self.counts, strict=True)
        counts = tuple(count * loop.trips if loop.variable in index.variables else count for index, count in pairs)
        return _Touch(self.place, self.dims, counts, self.written)

    def extent(self) -> tuple[float, float]:
        """How many runs of consecutive bytes there are, and the bytes in each."""
        triples = zip(self.place.indices, self.counts, self.dims, strict=True)
        counts = [min(float(dim), max(1.0, count / index.divisor)) for index, count, dim in triples]
        run = 1.0
        while counts:
            run *= counts.pop()
            if run < prod(self.dims[len(counts) :]):
                break
        return prod(counts), run * _SIZE


def regions(nodes: Sequence[Node], buffers: Iterable[Buffer], extents: Extents) -> tuple[Region, ...]:
    """The outermost loops among ``nodes``."""
    dims = {b.name: tuple(size_of(size, extents) for size in b.dims) for b in buffers}
    return tuple(_region(node, dims)[0] for node in nodes if isinstance(node, Loop))


def bytes_of(buffers: Iterable[Buffer], extents: Extents) -> float:
    """The bytes of ``buffers`` in all."""
    return float(sum(_SIZE * prod(size_of(size, extents) for size in b.dims) for b in buffers))


def size_of(size: Size, extents: Extents) -> int:
    """``size`` as a number."""
    match size:
        case int():
            return size
        case Extent(source, dim):
            return extents[source, dim]
        case CeilDiv(Extent(source, dim), divisor):
            return -(-extents[source, dim] // divisor)
        case other:
            assert_never(other)


def _region(loop: Loop, dims: Mapping[str, tuple[int, ...]]) -> tuple[Region, tuple[_Touch, ...]]:
    """The region of ``loop``, and what it touches."""
    inner = [_region(node, dims) for node in loop.body if isinstance(node, Loop)]
    own = [touch for node in loop.body if not isinstance(node, Loop) for touch in _touches(node, dims)]
    touched = _distinct([*own, *(touch for _, touches in inner for touch in touches)])
    through = _distinct(touch.over(loop) for touch in touched)
    iteration = sum(_by_buffer(touched, weighted=False).values())
    cost = sum(_by_buffer(through, weighted=True).values())
    rest = sum(_by_buffer(own, weighted=True).values())
    return Region(loop.trips, cost, iteration, tuple(region for region, _ in inner), rest), through


def _touches(statement: Assign | Accumulate, dims: Mapping[str, tuple[int, ...]]) -> Iterator[_Touch]:
    for place in _loads(statement.value):
        yield _Touch(place, dims[place.buffer], (1.0,) * len(place.indices), False)
    target = statement.target
    yield _Touch(target, dims[target.buffer], (1.0,) * len(target.indices), True)


def _loads(value: Scalar) -> Iterator[Load]:
    match value:
        case Load():
            yield value
        case Constant():
            return
        case Apply(_, arguments):
            for argument in arguments:
                yield from _loads(argument)
        case other:
            assert_never(other)


def _distinct(touches: Iterable[_Touch]) -> tuple[_Touch, ...]:
    return tuple(dict.fromkeys(touch for touch in touches if touch.place.indices))


def _by_buffer(touches: Iterable[_Touch], weighted: bool) -> dict[str, float]:
    """Bytes by buffer; of several touches of one buffer the largest, since they tend to lie in each other."""
    largest: dict[str, float] = {}
    for touch in touches:
        runs, run = touch.extent()
        lines = ceil(run / LINE) * LINE if runs > 1 else run
        total = runs * lines
        if weighted:
            total *= (WRITTEN if touch.written else 1.0) * (1.0 + min(1.0, START / run) if runs > 1 else 1.0)
        largest[touch.place.buffer] = max(largest.get(touch.place.buffer, 0.0), total)
    return largest
