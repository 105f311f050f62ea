"""How much of the shorter parts of some work shows beside the longest: computing, and each level's transfers.

The ECM model (arXiv 1509.03118) has no transfers between levels overlap with one another; out-of-order cores and
prefetchers hide most of them. The shares are fitted by hand to 46 schedules of three products (4×64 to 32×64 tiles)
and to six of attention, on a Cascade Lake core (papers_notes/ecm.md).
"""

from __future__ import annotations

from math import isinf

from ilang_eq.extract.machine import Level

COMPUTING = 0.3
PRIVATE = 0.1
SHARED = 0.25
MEMORY = 0.3


def shown(level: Level) -> float:
    """The share of transfers out of ``level`` that shows beside something longer."""
    if isinf(level.bytes):
        return MEMORY
    return SHARED if level.shared else PRIVATE
