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
from functools import cached_property
from math import ceil, gcd, prod
from typing import NamedTuple, assert_never

from ilang_eq.extract.machine import Level
from ilang_eq.extract.trips import Loop, Node
from ilang_eq.lower.ir import Accumulate, Apply, Buffer, CeilDiv, Constant, Extent, Load, Scalar, Size

LINE = 64
"""Bytes in a cache line."""
FITS = 0.5
"""Share of a level up to which a working set stays: beyond, lines that prefetchers bring in push out others."""
OVERFLOWS = 1.4
"""Share of a level from which nothing of a working set stays until it comes round again: following a random cycle of
lines takes as long in 3 MiB as in 6 on a core of Emerald Rapids with a second level of 2 MiB (papers_notes/ecm.md)."""
WAITED = 3.0
"""Cost of a byte of an accumulator that comes from a cache, against one unforeseen: all of a tile is waited for."""
START = 256
"""Bytes at the start of a run of consecutive lines that come unforeseen."""
STREAMS = 32
"""Runs that prefetchers follow side by side: as many pages as the one beside the second-level cache keeps an eye on."""
FOLLOWED = 2048
"""The stride in bytes that no prefetcher follows any more. The one beside the first-level cache does up to there
(Intel's Optimization Reference Manual, "Data Prefetch to L1"), but starts afresh in each page, and so misses more of
long strides."""
MISSED = 4.0
"""Lines of a page that are asked for before it is found."""
SHORT = 16
"""Bytes of vectors that do not lie in two lines, as arrays begin at a multiple of that."""
PAGE = 4096
"""Bytes in a page; systems that use larger ones for arrays of this size do so behind our back."""
_SIZE = 4

Extents = Mapping[tuple[int, int], int]
"""Dimension d of input n, under the key (n, d)."""


class Traffic(NamedTuple):
    """Weighted bytes between two levels.

    Args:
        bytes: those that prefetchers bring in time.
        apart: in lines that no prefetcher sees coming.
        waited: of accumulators, which the next addition waits for.
        contending: in lines that drive each other out before more than a few of their floats are read.
    """

    bytes: float = 0.0
    apart: float = 0.0
    waited: float = 0.0
    contending: float = 0.0

    def times(self, factor: float) -> Traffic:
        """So much, ``factor`` times."""
        return Traffic(self.bytes * factor, self.apart * factor, self.waited * factor, self.contending * factor)

    @property
    def all(self) -> float:
        """Everything."""
        return self.bytes + self.apart + self.waited + self.contending

    @staticmethod
    def total(found: Iterable[Traffic]) -> Traffic:
        """The sum of many."""
        return Traffic(*map(sum, zip(*found, strict=True)))


class Pace(NamedTuple):
    """In what order part of a buffer is gone through: ``stretch`` bytes one after another, then ``jump`` bytes away.

    There is no jump as long as all can be followed: a few runs side by side, each in order.
    """

    stretch: float
    jump: int = 0

    @property
    def missed(self) -> float:
        """The share of it that comes unforeseen."""
        return min(1.0, self.jump / FOLLOWED) * min(1.0, START / self.stretch) if self.jump else 0.0


class Span(NamedTuple):
    """Part of a buffer: ``runs`` runs of ``run`` consecutive bytes, ``stride`` bytes from one to the next.

    ``bytes`` is what it takes in lines; one run alone shares its last line. What is ``accumulated`` into is written,
    and read before anything can be added to it. ``pace`` is how the loops go through it; what is ``split`` is read in
    vectors that lie in two lines each, as NumPy's arrays begin 16 bytes into one.
    """

    runs: float
    run: float
    stride: int
    written: bool
    bytes: float
    pace: Pace
    accumulated: bool = False
    split: bool = False

    def traffic(self, written: float) -> Traffic:
        """What fetching it moves, if a byte that is written counts as so many; no core waits for stores."""
        if self.accumulated:
            return Traffic(waited=self.bytes)
        if self.written:
            return Traffic(self.bytes * written)
        return Traffic(self.bytes * (1.0 - self.pace.missed), self.bytes * self.pace.missed)

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


NONE = Traffic()
Spans = Mapping[str, Span]
"""What some code touches, by buffer."""
ByBuffer = dict[str, Traffic]


