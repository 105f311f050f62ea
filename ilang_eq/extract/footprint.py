"""Bytes that a nest moves into each level of the memory hierarchy.

The *footprint* of a loop is what one run of it touches, in whole cache lines. If one iteration's footprint fits a
level, the loop fetches its own footprint into that level once: what iterations share stays there between them. If it
does not fit, every iteration fetches anew (the counting argument of Goto and van de Geijn, ACM TOMS 34(3), 2008).
Lines whose distance is a multiple of a level's way compete for few places, so that a column of a matrix whose rows are
a power of two long seldom fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, gcd, inf, prod, sqrt
from typing import NamedTuple, assert_never

import numpy as np
from numpy.typing import NDArray

from ilang_eq.extract.machine import Level
from ilang_eq.lower.ir import Buffer, CeilDiv, Extent, Size

LINE = 64
"""Bytes in a cache line."""
START_OF_ARRAYS = 16
"""Bytes that NumPy's arrays begin into a line."""
FITS = 0.5
"""Share of a level up to which a working set stays: beyond, lines that prefetchers bring in push out others."""
OVERFLOWS = 1.4
"""Share of a level from which nothing of a working set stays until it comes round again: following a random cycle of
lines takes as long in 3 MiB as in 6 on a core of Emerald Rapids with a second level of 2 MiB (papers_notes/ecm.md)."""
CONTENDS = 0.8
"""The same for lines that compete for few places, as those of rows a multiple of a way apart do: but for these, only
what passes through meanwhile pushes them out. 6 rows in 8 places take as long as if they lay elsewhere in tiles of
6 × 16 on Zen 3, and 4 % more in tiles of 6 × 64 on Cascade Lake, where four times as much passes through."""
DRIVES_OUT = 2.7
"""Share of a level from which nothing of such lines stays. 8, 9, 10 and 12 rows take 1.19, 1.29, 1.55 and 2.24 times as
long as rows that lie elsewhere, on Zen 3."""
WAITED_FAR = 336.0
"""As ``machine.WAITED``, from beyond a core's own caches. With 0, SwiGLU is summed in blocks on Zen 3, and takes 1.02
of the time."""
CROWDS = 9.5
"""Lines that take turns wait the part ``taken / CROWDS`` of the latency, within ``LANDS``. Lines 4 KiB apart, one
float of each at a time, take 0.33, 0.55, 1.23, 1.73, 2.62 and 2.75 ns in the nearest cache of Zen 4 where 1.5, 2, 3, 4,
6 and 8 times as many as there are places for take turns, whose second level has a latency of 4.1 ns; beside 24
multiply-adds, which take 6.5 ns, as long in all as the longer of both (papers_notes/ecm.md)."""
COLUMNS = 20.0
"""How many times as long accumulators are waited for whose lines compete for few places: they are added to columns. In
blocks of 256 and 512 steps, tiles of 8 × 64 of a product of 1024³ take 1.84 and 1.36 cycles a vector on Zen 4, 60 for
each line that they add to, where rows of the result are 4 KiB apart; with 1040 columns 1.19 and 1.14."""
LANDS = 0.2, 0.67
"""The least and the most of the latency."""
START = 128
"""Bytes at the start of a run of consecutive lines that come unforeseen. Of 64, 128 and 256, products are ranked better
with the first two, and the picks with 128 are no slower on Cascade Lake (64×64×2048: 0.96 of the time)."""
TURNS = 12
"""As many rows, or more, of which parts are read in turns wait at every page. Sums of two arrays of 64 MiB take, on
Zen 4, 5.7 ms row by row, and 7.1, 8.0, 9.4, 10.5 and 10.1 where 2, 4, 8, 12 and 32 rows take turns, 4 KiB of each."""
MISSED = 4.0
"""Lines of a page that are asked for before it is found."""
SHORT = 16
"""Bytes of vectors that do not lie in two lines, as arrays begin at a multiple of that."""
PAGE = 4096
"""Bytes in a page; systems that use larger ones for arrays of this size do so behind our back."""
ELEMENT_BYTES = 4
"""Bytes of a float."""

Figures = NDArray[np.float64]

Extents = Mapping[tuple[int, int], int]
"""Dimension d of input n, under the key (n, d)."""


class Room(NamedTuple):
    """The shares of a level up to which a working set stays in it, and from which nothing does."""

    stays: float
    goes: float

    def lost(self, taken: float) -> float:
        """The share that does not stay of what takes the share ``taken`` of the level."""
        return min(1.0, max(0.0, (taken - self.stays) / (self.goes - self.stays)))


