"""How much quicker memory comes in a few streams: rows of an array that are read in turn, and arrays beside each other.

A prefetcher follows each stream in a page of its own, and so asks for more lines at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ilang_eq.extract.footprint import PAGE, Figures, Traffic

ABREAST = 4.0, 6.0, 8.0
"""Streams that come quickest, from and to, and those that gain nothing any more. Of 128 MiB 20 GB/s come in
one row at a time on Zen 3, 21 and 25 in two and in four to eight rows of 16 KiB, 256 bytes of each in turn, 23 and 27
in those of 512 KiB; but products of two, four, six, eight and twelve heads at a time, 2 MiB apart, take 0.75, 0.68,
0.75, 0.9 and 1.6 of the time of one. Arrays count as well: 14 GB/s come in one or two, in a loud phase, 18 and 22 in
three and four, and of two arrays one, two, four and six rows each take 1, 0.96, 1.03 and 1.13 of the time."""


class Streams(NamedTuple):
    """Rows side by side: as many as ``gain`` come as quickly, of those that are read in ``turn``."""

    gain: float | Figures
    turn: float | Figures


def rows_in_turn(runs: float | Figures, stride: int, stretch: float | Figures) -> Streams:
    """``runs`` of an array that are read in turn; one page after another, a prefetcher begins anew.

    Args:
        stride: bytes from one to the next, none of which is longer.
        stretch: bytes of one that are read before the others'.
    """
    least, _, _ = ABREAST
    apart = max(0.0, 1.0 - PAGE / stride) * np.maximum(0.0, 1.0 - stretch / PAGE)
    gain = 1.0 / (1.0 - (1.0 - 1.0 / np.minimum(runs, least)) * apart)
    return Streams(gain, np.where(np.asarray(stretch) < PAGE, runs, 1.0))


def gained(streams: Streams) -> Figures:
    """How near ``streams`` come to what they gain at most: 0 is as one row by itself."""
    least, most, too_many = ABREAST
    several = np.minimum(1.0, (1.0 - 1.0 / np.maximum(streams.gain, 1.0)) / (1.0 - 1.0 / least))
    return several * np.minimum(1.0, np.maximum(0.0, (too_many - streams.turn) / (too_many - most)))


def together(found: Iterable[Traffic]) -> Streams:
    """The streams of several arrays, each moved by one of ``found``: less of the smaller ones."""
    most = gain = turn = 0.0
    for traffic in found:
        if traffic.streams:
            most = max(most, traffic.bytes)
            gain += traffic.abreast
            turn += traffic.streams
    return Streams(gain / most, turn / most) if most else Streams(0.0, 0.0)
