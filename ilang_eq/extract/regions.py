"""What the loops of a nest touch, and how much of it each brings into a cache.

A *region* is a loop with the spans that one run of it and one iteration touch. What does not fit between two uses is
fetched anew, in part where it nearly fits.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import prod
from typing import NamedTuple

from ilang_eq.extract.footprint import (
    ELEMENT_BYTES,
    FITS,
    LINE,
    NONE,
    PAGE,
    SHORT,
    START,
    ByBuffer,
    Cache,
    Extents,
    Pace,
    Span,
    Spans,
    TranslationBuffer,
    lines_of,
    offsets_of,
    size_of,
    turning,
)
from ilang_eq.extract.machine import Machine
from ilang_eq.extract.prefetchers import Code, Prefetchers, Rows, prefetchers_of
from ilang_eq.extract.streams import rows_in_turn
from ilang_eq.extract.trips import Loop, Node, turns
from ilang_eq.lower.addresses import CROWDED, SPACE, is_spaced
from ilang_eq.lower.ir import Accumulate, Buffer, Load
from ilang_eq.lower.passes import ROOM, calls_functions
from ilang_eq.lower.walk import loads


def _shares_lost(spans: Spans, into: Cache | TranslationBuffer) -> dict[str, float]:
    """The share of each buffer that does not stay in a cache through what touches ``spans``; nothing if all does."""
    size = into.size
    amounts = [into.amounts(span) for span in spans.values()]
    if sum([own for _, own in amounts]) <= FITS * size:
        return {}
    crowded = into.room.lost(sum([amount for amount, _ in amounts]) / size)
    contended = sum([own for amount, own in amounts if own > amount])
    others = sum([amount for amount, own in amounts if own <= amount])
    shares = [
        max(crowded, into.contended(span).lost((contended + others * span.visits) / size)) if own > amount else crowded
        for span, (amount, own) in zip(spans.values(), amounts, strict=True)
    ]
    return {buffer: share for buffer, share in zip(spans, shares, strict=True) if share}


_Between = tuple[int, int]
"""The first and the last of some loops in a body."""


class _Use(NamedTuple):
    """That a phase uses a buffer, and the loops since another one did; None if nothing in the body has used it."""

    phase: int
    since: _Between | None


_ONCE = (_Use(0, None),)


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
    _seen: dict[str | int, list[ByBuffer]] = field(default_factory=dict, compare=False, repr=False)

    def phases(self, into: Cache | TranslationBuffer, there: float = 0.0) -> list[ByBuffer]:
        """The same phase by phase, in the order of ``issue_times``: what several read comes in with the first.

        Args:
            there: the share of what a run touches that is in the cache before it.
        """
        found = self._seen.get(into.name)
        if found is None:
            found = self._seen[into.name] = self._from_nothing(into)
        if there:
            found = [dict(phase) for phase in found]
            for buffer, span in self.whole.items():
                first = found[self.uses[buffer][0].phase]
                first[buffer] = first.get(buffer, NONE).plus(into.fetch(span).times(-there))
        return found

    def _from_nothing(self, into: Cache | TranslationBuffer) -> list[ByBuffer]:
        """What one run brings into a cache that has nothing of it, phase by phase."""
        lost = self._lost(into)
        if not lost and not self.loops:
            return [{buffer: into.fetch(span) for buffer, span in self.whole.items()}]
        found: list[ByBuffer] = [{} for _ in range(self.count)]
        if not lost:
            for buffer, span in self.whole.items():
                found[self.uses[buffer][0].phase][buffer] = into.fetch(span)
            return found
        anew = self._anew(into)
        since: dict[_Between, Mapping[str, float]] = {}
        for buffer, span in self.whole.items():
            least = into.fetch(span)
            uses = self.uses[buffer]
            again = [use for use in uses if buffer in anew[use.phase]] if buffer in lost else []
            total = self.trips * sum([anew[use.phase][buffer].all for use in again])
            gone = lost[buffer] if again and total >= least.all else 0.0
            if gone < 1.0:
                found[uses[0].phase][buffer] = least.times(1.0 - gone) if gone else least
            if gone:
                for phase, between in again:
                    if between is not None and between not in since:
                        since[between] = self._lost_between(between, into)
                    share = gone if between is None else min(gone, since[between].get(buffer, 0.0))
                    more = anew[phase][buffer].times(self.trips * share)
                    found[phase][buffer] = found[phase].get(buffer, NONE).plus(more)
        return found

    def _lost(self, into: Cache | TranslationBuffer) -> Mapping[str, float]:
        """The share of each buffer that does not stay, as far as fetching it again takes anything."""
        if isinstance(into, Cache):
            return _shares_lost(self.iteration, into)
        found = _shares_lost(self.iteration, into) if self.gaps else {}
        return {buffer: share for buffer, share in found.items() if buffer in self.gaps}

    def _anew(self, into: Cache | TranslationBuffer) -> list[ByBuffer]:
        """What one iteration brings in where nothing has stayed, phase by phase."""
        rest = {buffer: into.fetch(span) for buffer, span in self.rest.items()}
        return [*(phase for loop in self.loops for phase in loop.phases(into)), rest]

    def _lost_between(self, loops: _Between, into: Cache | TranslationBuffer) -> Mapping[str, float]:
        """The share of each buffer that is gone after some of the loops in the body."""
        first, last = loops
        between = dict(self.loops[first].whole)
        for loop in self.loops[first + 1 : last + 1]:
            for name, span in loop.whole.items():
                if name not in between or span.bytes > between[name].bytes:
                    between[name] = span
        return _shares_lost(between, into)

    @cached_property
    def in_order(self) -> frozenset[str]:
        """What a run reads from start to end, more than a page of it."""
        return frozenset(name for name, span in self.whole.items() if not span.written and span.follows)

    @cached_property
    def gaps(self) -> frozenset[str]:
        """The buffers in which something in here goes through rows with gaps between them."""
        own = {buffer for spans in (self.whole, self.rest) for buffer, span in spans.items() if span.has_gaps}
        return frozenset(own.union(*(loop.gaps for loop in self.loops)))

    @cached_property
    def count(self) -> int:
        """Phases."""
        return 1 + sum(loop.count for loop in self.loops)

    def begun(self, reading: Sequence[bool]) -> list[float]:
        """How often phases that are ``reading`` begin after others that are, each row of its own; the rest never do."""
        if not self.loops:
            return [self._rows * each for each in reading]
        found: list[float] = []
        rows = 1.0
        for loop in self.loops:
            inside = reading[len(found) : len(found) + loop.count]
            rows = max(rows, loop._rows if any(inside) else 1.0)
            found += loop.begun(inside)
        # one alone goes on where it ended, unless that is in another row
        times = self.trips if sum(reading) > 1 else max(1.0, self._rows / rows)
        return [*(times * each for each in found), 0.0]

    @cached_property
    def _rows(self) -> float:
        """The rows, in pages of their own, that it reads of a buffer at most."""
        apart = (span.runs for span in self.whole.values() if span.stride >= PAGE and not span.written)
        return max(apart, default=1.0)

    @cached_property
    def uses(self) -> Mapping[str, Sequence[_Use]]:
        """How the phases use each buffer, in their order; the last phase is of the body's own statements."""
        if not self.loops:
            return dict.fromkeys(self.whole, _ONCE)
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


