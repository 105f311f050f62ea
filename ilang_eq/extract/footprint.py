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
WAITED = 3.0
"""Cost of a byte of an accumulator that comes from a cache, against one unforeseen: all of a tile is waited for."""
START = 128
"""Bytes at the start of a run of consecutive lines that come unforeseen."""
FOLLOWED = 2048
"""The stride in bytes that no prefetcher follows any more. The one beside the first-level cache does up to there
(Intel's Optimization Reference Manual, "Data Prefetch to L1"), but starts afresh in each page, and so misses more of
long strides."""
PAGE = 4096
"""Bytes in a page; systems that use larger ones for arrays of this size do so behind our back."""
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

    ``bytes`` is what it takes in lines; one run alone shares its last line. What is ``accumulated`` into is written,
    and read before anything can be added to it.
    """

    runs: float
    run: float
    stride: int
    written: bool
    bytes: float
    accumulated: bool = False

    @property
    def traffic(self) -> Traffic:
        """What fetching it moves."""
        moved = self.bytes * (WRITTEN if self.written else 1.0)
        missed = min(1.0, self.stride / FOLLOWED) * min(1.0, START / self.run) if self.runs > 1 else 0.0
        unforeseen = moved * missed
        return Traffic(moved, moved * WAITED if self.accumulated else unforeseen)

    @property
    def pages(self) -> float:
        """The pages it lies in."""
        if self.stride < PAGE:
            return ceil(self.runs * self.stride / PAGE) if self.runs > 1 else ceil(self.run / PAGE)
        return self.runs * ceil(self.run / PAGE)

    def occupies(self, level: Level) -> float:
        """Bytes of ``level`` that it makes unusable: more than its own where runs compete for the same lines."""
        if self.runs <= 1:
            return self.bytes
        starts = level.way_bytes // gcd(self.stride, level.way_bytes)
        reached = min(level.way_bytes, starts * ceil(self.run / LINE) * LINE)
        return self.bytes * level.way_bytes / reached


Spans = Mapping[str, Span]
"""What some code touches, by buffer."""
ByBuffer = dict[str, Traffic]


@dataclass(frozen=True, slots=True)
class Cache:
    """A level that keeps lines."""

    level: Level

    def full(self, span: Span, others: float) -> float:
        """The share of it that is taken for ``span``, with ``others`` amounts of other buffers.

        Lines that compete for few places drive out their own buffer's, not the others'.
        """
        return (span.occupies(self.level) + others) / self.level.bytes

    def amount(self, span: Span) -> float:
        """What ``span`` takes of it at least."""
        return span.bytes

    def fetch(self, span: Span) -> Traffic:
        """What bringing ``span`` in moves."""
        return span.traffic


@dataclass(frozen=True, slots=True)
class TranslationBuffer:
    """The cache of page addresses: ``entries`` pages."""

    entries: int

    def full(self, span: Span, others: float) -> float:
        """As for a cache."""
        return (span.pages + others) / self.entries

    def amount(self, span: Span) -> float:
        """Pages."""
        return span.pages

    def fetch(self, span: Span) -> Traffic:
        """Each page counts as a byte, of rows with gaps between them; the next page of a run is foreseen."""
        return Traffic(span.pages if span.runs > 1 and 2 * span.run <= span.stride else 0.0)


@dataclass(frozen=True, slots=True)
class Region:
    """A loop, with what one run of it touches.

    Args:
        trips: how often its body runs.
        whole: what a run touches in all.
        iteration: what one iteration touches and has to keep.
        loops: the loops in its body.
        rest: what one run of the body's own statements touches.
    """

    trips: float
    whole: Spans
    iteration: Spans
    loops: tuple[Region, ...]
    rest: Spans

    def fetched(self, into: Cache | TranslationBuffer) -> Traffic:
        """What one run brings into a cache."""
        return sum(self._fetched(into).values(), Traffic())

    def _fetched(self, into: Cache | TranslationBuffer) -> ByBuffer:
        amounts = {buffer: into.amount(span) for buffer, span in self.iteration.items()}
        total = sum(amounts.values())
        once = {buffer: into.fetch(span) for buffer, span in self.whole.items()}
        lost: dict[str, float] = {}
        for buffer in self.whole:
            span = self.iteration.get(buffer)
            full = into.full(span, total - amounts[buffer]) if span else 0.0
            lost[buffer] = min(1.0, max(0.0, (full - FITS) / (OVERFLOWS - FITS)))
        if not any(lost.values()):
            return once
        rest = {buffer: into.fetch(span) for buffer, span in self.rest.items()}
        anew = _summed([*(loop._fetched(into) for loop in self.loops), rest])
        found: ByBuffer = {}
        for buffer, least in once.items():
            again = anew.get(buffer, Traffic()).times(self.trips)
            gone = lost[buffer] if again.bytes >= least.bytes else 0.0
            found[buffer] = again.times(gone) + least.times(1.0 - gone) if gone else least
        return found


def _summed(parts: Iterable[ByBuffer]) -> ByBuffer:
    found: ByBuffer = {}
    for part in parts:
        for buffer, traffic in part.items():
            found[buffer] = found.get(buffer, Traffic()) + traffic
    return found


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
        return _touch(self.place, self.dims, counts, self.span.written, self.span.accumulated)


def _touch(
    place: Load, dims: tuple[int, ...], counts: tuple[float, ...], written: bool, accumulated: bool = False
) -> _Touch:
    """Merge dimensions that are filled into the ones outside them."""
    # what a divisor divides steps by multiples of it
    left = [min(float(dim), count) for count, dim in zip(counts, dims, strict=True)]
    run, size = 1.0, 1
    while left and run > size - 0.5:
        run *= left.pop()
        size *= dims[len(left)]
    while left and left[-1] == 1.0:
        left.pop()
        size *= dims[len(left)]
    runs, run = prod(left), run * _SIZE
    lines = runs * ceil(run / LINE) * LINE if runs > 1 else run
    return _Touch(place, dims, counts, Span(runs, run, size * _SIZE, written, lines, accumulated))


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
    whole = _spans(through)
    if any(isinstance(node, Loop) and unrolled(node) is None for node in loop.body):
        loops = tuple(region for region, _ in inner)
        return Region(loop.trips, whole, _spans(touched), loops, _spans(own)), through
    # what a loop of unrolled nests accumulates into stays in registers
    pairs = zip(touched, through, strict=True)
    fetched = _spans([touch for touch, moved in pairs if not touch.span.written or moved is not touch])
    return Region(loop.trips, whole, fetched, (), fetched), through


def _touches(statements: Sequence[Assign | Accumulate], dims: Mapping[str, tuple[int, ...]]) -> list[_Touch]:
    """Every place in ``statements``, once; scalars live in registers."""
    found: dict[Load, tuple[bool, bool]] = {}
    for statement in statements:
        for place in _loads(statement.value):
            found.setdefault(place, (False, False))
        found[statement.target] = True, isinstance(statement, Accumulate)
    places = ((place, marks) for place, marks in found.items() if place.indices)
    return [_touch(place, dims[place.buffer], (1.0,) * len(place.indices), *marks) for place, marks in places]


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


def _spans(touches: Iterable[_Touch]) -> Spans:
    """One span a buffer: of several the largest, since they tend to lie in each other."""
    largest: dict[str, Span] = {}
    for touch in touches:
        span = touch.span
        before = largest.get(touch.place.buffer)
        if before is None or (span.bytes, span.written) > (before.bytes, before.written):
            largest[touch.place.buffer] = span
    return largest
