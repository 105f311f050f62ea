"""Bytes that a nest moves into each level of the memory hierarchy.

The *footprint* of a loop is what one run of it touches, in whole cache lines. If one iteration's footprint fits a
level, the loop fetches its own footprint into that level once: what iterations share stays there between them. If it
does not fit, every iteration fetches anew (the counting argument of Goto and van de Geijn, ACM TOMS 34(3), 2008).
Lines whose distance is a multiple of a level's way compete for few places, so that a column of a matrix whose rows are
a power of two long seldom fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, gcd, prod
from typing import assert_never

from ilang_eq.extract.machine import Level
from ilang_eq.extract.trips import Loop, Node, unrolled
from ilang_eq.lower.ir import Accumulate, Apply, Assign, Buffer, CeilDiv, Constant, Extent, Load, Scalar, Size

LINE = 64
"""Bytes in a cache line."""
FITS = 0.75
"""Share of a level up to which a working set stays; beyond, the rest of the level is lost to passers-by."""
OVERFLOWS = 1.1
"""Share of a level from which nothing of a working set stays until it comes round again."""
WRITTEN = 1.25
"""Cost of a byte written, against one read: it is fetched and written back, partly at once."""
START = 128
"""Bytes at the start of a run of consecutive lines that come unforeseen."""
_SIZE = 4

Extents = Mapping[tuple[int, int], int]
"""Dimension d of input n, under the key (n, d)."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Weighted ``bytes`` between two levels, ``apart`` of them in lines that no prefetcher sees coming."""

    bytes: float = 0.0
    apart: float = 0.0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(self.bytes + other.bytes, self.apart + other.apart)

    def times(self, factor: float) -> Traffic:
        """So much, ``factor`` times."""
        return Traffic(self.bytes * factor, self.apart * factor)


@dataclass(frozen=True, slots=True)
class Span:
    """Part of a buffer: ``runs`` runs of ``run`` consecutive bytes, ``stride`` bytes from one to the next.

    ``bytes`` is what it takes in lines; one run alone shares its last line.
    """

    runs: float
    run: float
    stride: int
    written: bool
    bytes: float

    @property
    def traffic(self) -> Traffic:
        """What fetching it moves."""
        moved = self.bytes * (WRITTEN if self.written else 1.0)
        return Traffic(moved, moved * min(1.0, START / self.run) if self.runs > 1 else 0.0)

    def occupies(self, level: Level) -> float:
        """Bytes of ``level`` that it makes unusable: more than its own where runs compete for the same lines."""
        if self.runs <= 1:
            return self.bytes
        starts = level.way_bytes // gcd(self.stride, level.way_bytes)
        reached = min(level.way_bytes, starts * ceil(self.run / LINE) * LINE)
        return self.bytes * level.way_bytes / reached


@dataclass(frozen=True, slots=True)
class Region:
    """A loop, with what one run of it touches.

    Args:
        trips: how often its body runs.
        whole: what fetching all that a run touches, once, moves.
        iteration: what one iteration touches, one span a buffer.
        loops: the loops in its body.
        rest: as ``whole``, for one run of the body's own statements.
    """

    trips: float
    whole: Traffic
    iteration: tuple[Span, ...]
    loops: tuple[Region, ...]
    rest: Traffic

    def fetched(self, level: Level) -> Traffic:
        """What one run moves into ``level``."""
        full = sum(span.occupies(level) for span in self.iteration) / level.bytes
        lost = min(1.0, max(0.0, (full - FITS) / (OVERFLOWS - FITS)))
        if not lost:
            return self.whole
        anew = sum((loop.fetched(level) for loop in self.loops), self.rest).times(self.trips)
        worse = max(anew, self.whole, key=lambda traffic: traffic.bytes)
        return worse.times(lost) + self.whole.times(1.0 - lost)


@dataclass(frozen=True, slots=True)
class _Touch:
    """The part ``span`` of a buffer that a place covers: ``counts`` positions along each dimension of ``dims``."""

    place: Load
    dims: tuple[int, ...]
    counts: tuple[float, ...]
    span: Span

    def over(self, loop: Loop) -> _Touch:
        """The same through all iterations of ``loop``; the same object if it does not move."""
        moves = [loop.variable in index.variables for index in self.place.indices]
        if not any(moves):
            return self
        pairs = zip(moves, self.counts, strict=True)
        counts = tuple(count * loop.trips if moved else count for moved, count in pairs)
        return _touch(self.place, self.dims, counts, self.span.written)


def _touch(place: Load, dims: tuple[int, ...], counts: tuple[float, ...], written: bool) -> _Touch:
    """Merge dimensions that are filled into the ones outside them."""
    triples = zip(place.indices, counts, dims, strict=True)
    left = [min(float(dim), max(1.0, count / index.divisor)) for index, count, dim in triples]
    run, size = 1.0, 1
    while left and run > size - 0.5:
        run *= left.pop()
        size *= dims[len(left)]
    while left and left[-1] == 1.0:
        left.pop()
        size *= dims[len(left)]
    runs, run = prod(left), run * _SIZE
    lines = runs * ceil(run / LINE) * LINE if runs > 1 else run
    return _Touch(place, dims, counts, Span(runs, run, size * _SIZE, written, lines))


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


def _region(loop: Loop, dims: Mapping[str, tuple[int, ...]]) -> tuple[Region, list[_Touch]]:
    """The region of ``loop``, and what it touches."""
    inner = [_region(node, dims) for node in loop.body if isinstance(node, Loop)]
    own = _touches([node for node in loop.body if not isinstance(node, Loop)], dims)
    touched = own + [touch for _, touches in inner for touch in touches]
    through = [touch.over(loop) for touch in touched]
    whole = _traffic(_spans(through))
    if any(isinstance(node, Loop) and unrolled(node) is None for node in loop.body):
        loops = tuple(region for region, _ in inner)
        return Region(loop.trips, whole, _spans(touched), loops, _traffic(_spans(own))), through
    # what a loop of unrolled nests accumulates into stays in registers
    pairs = zip(touched, through, strict=True)
    fetched = _spans([touch for touch, moved in pairs if not touch.span.written or moved is not touch])
    return Region(loop.trips, whole, fetched, (), _traffic(fetched)), through


def _touches(statements: Sequence[Assign | Accumulate], dims: Mapping[str, tuple[int, ...]]) -> list[_Touch]:
    """Every place in ``statements``, once; scalars live in registers."""
    written: dict[Load, bool] = {}
    for statement in statements:
        for place in _loads(statement.value):
            written.setdefault(place, False)
        written[statement.target] = True
    places = ((place, mark) for place, mark in written.items() if place.indices)
    return [_touch(place, dims[place.buffer], (1.0,) * len(place.indices), mark) for place, mark in places]


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


def _spans(touches: Iterable[_Touch]) -> tuple[Span, ...]:
    """One span a buffer: of several the largest, since they tend to lie in each other."""
    largest: dict[str, Span] = {}
    for touch in touches:
        span = touch.span
        before = largest.get(touch.place.buffer)
        if before is None or (span.bytes, span.written) > (before.bytes, before.written):
            largest[touch.place.buffer] = span
    return tuple(largest.values())


def _traffic(spans: Iterable[Span]) -> Traffic:
    return sum((span.traffic for span in spans), Traffic())