class _Array(NamedTuple):
    """A buffer.

    Args:
        dims: its dimensions.
        argument: whether it lies where the caller put it.
        prefetchers: how many rows of it they follow side by side.
        asked: whether more are asked for ahead, where memory has time (``c/ahead.py``, ``c/requests.py``).
        tile: whether the rows at hand are those of a tile, after which those of the next tile are asked for.
    """

    dims: tuple[int, ...]
    argument: bool
    prefetchers: Prefetchers
    asked: bool = False
    tile: bool = False

    def pace(self, runs: float, near: float, stride: int, before: Span, run: float, code: Code) -> Pace:
        """How so many ``runs`` of ``run`` bytes are gone through, ``stride`` bytes from one to the next.

        Args:
            near: those of them that lie beside one in a page.
            before: what is read of one before the others.
            code: what goes from one to the next.
        """
        old, stretch = before.pace, before.run
        in_turns = old.in_turns or (before.runs > 1.0 and run > stretch)
        if self.asked and (self.tile or runs * stride <= ROOM * ELEMENT_BYTES):
            return old if old.missed else Pace(run)
        rows = Rows(runs, near, stride, stretch, code, runs > before.runs, old.in_turns)
        missed = self.prefetchers.missed(rows) if stretch and stride else 0.0
        restarted = max(old.restarted, self.prefetchers.restarted(rows) if stride else 0.0)
        if missed < old.missed:
            return old._replace(restarted=restarted, in_turns=in_turns)
        if not missed:
            return Pace(run, restarted=restarted, in_turns=in_turns)
        return Pace(stretch, stride, missed, restarted, in_turns)