@dataclass(frozen=True, slots=True)
class Cache:
    """A level that keeps lines, each fetched from ``source``."""

    level: Level
    source: Level

    @property
    def size(self) -> float:
        """Bytes."""
        return self.level.bytes

    def amounts(self, span: Span) -> tuple[float, float]:
        """What ``span`` takes of it from others, and from itself.

        Lines that compete for few places drive out their own buffer's, not the others'.
        """
        return span.bytes, span.occupies(self.level)

    def fetch(self, span: Span) -> Traffic:
        """What bringing ``span`` in moves."""
        traffic = span.traffic(self.source.written)
        contends = span.run < LINE and span.bytes <= self.level.bytes < span.occupies(self.level)
        return Traffic(contending=traffic.all) if contends and not span.accumulated else traffic


@dataclass(frozen=True, slots=True)
class TranslationBuffer:
    """The cache of page addresses: ``entries`` pages."""

    entries: int

    @property
    def size(self) -> float:
        """Pages."""
        return self.entries

    def amounts(self, span: Span) -> tuple[float, float]:
        """As for a cache."""
        pages = span.pages
        return pages, pages

    def fetch(self, span: Span) -> Traffic:
        """Each page counts as a byte, of rows with gaps between them; the next page of a run is foreseen.

        Apart are split lines, as many as are asked for before their page is found.
        """
        if span.runs <= 1 or 2 * span.run > span.stride:
            return Traffic()
        return Traffic(span.pages, min(span.bytes / LINE, MISSED * span.pages) if span.split else 0.0)


def _shares_lost(spans: Spans, into: Cache | TranslationBuffer) -> dict[str, float]:
    """The share of each buffer that does not stay in a cache through what touches ``spans``; nothing if all does."""
    amounts = {buffer: into.amounts(span) for buffer, span in spans.items()}
    if sum(own for _, own in amounts.values()) <= FITS * into.size:
        return {}
    total = sum(amount for amount, _ in amounts.values())
    full = {buffer: (own + (total - amount)) / into.size for buffer, (amount, own) in amounts.items()}
    return {buffer: min(1.0, (taken - FITS) / (OVERFLOWS - FITS)) for buffer, taken in full.items() if taken > FITS}


_Between = tuple[int, int]
"""The first and the last of some loops in a body."""


class _Use(NamedTuple):
    """That a phase uses a buffer, and the loops since another one did; None if nothing in the body has used it."""

    phase: int
    since: _Between | None


@dataclass(frozen=True)
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
        return Traffic.total(traffic for found in self.phases(into) for traffic in found.values())

    def phases(self, into: Cache | TranslationBuffer) -> list[ByBuffer]:
        """The same phase by phase, in the order of ``issue_times``: what several read comes in with the first."""
        found: list[ByBuffer] = [{} for _ in range(self.count)]
        lost = _shares_lost(self.iteration, into)
        anew = self._anew(into) if lost else []
        since: dict[_Between, Mapping[str, float]] = {}
        for buffer, span in self.whole.items():
            least = into.fetch(span)
            uses = self.uses[buffer]
            again = [use for use in uses if buffer in anew[use.phase]] if buffer in lost else []
            total = self.trips * sum(anew[use.phase][buffer].all for use in again)
            gone = lost[buffer] if again and total >= least.all else 0.0
            if gone < 1.0:
                found[uses[0].phase][buffer] = least.times(1.0 - gone) if gone else least
            if gone:
                for phase, between in again:
                    if between is not None and between not in since:
                        since[between] = self._lost_between(between, into)
                    share = gone if between is None else min(gone, since[between].get(buffer, 0.0))
                    more = anew[phase][buffer].times(self.trips * share)
                    found[phase][buffer] = Traffic.total((found[phase].get(buffer, NONE), more))
        return found

    def _anew(self, into: Cache | TranslationBuffer) -> list[ByBuffer]:
        """What one iteration brings in where nothing has stayed, phase by phase."""
        rest = {buffer: into.fetch(span) for buffer, span in self.rest.items()}
        return [*(phase for loop in self.loops for phase in loop.phases(into)), rest]

    def _lost_between(self, loops: _Between, into: Cache | TranslationBuffer) -> Mapping[str, float]:
        """The share of each buffer that is gone after some of the loops in the body."""
        first, last = loops
        between: dict[str, Span] = {}
        for loop in self.loops[first : last + 1]:
            for name, span in loop.whole.items():
                if name not in between or span.bytes > between[name].bytes:
                    between[name] = span
        return _shares_lost(between, into)

    @cached_property
    def count(self) -> int:
        """Phases."""
        return 1 + sum(loop.count for loop in self.loops)

    @cached_property
    def uses(self) -> Mapping[str, list[_Use]]:
        """How the phases use each buffer, in their order; the last phase is of the body's own statements."""
        found: dict[str, list[_Use]] = {}
        owners: dict[str, int] = {}
        before = 0
        for owner, loop in enumerate(self.loops):
            for buffer, uses in loop.uses.items():
                first, *others = (before + use.phase for use in uses)
                since = (owners[buffer], owner) if buffer in owners else None
                found.setdefault(buffer, []).extend((_Use(first, since), *(_Use(n, None) for n in others)))
                owners[buffer] = owner
            before += loop.count
        for buffer in self.rest:
            found.setdefault(buffer, []).append(_Use(before, None))
        for buffer in self.whole:
            found.setdefault(buffer, [_Use(before, None)])
        return found