class Traffic(NamedTuple):
    """Weighted bytes between two levels.

    Args:
        bytes: those that prefetchers bring in time.
        apart: in lines that no prefetcher sees coming.
        waited: of accumulators, which the next addition waits for.
        contending: in lines that drive each other out before more than a few of their floats are read.
        abreast: of the first those that are read, times the rows of their array that gain by it (``streams``).
        streams: the same times the rows that are read in turn.
        crowded: of those contending, the part of a source's latency that each waits (``landing``).
        turning: of the first, those in whose pages prefetchers begin anew (``turning``).
    """

    bytes: float = 0.0
    apart: float = 0.0
    waited: float = 0.0
    contending: float = 0.0
    abreast: float = 0.0
    streams: float = 0.0
    crowded: float = 0.0
    turning: float = 0.0

    def times(self, factor: float) -> Traffic:
        """So much, ``factor`` times."""
        bytes_, apart, waited, contending, gaining, streams, crowded, turned = self
        return Traffic(
            bytes_ * factor,
            apart * factor,
            waited * factor,
            contending * factor,
            gaining * factor,
            streams * factor,
            crowded * factor,
            turned * factor,
        )

    def plus(self, other: Traffic) -> Traffic:
        """Both."""
        return Traffic(
            self.bytes + other.bytes,
            self.apart + other.apart,
            self.waited + other.waited,
            self.contending + other.contending,
            self.abreast + other.abreast,
            self.streams + other.streams,
            self.crowded + other.crowded,
            self.turning + other.turning,
        )

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

    There is no jump as long as all can be followed: a few runs side by side, each in order. Of more the share
    ``missed`` comes unforeseen; and out of memory, where prefetchers begin anew, the share ``restarted`` at least.
    Runs may be gone through ``in_turns``, a part of each at a time.
    """

    stretch: float
    jump: int = 0
    missed: float = 0.0
    restarted: float = 0.0
    in_turns: bool = False


def lines_of(run: float, argument: bool) -> float:
    """The lines that ``run`` bytes of a row lie in, on the average over where one part of it begins after another.

    Args:
        argument: whether the row begins where NumPy's arrays do, 16 bytes into a line, and not with one.
    """
    run = ceil(run / SHORT) * SHORT if run % ELEMENT_BYTES else run
    step = gcd(round(run), LINE)
    return 1.0 + (run if argument and START_OF_ARRAYS % step else run - step) / LINE


def offsets_of(counts: Sequence[float], strides: Sequence[int]) -> float:
    """The places in a page at which runs begin that go so many times along each dimension, so many bytes at a time."""
    apart = [gcd(stride, PAGE) for stride in strides]
    return min(prod(min(count, PAGE // each) for count, each in zip(counts, apart, strict=True)), PAGE // gcd(*apart))


def turning(runs: float, stretch: float) -> float:
    """The share of their pages in which prefetchers begin anew, if ``runs`` rows are read in turns, a part of each.

    One row by itself they follow from page to page.

    Args:
        stretch: bytes of one that are read before the others'.
    """
    return min(1.0, sqrt((runs - 1.0) / (TURNS - 1.0))) * min(stretch / PAGE, 2 * PAGE / stretch, 1.0)


def landing(taken: float) -> float:
    """The part of their source's latency that lines wait which drive each other out of ``taken`` times their places.

    As many as there are places are on their way at a time, and the more there are, the more of them come back anew.
    """
    least, most = LANDS
    return min(most, max(least, taken / CROWDS))


class Span(NamedTuple):
    """Part of a buffer: ``runs`` runs of ``run`` consecutive bytes, ``stride`` bytes from one to the next.

    ``bytes`` is what it takes in lines; one run alone shares its last line. What is ``accumulated`` into is written,
    and read before anything can be added to it. ``pace`` is how the loops go through it; what is ``split`` is read in
    vectors that lie in two lines each, as NumPy's arrays begin 16 bytes into one. So many of its rows as
    ``abreast`` gain by coming side by side, of ``streams`` that do, and the share ``turning`` of it comes in turns with
    other rows. Its runs begin at so many ``offsets`` in a page. Lanes of what goes in ``columns`` lie in several rows.
    """

    runs: float
    run: float
    stride: int
    written: bool
    bytes: float
    pace: Pace
    accumulated: bool = False
    split: bool = False
    abreast: float = 1.0
    streams: float = 1.0
    turning: float = 0.0
    offsets: float = 1.0
    columns: bool = False

    def traffic(self, source: Level) -> Traffic:
        """What fetching it from ``source`` moves; no core waits for stores."""
        if self.accumulated:
            return Traffic(waited=self.bytes)
        if self.written:
            return Traffic(self.bytes * source.written)
        missed = max(self.pace.missed, self.pace.restarted) if source.bytes == inf else self.pace.missed
        foreseen = self.bytes * (1.0 - missed)
        return Traffic(
            foreseen,
            self.bytes * missed,
            abreast=foreseen * self.abreast,
            streams=foreseen * self.streams,
            turning=foreseen * self.turning,
        )

    @property
    def pages(self) -> float:
        """The pages it lies in."""
        if self.stride < PAGE:
            return ceil(self.runs * self.stride / PAGE) if self.runs > 1 else ceil(self.run / PAGE)
        return self.runs * ceil(self.run / PAGE)

    @property
    def visits(self) -> float:
        """The iterations that come back to a line of it, one after another."""
        return max(1.0, LINE / self.run)

    @property
    def follows(self) -> bool:
        """Whether it is one run over pages, without a jump in it."""
        return self.runs == 1.0 and not self.pace.jump and self.run > PAGE

    @property
    def has_gaps(self) -> bool:
        """Whether there is more between its runs than in them."""
        return self.runs > 1 and 2 * self.run <= self.stride

    def occupies(self, level: Level) -> float:
        """Bytes of ``level`` that it makes unusable: more than its own where runs compete for the same lines."""
        if self.runs <= self.offsets:
            return self.bytes
        # beyond the nearest cache, whose ways are no longer, pages lie anywhere
        pages = max(1, level.way_bytes // PAGE)
        reached = min(level.way_bytes, pages * self.offsets * self.bytes / self.runs)
        return self.bytes if self.bytes <= reached or not reached else self.bytes * level.way_bytes / reached


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
    def name(self) -> str:
        """What a machine has one of."""
        return self.level.name

    @property
    def size(self) -> float:
        """Bytes."""
        return self.level.bytes

    @property
    def room(self) -> Room:
        """What stays of a working set."""
        return room_of(self.level)

    def contended(self, span: Span) -> Room:
        """What stays of the lines of ``span`` if they compete for few places."""
        return Room(CONTENDS, self.level.split_lasts if span.split and span.run <= LINE else DRIVES_OUT)

    def amounts(self, span: Span) -> tuple[float, float]:
        """What ``span`` takes of it from others, and from those that compete for few places, as its own lines do.

        Rows of a product and of its second factor begin as far apart: what one tile of them takes, the other lacks.
        """
        return span.bytes, span.occupies(self.level)

    def fetch(self, span: Span) -> Traffic:
        """What bringing ``span`` in moves."""
        traffic = span.traffic(self.source)
        short = span.run <= LINE and span.runs * span.run < span.bytes and span.accumulated <= span.columns
        near = short and not self.source.shared
        taken = span.occupies(self.level)
        if not near or not span.bytes <= self.level.bytes < taken:
            return traffic
        if span.columns:
            return traffic.times(COLUMNS)
        return Traffic(contending=traffic.all, crowded=traffic.all * landing(taken / self.level.bytes))


@dataclass(frozen=True, slots=True)
class TranslationBuffer:
    """The cache of page addresses: ``entries`` pages."""

    entries: int

    @property
    def name(self) -> int:
        """What a machine has one of."""
        return self.entries

    @property
    def size(self) -> float:
        """Pages."""
        return self.entries

    @property
    def room(self) -> Room:
        """As for a cache."""
        return Room(FITS, OVERFLOWS)

    def contended(self, span: Span) -> Room:
        """As for a cache."""
        return Room(CONTENDS, DRIVES_OUT)

    def amounts(self, span: Span) -> tuple[float, float]:
        """As for a cache."""
        pages = span.pages
        return pages, pages

    def fetch(self, span: Span) -> Traffic:
        """Each page counts as a byte, of rows with gaps between them; the next page of a run is foreseen.

        Apart are split lines, as many as are asked for before their page is found.
        """
        if not span.has_gaps:
            return NONE
        return Traffic(span.pages, min(span.bytes / LINE, MISSED * span.pages) if span.split else 0.0)


def room_of(level: Level) -> Room:
    """What stays in ``level`` of a working set."""
    return Room(FITS, level.lasts)


def bytes_of(buffers: Iterable[Buffer], extents: Extents) -> float:
    """The bytes of ``buffers`` in all."""
    return float(sum(ELEMENT_BYTES * prod(size_of(size, extents) for size in b.dims) for b in buffers))


def size_of(size: Size, extents: Extents) -> int:
    """``size`` as a number."""
    match size:
        case int():
            return size
        case Extent():
            return size.at(extents)
        case CeilDiv(extent, divisor):
            return -(-extent.at(extents) // divisor)
        case other:
            assert_never(other)