class _Touch(NamedTuple):
    """The part ``span`` of a buffer that a place covers: ``counts`` positions along each dimension of ``array``.

    ``name`` is the buffer's, with a number if a statement reads other places of it as well: parts of their own.
    """

    name: str
    place: Load
    array: _Array
    counts: tuple[float, ...]
    span: Span

    def in_memory(self) -> _Touch:
        """The same where nothing waits for what is accumulated: each step reads and writes other elements."""
        span = self.span
        return self._replace(span=span._replace(accumulated=False)) if span.accumulated else self

    def over(self, loop: Loop) -> _Touch:
        """The same through all iterations of ``loop``; the same object if it does not move."""
        variable, trips = loop.variable, loop.trips
        moves = [variable in index.variables for index in self.place.indices]
        if True not in moves:
            return self
        counts = tuple([count * trips if moved else count for moved, count in zip(moves, self.counts, strict=True)])
        array = self.array._replace(tile=True) if self.array.asked and loop.width is not None else self.array
        code: Code = "unrolled" if loop.unrolled is not None else "loop" if loop.width is None else "tile"
        return _Touch(self.name, self.place, self.array, counts, _span(array, counts, self.span, code))


@lru_cache(maxsize=4096)
def _span(array: _Array, counts: tuple[float, ...], before: Span, code: Code = "unrolled") -> Span:
    """Merge dimensions that are filled into the ones outside them; ``before`` is what one iteration touches.

    Args:
        code: what goes from one iteration to the next.
    """
    dims = array.dims
    # what a divisor divides steps by multiples of it
    left = [count if count < dim else float(dim) for count, dim in zip(counts, dims, strict=True)]
    run, size = 1.0, 1
    while left and run > size - 0.5:
        run *= left.pop()
        size *= dims[len(left)]
    while left and left[-1] == 1.0:
        left.pop()
        size *= dims[len(left)]
    runs, run = prod(left), run * ELEMENT_BYTES
    lines = runs * lines_of(run, array.argument) * LINE if runs > 1 else run
    stride = size * ELEMENT_BYTES
    near = _near(left, dims, stride)
    pace = array.pace(runs, near, stride, before, run, code)
    gaining, streams = before.abreast, before.streams
    if runs > 1.0 and stride > PAGE:
        gain, turn = rows_in_turn(runs, stride, before.run)
        gaining, streams = max(gaining, float(gain)), max(streams, float(turn))
    elif runs > near > 1.0 and before.run < PAGE:
        # rows that lie less than a page apart are in pages of their own nearly as often
        streams = max(streams, runs / near * max(1.0, near * stride / PAGE))
    turned = before.turning
    if runs > 1.0 and stride >= PAGE and before.run > START:
        turned = max(turned, turning(runs, before.run))
    strides = [stride * prod(dims[n + 1 : len(left)]) for n in range(len(left))]
    return Span(
        runs,
        run,
        stride,
        before.written,
        lines,
        pace,
        before.accumulated,
        before.split,
        gaining,
        streams,
        turned,
        offsets_of(left, strides) if runs > 1.0 else 1.0,
        before.columns,
    )


def _near(counts: Sequence[float], dims: Sequence[int], stride: int) -> float:
    """The rows of ``counts`` positions along the first of ``dims`` that are less than a page from the next one.

    Args:
        stride: bytes from one position of the last of them to the next.
    """
    near = 1.0
    for count, dim in zip(reversed(counts), reversed(dims[: len(counts)]), strict=True):
        if stride >= PAGE:
            break
        near *= count
        stride *= dim
    return near


Seen = dict[Hashable, tuple[Region, list[_Touch]]]
"""The regions of loops, with what they touch, by what decides them."""


def regions(
    nodes: Sequence[Node], buffers: Iterable[Buffer], extents: Extents, machine: Machine, seen: Seen | None = None
) -> Iterator[Region]:
    """The outermost loops among ``nodes``, on ``machine``; each when it is asked for.

    Args:
        seen: those found before, on the same machine, to which these are added.
    """
    seen = {} if seen is None else seen
    prefetchers = prefetchers_of(machine)
    arrays = {b.name: _Array(_dims(b, extents), b.role == "input", prefetchers) for b in buffers}
    return (_region(node, arrays, seen)[0] for node in nodes if isinstance(node, Loop))


def _dims(buffer: Buffer, extents: Extents) -> tuple[int, ...]:
    """The dimensions of ``buffer``, with what room there is between its rows."""
    dims = tuple(size_of(size, extents) for size in buffer.dims)
    return (*dims[:-1], dims[-1] + SPACE) if is_spaced(buffer) and dims[-1] % CROWDED == 0 else dims