@dataclass(frozen=True, slots=True)
class _Array:
    """The dimensions of a buffer, and whether it lies where the caller put it."""

    dims: tuple[int, ...]
    argument: bool


class _Touch(NamedTuple):
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
        return _touch(self.place, self.dims, counts, self.span)


def _touch(place: Load, dims: tuple[int, ...], counts: tuple[float, ...], before: Span) -> _Touch:
    """Merge dimensions that are filled into the ones outside them; ``before`` is what one iteration touches."""
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
    stride = size * _SIZE
    pace = _pace(runs, run, stride, before)
    span = Span(runs, run, stride, before.written, lines, pace, before.accumulated, before.split)
    return _Touch(place, dims, counts, span)


def _pace(runs: float, run: float, stride: int, before: Span) -> Pace:
    """How a loop goes through ``runs`` runs, if its iterations go through what was ``before``."""
    if before.pace.jump:
        return before.pace
    return Pace(run) if runs <= STREAMS else Pace(before.run, stride)


def regions(nodes: Sequence[Node], buffers: Iterable[Buffer], extents: Extents) -> tuple[Region, ...]:
    """The outermost loops among ``nodes``."""
    arrays = {b.name: _Array(tuple(size_of(size, extents) for size in b.dims), b.role == "input") for b in buffers}
    return tuple(_region(node, arrays)[0] for node in nodes if isinstance(node, Loop))


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


def _region(loop: Loop, arrays: Mapping[str, _Array]) -> tuple[Region, list[_Touch]]:
    """The region of ``loop``, and what it touches."""
    inner = [_region(node, arrays) for node in loop.body if isinstance(node, Loop)]
    own = _touches(loop, arrays)
    touched = own + [touch for _, touches in inner for touch in touches]
    through = [touch.over(loop) for touch in touched]
    whole = _spans(through)
    if not loop.is_phase:
        loops = tuple(region for region, _ in inner)
        return Region(loop.trips, whole, _spans(touched), loops, _spans(own)), through
    # what a loop of unrolled nests accumulates into stays in registers
    pairs = zip(touched, through, strict=True)
    fetched = _spans([touch for touch, moved in pairs if not touch.span.written or moved is not touch])
    return Region(loop.trips, whole, fetched, (), fetched), through


def _touches(loop: Loop, arrays: Mapping[str, _Array]) -> list[_Touch]:
    """Every place in the statements of ``loop`` itself, once; scalars live in registers."""
    found: dict[Load, tuple[bool, bool]] = {}
    for statement in (node for node in loop.body if not isinstance(node, Loop)):
        for place in _loads(statement.value):
            found.setdefault(place, (False, False))
        found[statement.target] = True, isinstance(statement, Accumulate)
    touches: list[_Touch] = []
    for place, (written, accumulated) in found.items():
        if place.indices:
            array = arrays[place.buffer]
            vectors = loop.variable in place.indices[-1].variables and (loop.width or LINE) * _SIZE > SHORT
            element = Span(1.0, _SIZE, _SIZE, written, _SIZE, Pace(_SIZE), accumulated, array.argument and vectors)
            touches.append(_touch(place, array.dims, (1.0,) * len(place.indices), element))
    return touches


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
