"""Which lines of rows side by side come unforeseen.

Prefetchers see rows by where they lie: one after another in a page, and so many pages at a time. Those of Zen 5 also
see them by the instruction that loads them. Rows of a register tile have one each, and each goes on along its row; rows
that a loop goes round share theirs, which leaps from one to the next, and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import Literal as Choice
from typing import NamedTuple

from ilang_eq.extract.footprint import PAGE, START, Room
from ilang_eq.extract.machine import Machine

START_IN_TURNS = 448
"""Bytes at the start of a run that come unforeseen if a part each of several is read in turns, so that little else is
on its way. Of 24×1000×8000 with the second factor in place, each row in parts of 32, 64, 96, 192, 384 and 1024 floats
takes 36, 56, 66, 84, 120 and 212 ns a part more than its instructions on Zen 3, however many rows, 4 to 24, are taken
at a time."""
FOLLOWED = 2048
"""The stride in bytes that no prefetcher follows any more. The one beside the first-level cache does up to there
(Intel's Optimization Reference Manual, "Data Prefetch to L1"), but starts afresh in each page, and so misses more of
long strides."""
LOSES = 40
"""Rows beyond those that prefetchers follow with which they lose all. Sums of 64 MiB of rows of 5000 floats, a line of
each in turn, take 2.1, 3.2, 3.8, 4.2, 5.4 and 6.0 ms on Zen 3 with 16, 20, 24, 32, 48 and 64 rows side by side."""
LOSES_NEAR = 20
"""The same of rows of a page. Those of 64 floats take 3.7, 3.7, 4.7, 5.9 and 7.8 ms with 1, 8, 12, 16 and 32."""
NEAR = 1024
"""The bytes of rows of a page of which prefetchers lose most: rows of 64, 128, 256, 512 and 768 floats take 0.93, 1.3,
1.6, 1.3 and 1.04 of the time of one by itself four at a time, and 2.1, 2.3, 2.3, 1.6 and 1.6 32 at a time."""

SEVERAL, SEVERAL_FAR = 0.07, 0.02
"""The share that always comes unforeseen of several rows, less than a page apart or further: sums of 64 MiB take 1.3 ms
row by row on Zen 5, and of two to eight rows of 128, 256, 512, 1024 and 5040 floats at a time 1.7, 1.7, 1.6, 1.5 and
1.4."""
SHORT = 512
"""The bytes of shorter rows, which come nearly as quickly as one: of 64 floats 1.4 ms."""

Code = Choice["unrolled", "tile", "loop"]
"""What goes from row to row: each has instructions of its own, or a loop of constant length goes round, or another."""


class Rows(NamedTuple):
    """``number`` rows side by side, ``stride`` bytes apart; ``stretch`` bytes of each are read before the others.

    Args:
        near: those that lie beside one in a page.
        code: what goes from one to the next.
        anew: whether this is where they are gone through, and not a loop that comes back to them.
        in_turns: whether each has been come back to before.
    """

    number: float
    near: float
    stride: int
    stretch: float
    code: Code
    anew: bool
    in_turns: bool


class ByPlace(NamedTuple):
    """Prefetchers that see rows by where they lie; the numbers are those of ``Machine``."""

    streams: int
    page_streams: int
    restarts: float

    def missed(self, rows: Rows) -> float:
        """The share of ``rows`` that comes unforeseen."""
        begins = START_IN_TURNS if rows.in_turns else START
        far = Room(self.streams, self.streams + LOSES).lost(rows.number) * min(1.0, rows.stride / FOLLOWED)
        within = Room(self.page_streams, self.page_streams + LOSES_NEAR).lost(rows.near)
        return max(far, within * min(1.0, NEAR / rows.stride)) * min(1.0, begins / rows.stretch)

    def restarted(self, rows: Rows) -> float:
        """The same of rows that lie beside one in a page, at the start of each."""
        if rows.near <= 1.0 or not self.restarts:
            return 0.0
        longer = min((rows.stride / NEAR) ** 2, NEAR / rows.stride)
        return self.restarts / NEAR * longer * (1.0 - (rows.stride / PAGE) ** 2)


class Lost(NamedTuple):
    """How rows are lost: with so many ``more`` than ``Machine.streams`` all of them, ``start`` bytes each.

    Of those that begin at more places in a page than others ``stride`` bytes apart fewer, as a power ``falls``.
    """

    more: float
    start: float
    stride: float
    falls: float

    def share(self, rows: Rows, streams: int) -> float:
        """The share of ``rows``."""
        strides = min(1.0, (gcd(rows.stride, PAGE) / self.stride) ** self.falls)
        return Room(streams, streams + self.more).lost(rows.number) * strides * min(1.0, self.start / rows.stretch)


LOST: Mapping[Code, Lost] = {
    "unrolled": Lost(70.0, 64.0, PAGE, 0.6),
    "tile": Lost(8.0, 64.0, 512.0, 2.0),
    "loop": Lost(8.0, 96.0, PAGE, 0.6),
}
"""As measured on Zen 5 (``benchmarks/side_by_side.py``, papers_notes/ecm.md)."""


class ByInstruction(NamedTuple):
    """Prefetchers that see rows by what loads them."""

    streams: int

    def missed(self, rows: Rows) -> float:
        """The share of ``rows`` that comes unforeseen."""
        return LOST[rows.code].share(rows, self.streams) if rows.anew else 0.0

    def restarted(self, rows: Rows) -> float:
        """The same out of memory, where several rows never come as quickly as one."""
        if rows.number <= 1.0:
            return 0.0
        return min(SEVERAL_FAR if rows.stride >= PAGE else SEVERAL, SEVERAL * rows.stride / SHORT)


Prefetchers = ByPlace | ByInstruction


def prefetchers_of(machine: Machine) -> Prefetchers:
    """Those of ``machine``."""
    if machine.by_instruction:
        return ByInstruction(machine.streams)
    return ByPlace(machine.streams, machine.page_streams, machine.restarts)
