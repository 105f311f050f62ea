"""How much of the shorter parts of some work shows beside the longest: computing, and each level's transfers.

The ECM model (arXiv 1509.03118) has no transfers between levels overlap with one another; out-of-order cores and
prefetchers hide most of them. The share is fitted by hand to some 300 schedules of a product, attention with and
without a soft-cap, softmax, a log-sum-exp and a Gaussian sum, on a core of Emerald Rapids (papers_notes/ecm.md).
"""

from __future__ import annotations

from typing import NamedTuple

from ilang_eq.extract.machine import ASKED, SHOWN, Level, Machine


class Shares(NamedTuple):
    """How much of what is shorter shows beside something longer: ``shown``, and of what is ``asked`` for ahead.

    Of what shows, the share ``computing`` does if computing is longest.
    """

    shown: float = SHOWN
    asked: float = ASKED
    computing: float = 1.0

    @classmethod
    def of(cls, machine: Machine, cached: bool = False) -> Shares:
        """What is known of ``machine``; of what comes out of caches, if it is ``cached``."""
        return cls(machine.shown, machine.asked, machine.shown_cached if cached else 1.0)


USUAL = Shares()

UNDER = 2.0
"""How soon what comes out of a level beyond the core's own caches, or of any where ``Machine.early`` says so, shows
beside computing: from half as long on, as much as anything. Shorter transfers, as those of products, hide under it: on
Zen 3 the search finds tiles for SwiGLU and a Gaussian sum that take 0.98 and 0.96 of the time."""

EXPOSED = 0.1
"""The share of unforeseen transfers into the first level that shows: an out-of-order core hides a wait of 15 cycles,
but not one of 80 or 300."""


def exposed(level: Level) -> float:
    """The share of unforeseen transfers out of ``level`` that shows."""
    return 1.0 if level.shared else EXPOSED