def _region(loop: Loop, arrays: Mapping[str, _Array], seen: Seen) -> tuple[Region, list[_Touch]]:
    """The region of ``loop``, and what it touches."""
    key = loop, tuple([arrays[buffer] for buffer in loop.buffers])
    if key not in seen:
        seen[key] = _phase(loop, arrays) if loop.is_phase else _phases(loop, arrays, seen)
    return seen[key]


def _phases(loop: Loop, arrays: Mapping[str, _Array], seen: Seen) -> tuple[Region, list[_Touch]]:
    """The same for one that does several things."""
    inner = [_region(node, arrays, seen) for node in loop.body if isinstance(node, Loop)]
    own = _touches(loop, arrays)
    touched = own + [touch for _, touches in inner for touch in touches]
    through = [touch.over(loop) for touch in touched]
    loops = tuple(region for region, _ in inner)
    return Region(loop.trips, _spans(through), _spans(touched), loops, _spans(own)), through


def _phase(loop: Loop, arrays: Mapping[str, _Array]) -> tuple[Region, list[_Touch]]:
    """The same for one that does one thing all along: the loops in its body are no regions of their own."""
    touched = [touch if touch.over(loop) is touch else touch.in_memory() for touch in _touched(loop, arrays)]
    through = [touch.over(loop) for touch in touched]
    if turns(loop):
        # block by block, each line as a whole
        whole = _spans(through)
        return Region(1.0, whole, whole, (), whole), through
    # what a loop of unrolled nests accumulates into stays in registers
    pairs = zip(touched, through, strict=True)
    fetched = [touch for touch, moved in pairs if not touch.span.written or moved is not touch]
    together = min(loop.together, loop.trips) if loop.trips > 1.0 else 1.0
    if together > 1.0:
        fetched = [touch.over(replace(loop, trips=together)) for touch in fetched]
    steps = _spans(fetched)
    return Region(loop.trips / together, _spans(through), steps, (), steps), through


def _touched(loop: Loop, arrays: Mapping[str, _Array]) -> list[_Touch]:
    """What one iteration touches."""
    inner = (node for node in loop.body if isinstance(node, Loop))
    return _touches(loop, arrays) + [touch.over(node) for node in inner for touch in _touched(node, arrays)]


def _touches(loop: Loop, arrays: Mapping[str, _Array]) -> list[_Touch]:
    """Every place in the statements of ``loop`` itself, once; scalars live in registers."""
    found: dict[Load, tuple[str, bool, bool]] = {}
    own = [node for node in loop.body if not isinstance(node, Loop)]
    asked = calls_functions(own)
    for statement in own:
        read: dict[str, dict[Load, None]] = {}
        for place in loads(statement.value):
            others = read.setdefault(place.buffer, {})
            others[place] = None
            found.setdefault(place, (_part(place, len(others)), False, False))
        target = statement.target
        found[target] = target.buffer, True, isinstance(statement, Accumulate)
    touches: list[_Touch] = []
    for place, (name, written, accumulated) in found.items():
        if place.indices:
            array = arrays[place.buffer]
            array = array._replace(asked=True) if asked and array.argument else array
            vectors = loop.variable in place.indices[-1].variables and (loop.width or LINE) * ELEMENT_BYTES > SHORT
            *outer, last = (loop.variable in index.variables for index in place.indices)
            element = Span(
                1.0,
                ELEMENT_BYTES,
                ELEMENT_BYTES,
                written,
                ELEMENT_BYTES,
                Pace(ELEMENT_BYTES),
                accumulated,
                array.argument and vectors,
                columns=accumulated and any(outer) and not last,
            )
            counts = (1.0,) * len(place.indices)
            touches.append(_Touch(name, place, array, counts, _span(array, counts, element)))
    return touches


def _part(place: Load, number: int) -> str:
    """The name of the part of a buffer that ``place`` is in, which a statement reads as the ``number``-th."""
    return place.buffer if number == 1 else f"{place.buffer} {number}"


def _spans(touches: Iterable[_Touch]) -> Spans:
    """One span for each part of a buffer: of several the largest, since they tend to lie in each other."""
    largest: dict[str, Span] = {}
    for touch in touches:
        span = touch.span
        before = largest.get(touch.name)
        if before is None or (span.bytes, span.written) > (before.bytes, before.written):
            largest[touch.name] = span
    return largest
